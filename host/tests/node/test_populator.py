"""The populator: what pods want, and when something is certainly not wanted (POP, BR-15, BR-51)."""

import pytest

from volumehost.errors import NoPluginMatchedError, VolumesFailedError
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, MountState

pytestmark = pytest.mark.root


@pytest.fixture
def parts(manager, bind):
    return manager(bind())._now.parts


@pytest.fixture
def populator(parts):
    return parts.populator


def _found(parts, volume="a.b/p/x", uid="u1", **fields):
    """Something that a restart found."""
    actual = parts.services.actual
    mount = MountedVolume(volume, uid, "web", "default", "a.b/p", "x", MountState.UNCERTAIN, **fields)
    actual.enter([AttachedVolume(volume, "a.b/p", None, Attachability.FALSE)], [mount])
    return volume, uid


def _empty(populator):
    """As it is before any pod source has told anything."""
    populator._complete = False
    return populator


def test_pop12_one_volume_that_cannot_be_entered_does_not_keep_the_others(populator, parts, make_pod, nfs):
    record = populator.add(make_pod(nfs("a"), {"name": "b", "emptyDir": {}}))
    assert not record.processed
    assert isinstance(record.errors["b"], NoPluginMatchedError)
    assert parts.services.desired.names_of_pod("uid-1").keys() == {"a"}


def test_br15_nothing_is_unwanted_before_all_pods_are_known(populator, parts):
    volume, uid = _found(parts)
    _empty(populator)
    assert not populator.is_unwanted(volume, uid)
    populator.set_known(())
    assert populator.is_unwanted(volume, uid)


def test_a_known_pod_keeps_its_volumes_though_it_is_not_in_focus(populator, parts, make_pod):
    volume, uid = _found(parts)
    populator.set_known([make_pod(uid=uid)])
    assert not populator.is_unwanted(volume, uid)
    assert not populator.may_mount(uid)


def test_br51_a_pod_that_is_being_deleted_keeps_its_volumes_until_its_workload_ended(populator, parts, make_pod):
    volume, uid = _found(parts)
    pod = make_pod(uid=uid, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    populator.set_known([pod])
    assert not populator.is_unwanted(volume, uid)
    pod.status.phase = "Succeeded"
    populator.set_known([pod])
    assert populator.is_unwanted(volume, uid)


def test_br51_the_word_that_it_ended(populator, parts, make_pod, nfs):
    pod = make_pod(nfs("a"))
    populator.add(pod)
    (volume,) = parts.services.desired.volumes_of_pod("uid-1")
    assert not populator.is_unwanted(volume, "uid-1")
    populator.end("uid-1")
    assert populator.has_ended("uid-1")
    assert populator.is_unwanted(volume, "uid-1")
    assert parts.services.desired.volumes_of_pod("uid-1") == []
    populator.forget("uid-1")
    assert not populator.has_ended("uid-1")


def test_br15_a_volume_that_cannot_be_resolved_is_pending_and_never_unwanted(populator, parts, make_pod, nfs):
    volume, uid = _found(parts, uid="uid-1")
    populator.add(make_pod(nfs("a"), {"name": "x", "emptyDir": {}}))
    assert not populator.is_unwanted(volume, uid)
    populator.add(make_pod(nfs("a")))
    assert populator.is_unwanted(volume, uid)


def test_what_only_a_directory_tells_of_is_left_alone_unless_asked_for(manager, bind, parts, populator):
    volume, uid = _found(parts, from_directory=True)
    populator.set_known(())
    assert not populator.is_unwanted(volume, uid)
    populator._adopt = True
    assert populator.is_unwanted(volume, uid)


def test_a_volume_that_the_pod_no_longer_lists_is_no_longer_wanted(populator, parts, make_pod, nfs):
    populator.add(make_pod(nfs("a"), nfs("b")))
    assert len(parts.services.desired.volumes_of_pod("uid-1")) == 2
    populator.add(make_pod(nfs("a")))
    assert len(parts.services.desired.volumes_of_pod("uid-1")) == 1


def test_but_stays_wanted_while_the_rest_of_the_pod_is_not_understood(populator, parts, make_pod, nfs):
    populator.add(make_pod(nfs("a"), nfs("b")))
    populator.add(make_pod(nfs("a"), {"name": "c", "emptyDir": {}}))
    assert len(parts.services.desired.volumes_of_pod("uid-1")) == 2


def test_fs_group_and_user_of_the_pod_reach_the_plugin(manager, bind, nfs):
    plugin = bind()
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "securityContext": {"fsGroup": 4000, "fsGroupChangePolicy": "OnRootMismatch", "runAsUser": 7},
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "a", "mountPath": "/a"}]}],
            "volumes": [nfs("a")],
        },
    }
    manager(plugin).mount_pod(pod, timeout=20)
    (arguments,) = [call[1] for call in plugin.calls if call[0] == "set_up"]
    assert (arguments.fs_group, arguments.fs_group_change_policy, arguments.fs_user) == (4000, "OnRootMismatch", 7)
    assert arguments.recorder is not None


@pytest.mark.parametrize(("own", "limit"), [("64Ki", 65536), ("4Mi", 1048576), (None, 1048576)])
def test_mountop09_dsw03_the_local_limit_reaches_the_plugin(manager, bind, own, limit):
    """That of the volume where it is smaller than that of the pod."""
    plugin = bind()
    plugin.sources = ("empty_dir",)
    mounts = [{"name": "a", "mountPath": "/a"}]
    resources = {"limits": {"ephemeral-storage": "1Mi"}}
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts, "resources": resources}],
            "volumes": [{"name": "a", "emptyDir": {"sizeLimit": own} if own else {}}],
        },
    }
    plugin.trouble["set_up"] = lambda: (_ for _ in ()).throw(OSError("seen enough"))
    with pytest.raises(VolumesFailedError, match="seen enough"):
        manager(plugin).mount_pod(pod, timeout=20, attempts=1)
    assert [call[1].desired_size for call in plugin.calls if call[0] == "set_up"] == [limit]


@pytest.mark.parametrize(("own", "group"), [(None, 1234), (4000, 4000)])
def test_pop25_the_group_of_the_volume_serves_where_the_pod_has_none(manager, bind, claimed, own, group):
    plugin = bind()
    node = manager(plugin)
    claimed(node.api, volume={"metadata": {"annotations": {"pv.beta.kubernetes.io/gid": "1234"}}})
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "securityContext": {"fsGroup": own} if own else {},
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "a", "mountPath": "/a"}]}],
            "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "claim"}}],
        },
    }
    node.mount_pod(pod, timeout=20)
    assert [call[1].fs_group for call in plugin.calls if call[0] == "set_up"] == [group]
