"""A claim that is made anew under a pod takes nothing from the pod (BR-51)."""

import pytest

from volumehost.api.objects import PersistentVolumeClaim, Pod
from volumehost.node.populating.pod_objects import apply_pod

pytestmark = pytest.mark.root

CLAIMED = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}


@pytest.fixture
def other(tmp_path):
    directory = tmp_path / "other"
    directory.mkdir()
    return str(directory)


@pytest.fixture
def make_anew(claimed, other):
    """Another claim of that name, bound to another volume; the former one is taken away by force."""

    def run(api):
        api.patch(PersistentVolumeClaim, "claim", {"metadata": {"finalizers": None}}, "default")
        api.delete(PersistentVolumeClaim, "claim", "default")
        claimed(api, claim={"volumeName": "pv-new"}, volume={"metadata": {"name": "pv-new"}}, path=other)

    return run


def pod_of(node):
    return node.api.get(Pod, "web", "default")


def test_br51_a_pod_keeps_its_volume_until_it_ends(manager, disk, make_pod, claimed, mounts, make_anew, until):
    plugin = disk()
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        status = node.mount_pod(make_pod(CLAIMED, uid=""), timeout=20)
        before = mounts()
        make_anew(node.api)
        node.sync_pod(pod_of(node))
        until(lambda: "the pod keeps pv-claim" in node.pod_status(pod_of(node)).volumes[0].error)
        assert (plugin.count("tear_down"), mounts()) == (0, before)
    with manager(plugin, enter=False) as node:  # which knows the name of the volume from its journal
        node.sync_pod(pod_of(node))
        until(lambda: "the pod keeps pv-claim" in node.pod_status(pod_of(node)).volumes[0].error)
        (volume,) = node.pod_status(pod_of(node)).volumes
        assert (volume.state, volume.path) == ("pending", status.volumes[0].path)
        assert (plugin.count("tear_down"), mounts()) == (0, before)
        node.unmount_pod("web", timeout=20)
        assert mounts() == []
        fresh = node.mount_pod(make_pod(CLAIMED, uid=""), timeout=20)
        assert fresh.volumes[0].path.endswith("pv-new")


def test_a_pod_that_has_nothing_yet_gets_the_new_one(manager, disk, make_pod, claimed, mounts, make_anew, until):
    plugin = disk()
    plugin.trouble["set_up"] = lambda: (_ for _ in ()).throw(OSError("no"))
    node = manager(plugin)
    claimed(node.api)
    pod = apply_pod(node.api, make_pod(CLAIMED, uid=""))
    node.sync_pod(pod)
    until(lambda: plugin.count("set_up"))
    make_anew(node.api)
    node.sync_pod(pod)
    desired = node.parts.services.desired
    until(lambda: [use.inner_name for use in desired.uses_of_pod(pod.metadata.uid)] == ["pv-new"])
    plugin.trouble.clear()
    until(lambda: node.pod_status(pod).ready)
    assert node.pod_status(pod).volumes[0].path.endswith("pv-new")
    until(lambda: len(mounts()) == 2, what="nothing of the former volume is left")
