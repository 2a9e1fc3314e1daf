"""Volumes with a device: attach, mount globally, bind for each pod, and back (SCEN-02 to -07, BR-46, -47, -55)."""

import os

import pytest

from volumehost import hookimpl
from volumehost.api.objects import Event, Pod
from volumehost.errors import (
    OperationError,
    TransientOperationError,
    UncertainProgressError,
    VolumesFailedError,
)
from volumehost.node.state.states import Attachability, DeviceState

pytestmark = pytest.mark.root

ORDER = ["attach", "wait_for_attach", "mount_device", "set_up", "tear_down", "unmount_device", "detach"]


def _pod(name, claim="claim", volume="v"):
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": volume, "mountPath": "/v"}]}
    source = {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": [source]}}


def _steps(plugin):
    return [call[0] for call in plugin.calls if call[0] in ORDER]


def _raise(error):
    def action():
        raise error

    return action


def _volumes(node):
    actual = node._now.parts.services.actual
    return [actual.get_volume(name) for name in actual.volumes()]


@pytest.fixture
def node_of(manager, claimed):
    def make(plugin, first=True, enter=True, **options):
        node = manager(plugin, enter=enter, **options)
        if not enter:
            return _Entering(node, claimed if first else None)
        if first:
            claimed(node.api)
        return node

    return make


class _Entering:
    def __init__(self, node, claimed):
        self.node, self.claimed = node, claimed

    def __enter__(self):
        self.node.__enter__()
        if self.claimed is not None:
            self.claimed(self.node.api)
        return self.node

    def __exit__(self, *details):
        return self.node.__exit__(*details)


def test_scen02_scen04_the_whole_way_there_and_back(node_of, disk, mounts, until):
    plugin = disk()
    node = node_of(plugin)
    status = node.mount_pod(_pod("web"), timeout=20)
    assert status.ready
    assert _steps(plugin) == ORDER[:4]
    assert len(mounts()) == 2
    node.unmount_pod("web", timeout=20)
    until(lambda: _volumes(node) == [])
    assert _steps(plugin) == ORDER
    assert mounts() == []
    node.host.flush_events(10)
    assert {event.reason for event in node.api.list(Event).items} == {"SuccessfulAttachVolume"}


def test_scen03_a_plugin_that_does_not_attach(node_of, disk, until):
    plugin = disk(attaches=False)
    node = node_of(plugin)
    node.mount_pod(_pod("web"), timeout=20)
    node.unmount_pod("web", timeout=20)
    until(lambda: _volumes(node) == [])
    assert _steps(plugin) == ["mount_device", "set_up", "tear_down", "unmount_device"]


def test_mountop06_the_device_path_goes_from_attach_to_wait_to_mount(node_of, disk):
    plugin = disk()
    node_of(plugin).mount_pod(_pod("web"), timeout=20)
    calls = {call[0]: call[1:] for call in plugin.calls}
    assert calls["wait_for_attach"] == ("/dev/example", 600.0)
    assert calls["mount_device"][0] == "/dev/examplep1"


def test_pop31_scen23_a_volume_that_needs_no_attaching_any_more_is_mounted_without(node_of, disk, until):
    """Its driver's object came after the pod was looked at; asked again, the plugin says so."""
    answers = [True]

    class Late(disk):
        @hookimpl
        def can_attach(self, spec):
            return answers.pop() if answers else False

    plugin, begun = Late(), []
    node = node_of(plugin, observer=lambda operation, step, *_: begun.append((operation, step)))
    node.mount_pod(_pod("web"), timeout=20)
    assert begun.count(("volume_attach", "plugin")) == 1
    assert _volumes(node)[0].attachability is Attachability.FALSE
    node.unmount_pod("web", timeout=20)
    until(lambda: _volumes(node) == [])
    assert _steps(plugin) == ["mount_device", "set_up", "tear_down", "unmount_device"]


def test_mountop07_the_group_of_the_pod_reaches_the_device(node_of, disk):
    plugin = disk()
    pod = _pod("web")
    pod["spec"]["securityContext"] = {"fsGroup": 4000}
    node_of(plugin).mount_pod(pod, timeout=20)
    (arguments,) = [call[2] for call in plugin.calls if call[0] == "mount_device"]
    assert arguments.fs_group == 4000


def test_scen07_two_pods_share_the_device(node_of, disk, mounts, until):
    plugin = disk()
    node = node_of(plugin)
    node.mount_pod(_pod("one"), timeout=20)
    node.mount_pod(_pod("two"), timeout=20)
    assert plugin.count("attach") == plugin.count("mount_device") == 1
    assert plugin.count("set_up") == 2
    assert len(mounts()) == 3
    node.unmount_pod("one", timeout=20)
    (volume,) = _volumes(node)
    assert volume.device_state is DeviceState.MOUNTED
    assert plugin.count("unmount_device") == 0
    node.unmount_pod("two", timeout=20)
    until(lambda: _volumes(node) == [])
    assert plugin.count("unmount_device") == plugin.count("detach") == 1
    assert mounts() == []


def test_mountop05_read_write_once_pod(manager, claimed, disk):
    plugin = disk()
    node = manager(plugin)
    claimed(node.api, claim={"accessModes": ["ReadWriteOncePod"]}, volume={"accessModes": ["ReadWriteOncePod"]})
    node.mount_pod(_pod("one"), timeout=20)
    with pytest.raises(VolumesFailedError, match="uses the ReadWriteOncePod access mode and is already in use"):
        node.mount_pod(_pod("two"), timeout=20, attempts=1)


def test_mountop02_and_04_affinity_and_mount_options(manager, claimed, disk, tmp_path):
    plugin = disk()
    node = manager(plugin)
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}
    claimed(node.api, "far", volume={"nodeAffinity": affinity})
    (tmp_path / "other").mkdir()
    claimed(node.api, "hard", path=str(tmp_path / "other"), volume={"mountOptions": ["hard"]})
    with pytest.raises(VolumesFailedError, match=r"NodeAffinity check failed.*no matching NodeSelectorTerms"):
        node.mount_pod(_pod("one", "far"), timeout=20, attempts=1)
    with pytest.raises(VolumesFailedError, match="mount options are not supported for this volume type"):
        node.mount_pod(_pod("two", "hard"), timeout=20, attempts=1)
    plugin.mount_options = True
    assert node.wait_for_pod(node.api.get(Pod, "two", "default"), timeout=30).ready
    assert plugin.count("set_up") == 1


def test_br46_no_detach_while_the_device_is_mounted(node_of, disk, kept):
    plugin = disk()
    node = node_of(plugin)
    node.mount_pod(_pod("web"), timeout=20)
    plugin.trouble["unmount_device"] = _raise(OperationError("target is busy"))
    words = r"(?s)still mounted on the node, operation unmount_device.*target is busy"
    kept(node, "web", words)
    assert plugin.count("detach") == 0
    (volume,) = _volumes(node)
    assert volume.attachability is Attachability.TRUE
    assert volume.device_state.may_be_mounted
    del plugin.trouble["unmount_device"]
    node.unmount_pod("web", timeout=30)
    assert _volumes(node) == []
    assert plugin.count("detach") == 1


def test_br48_unmounting_waits_for_the_detach_which_is_tried_until_it_works(node_of, disk, root, kept):
    plugin = disk()
    node = node_of(plugin)
    node.mount_pod(_pod("web"), timeout=20)
    plugin.trouble["detach"] = _raise(OperationError("INTERNAL: try again"))
    kept(node, "web", r"(?s)still attached to the node, operation volume_detach.*try again")
    assert [status.name for status in node.status()] == ["web"]
    del plugin.trouble["detach"]
    node.unmount_pod("web", timeout=30)
    assert (node.status(), _volumes(node)) == ([], [])


def test_br48_a_crash_after_the_detach_repeats_it_and_a_pod_that_comes_attaches_again(node_of, disk, until, kept):
    plugin = disk()
    with node_of(plugin, enter=False) as node:
        node.mount_pod(_pod("one"), timeout=20)
        plugin.trouble["detach"] = _raise(OperationError("killed after it was done"))
        kept(node, "one")
        plugin.attached.clear()
        assert node.mount_pod(_pod("two"), timeout=30).ready
        assert _steps(plugin)[-4:] == ["attach", "wait_for_attach", "mount_device", "set_up"]
        kept(node, "two")
    after = disk()
    node = node_of(after, first=False)
    until(lambda: _volumes(node) == [])
    assert _steps(after) == ["detach"]


def test_br32_once_the_unstage_was_sent_the_next_pod_gets_a_stage_and_what_fails_then_is_still_unstaged(
    node_of, disk, until, kept
):
    plugin = disk()
    node = node_of(plugin)
    node.mount_pod(_pod("one"), timeout=20)
    plugin.trouble["unmount_device"] = _raise(OperationError("unmounted, and then failed"))
    kept(node, "one")
    plugin.calls.clear()
    plugin.trouble["mount_device"] = _raise(OperationError("INTERNAL"))
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod("two"), timeout=30, attempts=1)
    assert _steps(plugin)[-2:] == ["wait_for_attach", "mount_device"]
    assert plugin.count("set_up") == 0
    plugin.trouble.clear()
    node.unmount_pod("two", timeout=30)
    assert _steps(plugin)[-2:] == ["unmount_device", "detach"]


def test_br47_an_attach_that_may_have_worked_is_undone_even_after_a_restart(node_of, disk, until, kept, unready):
    plugin = disk()
    with node_of(plugin, enter=False) as node:
        plugin.trouble["attach"] = _raise(UncertainProgressError("deadline exceeded"))
        from_journal = node._now.parts.services.journal
        unready(node, _pod("web"), "deadline exceeded")
        assert any(record.get("att") == "attaching" for record in from_journal.entries().values())
        plugin.trouble["detach"] = _raise(OperationError("not now"))
        kept(node, "web")
    after = disk()
    node = node_of(after, first=False)
    until(lambda: _volumes(node) == [])
    assert _steps(after) == ["detach"]


def test_verifyatt01_a_restart_attaches_again_what_is_not_attached_any_more(node_of, disk):
    with node_of(disk(), enter=False) as node:
        node.mount_pod(_pod("web"), timeout=20)
    plugin = disk()
    node_of(plugin, first=False).mount_pod(_pod("web"), timeout=20)
    assert _steps(plugin) == ["attach", "wait_for_attach", "mount_device", "set_up"]


def test_a_restart_finds_the_device_and_stages_it_again_before_the_pod_uses_it(node_of, disk, mounts, data):
    with node_of(disk(), enter=False) as node:
        node.mount_pod(_pod("web"), timeout=20)
    plugin = disk()
    plugin.attached[data] = "node"
    with node_of(plugin, first=False, enter=False) as node:
        (volume,) = _volumes(node)
        assert volume.device_state is DeviceState.UNCERTAIN
        assert volume.device_path == "/dev/examplep1"
        assert volume.spec.persistent_volume.metadata.name == "pv-claim"
        node.mount_pod(_pod("web"), timeout=20)
        assert _steps(plugin) == ["wait_for_attach", "mount_device", "set_up"]
    assert len(mounts()) == 2


def test_br55_killed_between_the_pods_unmount_and_the_devices_the_device_is_found(node_of, disk, mounts, until, kept):
    plugin = disk()
    with node_of(plugin, enter=False) as node:
        node.mount_pod(_pod("web"), timeout=20)
        plugin.trouble["unmount_device"] = _raise(OperationError("not now"))
        kept(node, "web")
    assert len(mounts()) == 1
    after = disk()
    node = node_of(after, first=False)
    until(lambda: _volumes(node) == [])
    assert _steps(after) == ["unmount_device", "detach"]
    assert mounts() == []


def test_br55_and_a_pod_that_comes_then_gets_a_real_stage(node_of, disk, mounts, until, kept):
    plugin = disk()
    with node_of(plugin, enter=False) as node:
        node.mount_pod(_pod("one"), timeout=20)
        plugin.trouble["unmount_device"] = _raise(OperationError("not now"))
        kept(node, "one")
        plugin.calls.clear()
        assert node.mount_pod(_pod("two"), timeout=30).ready
        assert _steps(plugin)[-2:] == ["mount_device", "set_up"]
    assert len(mounts()) == 2


def test_recon30_without_a_journal_the_directories_tell_of_the_device_too(node_of, disk, mounts, root, until):
    with node_of(disk(), enter=False) as node:
        node.mount_pod(_pod("web"), timeout=20)
    os.unlink(f"{root}/volumes.journal")
    plugin = disk()
    with node_of(plugin, first=False, enter=False) as node:
        (volume,) = _volumes(node)
        assert volume.name == "example.com/disk//unknown"
        assert volume.device_state is DeviceState.UNCERTAIN
        assert volume.attachability is Attachability.TRUE  # it may be: a detach too many does no harm
        node.unmount_pod("web", timeout=20)
    assert _steps(plugin) == ["tear_down", "unmount_device", "detach"]


def test_recon13_a_volume_with_a_device_has_one_name_for_all_pods_also_where_nothing_attaches(
    node_of, disk, mounts, root
):
    with node_of(disk(attaches=False), enter=False) as node:
        node.mount_pod(_pod("web"), timeout=20)
    os.unlink(f"{root}/volumes.journal")
    plugin = disk(attaches=False)
    with node_of(plugin, first=False, enter=False) as node:
        (volume,) = _volumes(node)
        assert (volume.name, volume.attachability) == ("example.com/disk//unknown", Attachability.FALSE)
        node.unmount_pod("web", timeout=20)
    assert _steps(plugin) == ["tear_down", "unmount_device"]


def test_br48_a_look_at_a_pod_that_is_ending_does_not_forget_which_volumes_it_has(node_of, disk, kept):
    """A claim changed, so the pod is resolved anew, just after the word that its workload is over."""
    plugin = disk()
    node = node_of(plugin)
    node.mount_pod(_pod("web"), timeout=20)
    (record,) = node._now.parts.populator.records()
    plugin.trouble["unmount_device"] = _raise(OperationError("not now"))
    node._now.unmounting.end(record.pod.metadata.uid, "default", "web")
    node._now.mounting.resolve(record)
    kept(node, "web", "still mounted on the node")
    del plugin.trouble["unmount_device"]
    node.unmount_pod("web", timeout=30)
    assert _volumes(node) == []


def test_br46_what_is_just_being_staged_is_in_use(node_of, disk):
    """Between the look whether it is attached and the end of the stage nothing tells of a mount yet."""
    plugin, seen = disk(), {}
    node = node_of(plugin)
    control = node._now.parts.services.control

    def look(step):
        def action():
            (volume,) = _volumes(node)
            seen[step] = control.volume_in_use(volume.name)

        return action

    plugin.trouble = {step: look(step) for step in ORDER}
    node.mount_pod(_pod("web"), timeout=20)
    node.unmount_pod("web", timeout=20)
    assert seen == {step: step not in ("attach", "detach") for step in ORDER}


def test_verifyatt01_what_somebody_else_detached_before_it_was_staged_is_attached_again(node_of, disk):
    plugin = disk()
    node = node_of(plugin)

    def lost():
        plugin.trouble.clear()
        plugin.attached.clear()
        raise TransientOperationError("it is not attached")

    plugin.trouble["wait_for_attach"] = lost
    assert node.mount_pod(_pod("web"), timeout=20).ready
    assert _steps(plugin) == ["attach", "wait_for_attach", "attach", "wait_for_attach", "mount_device", "set_up"]


def test_attach02_every_pod_that_waits_is_told(node_of, disk):
    plugin = disk()
    node = node_of(plugin)
    plugin.trouble["attach"] = _raise(OperationError("no path"))
    for name, attempts in (("one", 1), ("two", 2)):
        with pytest.raises(VolumesFailedError):
            node.mount_pod(_pod(name), timeout=20, attempts=attempts)
    plugin.trouble.clear()
    for name in ("one", "two"):
        node.sync_pod(pod := node.api.get(Pod, name, "default"))  # at once, whatever the delay has grown to
        assert node.wait_for_pod(pod, timeout=30).ready
    node.host.flush_events(10)
    told = {
        (event.involved_object.name, event.reason)
        for event in node.api.list(Event).items
        if event.reason.endswith("AttachVolume")
    }
    assert told == {(name, f"{how}AttachVolume") for name in ("one", "two") for how in ("Failed", "Successful")}
