"""What containers get of a pod that an earlier manager mounted: told by the record, without setting anything up."""

import os
import subprocess

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import FailedPreconditionError, UnsafePathError
from volumehost.mount import syscalls

pytestmark = pytest.mark.root


def pod_of(*volumes, mounts=None, **spec):
    wanted = mounts or [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    return {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": wanted}], "volumes": list(volumes), **spec},
    }


@pytest.fixture
def mounted_before(manager, bind):
    """Mount a pod with a manager that ends; hand over the containers' mounts that it told."""

    def run(pod, plugin=None):
        with manager(plugin or bind(), enter=False) as node:
            return node.container_mounts(node.mount_pod(pod, timeout=20))

    return run


def stored(node):
    return node.api.get(Pod, "web", "default")


def test_the_next_manager_tells_the_same_and_sets_nothing_up(manager, bind, nfs, mounted_before):
    mounts = [
        {"name": "a", "mountPath": "/a", "readOnly": True},
        {"name": "a", "mountPath": "/s", "subPath": "new"},
        {"name": "b", "mountPath": "b/../b/"},
    ]
    before = mounted_before(pod_of(nfs("a"), nfs("b"), mounts=mounts))
    assert [mount.container_path for mount in before[0].mounts] == ["/a", "/s", "/b"]
    plugin = bind()
    node = manager(plugin)
    assert node.container_mounts(stored(node)) == before
    (status,) = node.status()
    assert node.container_mounts(status) == before
    assert plugin.count("set_up") == plugin.count("tear_down") == 0


def test_a_subpath_that_was_not_bound_yet_is_bound_and_goes_with_the_volume(manager, bind, nfs, mounts):
    wanted = [{"name": "a", "mountPath": "/s", "subPath": "new/dir"}]
    with manager(bind(), enter=False) as node:
        node.mount_pod(pod_of(nfs("a"), mounts=wanted), timeout=20)
    assert len(mounts()) == 1
    with manager(bind(), enter=False) as node:
        node.container_mounts(stored(node))
    assert len(mounts()) == 2
    with manager(bind(), enter=False) as node:
        node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_br58_a_volume_that_was_unmounted_meanwhile_is_not_handed_out(manager, bind, nfs, mounts, mounted_before):
    mounted_before(pod_of(nfs("a")))
    syscalls.umount2(mounts()[0], 0)
    node = manager(bind())
    with pytest.raises(FailedPreconditionError, match='cannot find volume "a" to mount into container "c"'):
        node.container_mounts(stored(node))
    assert node.mount_pod(pod_of(nfs("a")), timeout=20).ready
    assert node.container_mounts(stored(node))[0].mounts[0].host_path == mounts()[0]


def test_after_a_reboot_nothing_is_handed_out(manager, bind, nfs, mounted_before):
    mounted_before(pod_of(nfs("a")))
    node = manager(bind(), boot_id="another")
    with pytest.raises(FailedPreconditionError, match="cannot find volume"):
        node.container_mounts(stored(node))


def test_a_volume_that_failed_is_told_with_its_reason(manager, bind, nfs):
    plugin = bind()

    def refuse():
        raise OSError("the disk is on fire")

    plugin.trouble["set_up"] = refuse
    with manager(plugin, enter=False) as node, pytest.raises(Exception, match="on fire"):
        node.mount_pod(pod_of(nfs("a")), timeout=20, attempts=1)
    node = manager(bind())
    with pytest.raises(FailedPreconditionError, match=r'volume "a" to mount into container "c": .*on fire'):
        node.container_mounts(stored(node))


def test_a_claim_that_cannot_be_followed_is_told_with_its_reason(manager, bind, claimed):
    node = manager(bind(), controllers=False)
    claimed(node.api, phase="Pending")
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    pod = node.api.create({"apiVersion": "v1", "kind": "Pod", **_named(pod_of(claim))})
    with pytest.raises(FailedPreconditionError, match=r'volume "v" .*PVC is not bound'):
        node.container_mounts(pod)


def _named(pod):
    return {**pod, "metadata": {**pod["metadata"], "namespace": "default"}}


def test_pods_that_are_not_mounted_or_are_gone(manager, bind, nfs, mounted_before):
    mounted_before(pod_of(nfs("a")))
    with manager(bind(), enter=False) as node:
        pod = stored(node)
        node.unmount_pod("web", timeout=20)
        with pytest.raises(FailedPreconditionError, match="it is not mounted"):
            node.container_mounts(pod)
        again = node.api.create({"apiVersion": "v1", "kind": "Pod", **_named(pod_of(nfs("a")))})
        with pytest.raises(FailedPreconditionError, match="it is not mounted"):
            node.container_mounts(pod)  # another pod of the same name
        with pytest.raises(FailedPreconditionError, match="cannot find volume"):
            node.container_mounts(again)


def test_a_pod_whose_unmount_was_begun(manager, bind, nfs, mounted_before):
    mounted_before(pod_of(nfs("a")))
    plugin = bind()

    def busy():
        raise OSError("busy")

    plugin.trouble["tear_down"] = busy
    with manager(plugin, enter=False) as node:
        pod = stored(node)
        with pytest.raises(Exception, match="mounted volumes"):
            node.unmount_pod("web", timeout=0.2)
    node = manager(plugin)
    with pytest.raises(FailedPreconditionError, match="it is being unmounted"):
        node.container_mounts(pod)


# --- containers that start again ------------------------------------------------------------------------------------


SUBPATH = [{"name": "a", "mountPath": "/s", "subPath": "sub"}]


def test_a_container_that_starts_again_gets_the_same_subpath(manager, bind, nfs, mounts):
    node = manager(bind())
    status = node.mount_pod(pod_of(nfs("a"), mounts=SUBPATH), timeout=20)
    first = node.container_mounts(status)
    held = os.open(first[0].mounts[0].host_path, os.O_RDONLY)  # as a running container would
    try:
        assert node.container_mounts(status) == first
        assert len(mounts()) == 2
    finally:
        os.close(held)


def test_a_subpath_that_the_workload_made_anew_is_bound_anew(manager, bind, nfs, data, mounts):
    node = manager(bind())
    status = node.mount_pod(pod_of(nfs("a"), mounts=SUBPATH), timeout=20)
    (first,) = node.container_mounts(status)[0].mounts
    os.rename(f"{data}/sub", f"{data}/old")
    os.mkdir(f"{data}/sub")
    (again,) = node.container_mounts(status)[0].mounts
    assert again.host_path == first.host_path
    assert os.path.samefile(again.host_path, f"{data}/sub")
    assert len(mounts()) == 2


def test_what_is_refreshed_keeps_the_subpaths_of_running_containers(manager, bind, nfs, mounts):
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    status = node.mount_pod(pod_of(nfs("a"), mounts=SUBPATH), timeout=20)
    (first,) = node.container_mounts(status)[0].mounts
    before = os.stat(first.host_path)
    node.sync_pod(stored(node))
    node.wait_for_pod(stored(node), timeout=20)
    assert plugin.count("set_up") == 2
    assert os.path.samestat(os.stat(first.host_path), before)
    assert node.container_mounts(status)[0].mounts == (first,)


def test_a_volume_that_was_lost_and_mounted_again_gives_subpaths_of_the_new_mount(manager, bind, nfs, data, mounts):
    """The subpath's own bind outlives the volume's mount; a container that starts again must not get the old one."""
    os.mkdir(f"{data}/disk")
    syscalls.mount("one", f"{data}/disk", "tmpfs", 0, "")
    node = manager(bind())
    pod = pod_of(nfs("a", path=f"{data}/disk"), mounts=SUBPATH)
    status = node.mount_pod(pod, timeout=20)
    (old,) = node.container_mounts(status)[0].mounts
    syscalls.umount2(status.volumes[0].path, 0)
    syscalls.mount("two", f"{data}/disk", "tmpfs", 0, "")
    status = node.mount_pod(pod, timeout=20)
    (new,) = node.container_mounts(status)[0].mounts
    assert new.host_path == old.host_path
    assert os.path.samefile(new.host_path, f"{data}/disk/sub")
    node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_init_and_regular_containers_of_one_name_each_have_places_of_their_own(manager, bind, nfs):
    pod = pod_of(nfs("a"), mounts=[*SUBPATH, {"name": "a", "mountPath": "/t", "subPath": "sub"}])
    pod["spec"]["initContainers"] = [{"name": "i", "image": "i", "volumeMounts": SUBPATH}]
    node = manager(bind())
    paths = [m.host_path for c in node.container_mounts(node.mount_pod(pod, timeout=20)) for m in c.mounts]
    assert [path.split("/volume-subpaths/")[1] for path in paths] == ["a/i/0", "a/c/0", "a/c/1"]


# --- read-only volumes, owners, modes -------------------------------------------------------------------------------


@pytest.fixture
def read_only(data):
    """The data on a mount that is read-only, with one directory in it."""
    os.mkdir(f"{data}/disk")
    syscalls.mount("disk", f"{data}/disk", "tmpfs", 0, "mode=0751")
    os.mkdir(f"{data}/disk/there")
    syscalls.mount("", f"{data}/disk", "", syscalls.MS_REMOUNT | syscalls.MS_RDONLY, "")
    return f"{data}/disk"


def test_a_subpath_of_a_read_only_volume_that_is_there(manager, bind, nfs, read_only):
    node = manager(bind())
    pod = pod_of(nfs("a", path=read_only), mounts=[{"name": "a", "mountPath": "/s", "subPath": "there"}])
    (mount,) = node.container_mounts(node.mount_pod(pod, timeout=20))[0].mounts
    assert os.path.samefile(mount.host_path, f"{read_only}/there")


def test_a_subpath_that_a_read_only_volume_lacks_is_a_clear_error(manager, bind, nfs, read_only):
    node = manager(bind())
    pod = pod_of(nfs("a", path=read_only), mounts=[{"name": "a", "mountPath": "/s", "subPath": "absent"}])
    status = node.mount_pod(pod, timeout=20)
    with pytest.raises(UnsafePathError) as caught:
        node.container_mounts(status)
    reason = 'failed to create subPath directory for volumeMount "a" of container "c": the volume is read-only'
    assert str(caught.value) == reason
    assert not os.path.exists(f"{node.root_dir}/pods/{status.uid}/volume-subpaths")


def test_directories_get_the_mode_and_the_group_of_the_volume(manager, bind, nfs, data):
    os.chmod(data, 0o2771)
    os.chown(data, -1, 4321)
    node = manager(bind())
    pod = pod_of(nfs("a"), mounts=[{"name": "a", "mountPath": "/s", "subPath": "x/y"}])
    before = os.umask(0o077)
    try:
        node.container_mounts(node.mount_pod(pod, timeout=20))
    finally:
        os.umask(before)
    for directory in ("x", "x/y"):
        found = os.stat(f"{data}/{directory}")
        assert (found.st_mode & 0o7777, found.st_gid) == (0o2771, 4321), directory


def test_vm13_groups_of_the_pod_and_of_its_volumes(manager, bind, claimed):
    node = manager(bind(), controllers=False)
    for name, group in (("one", "1234"), ("two", "77"), ("three", "none"), ("four", "²")):
        annotations = {"annotations": {"pv.beta.kubernetes.io/gid": group}}
        claimed(node.api, name, volume={"metadata": annotations}, claim={"metadata": {}})
    volumes = [
        {"name": f"v{name}", "persistentVolumeClaim": {"claimName": name}} for name in ("one", "two", "three", "four")
    ]
    context = {"securityContext": {"supplementalGroups": [77, 88], "fsGroup": 99}}
    (container,) = node.container_mounts(node.mount_pod(pod_of(*volumes, **context), timeout=20))
    assert container.supplemental_groups == (77, 88, 99, 1234)


# --- propagation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "kind"), [("private", "private"), ("shared", "shared"), ("slave", "slave")])
def test_what_the_host_mount_lets_through_is_told_where_it_matters(manager, bind, nfs, data, make, kind):
    os.mkdir(f"{data}/disk")
    syscalls.mount("disk", f"{data}/disk", "tmpfs", 0, "")
    subprocess.run(["mount", "--make-shared", f"{data}/disk"], check=True)
    if make != "shared":
        subprocess.run(["mount", f"--make-{make}", f"{data}/disk"], check=True)
    if make == "slave":  # of a mount that is gone it would be private
        os.mkdir(f"{data}/peer")
        subprocess.run(["mount", "--make-shared", f"{data}/disk"], check=True)
        subprocess.run(["mount", "--bind", f"{data}/disk", f"{data}/peer"], check=True)
        subprocess.run(["mount", "--make-slave", f"{data}/disk"], check=True)
    wanted = [
        {"name": "a", "mountPath": "/a", "mountPropagation": "HostToContainer"},
        {"name": "a", "mountPath": "/b"},
    ]
    node = manager(bind())
    pod = pod_of(nfs("a", path=f"{data}/disk"), mounts=wanted)
    told, untold = node.container_mounts(node.mount_pod(pod, timeout=20))[0].mounts
    assert (told.propagation, told.host_propagation) == ("HostToContainer", kind)
    assert (untold.propagation, untold.host_propagation) == ("None", "")
