"""Arguments of bwrap: binds in the order of their depth, devices as devices, and what it cannot do."""

import os
import stat

import pytest

from volumehost.errors import ContainerRuntimeError, FailedPreconditionError
from volumehost.node.workloads.containers import ContainerDevice
from volumehost.runtimes.bwrap import bwrap_arguments


@pytest.fixture
def here(tmp_path):
    return str(tmp_path)


def test_binds_by_depth(container, mount, here):
    made = bwrap_arguments(container(mount("/a/b", here, read_only=True), mount("/", here), mount("/a", here)))
    assert made == ["--bind", here, "/", "--bind", here, "/a", "--ro-bind", here, "/a/b"]


@pytest.mark.parametrize("path", ["/a b", "/a,b", "/a:b", "/a\nb", "/ä'\"$"])
def test_any_path_is_an_argument_of_its_own(container, mount, here, path):
    assert bwrap_arguments(container(mount(path, here))) == ["--bind", here, path]


@pytest.mark.parametrize("mode", ["", "IfPossible", "Enabled"])
def test_its_read_only_bind_is_recursive(container, mount, here, mode):
    item = mount("/a", here, read_only=True, recursive_read_only=mode)
    assert bwrap_arguments(container(item)) == ["--ro-bind", here, "/a"]


def test_what_has_to_stay_writable_below_a_read_only_mount_is_refused(container, mount, here):
    with pytest.raises(ContainerRuntimeError, match="recursiveReadOnly Disabled"):
        bwrap_arguments(container(mount("/a", here, read_only=True, recursive_read_only="Disabled")))


def test_mounts_come_in_and_do_not_go_out(container, mount, here):
    follows = mount("/a", here, propagation="HostToContainer", host_propagation="shared")
    assert bwrap_arguments(container(follows)) == ["--bind", here, "/a"]
    with pytest.raises(ContainerRuntimeError, match="needs a host mount that is shared or slave"):
        bwrap_arguments(container(mount("/a", here, propagation="HostToContainer", host_propagation="private")))
    with pytest.raises(ContainerRuntimeError, match="does not let mounts out"):
        bwrap_arguments(container(mount("/a", here, propagation="Bidirectional", host_propagation="shared")))


@pytest.mark.parametrize("read_only", [True, False])
def test_a_device_file_in_a_volume_stays_usable(container, mount, read_only):
    """A bind of another kind has nodev: the device could not be opened. Writing to a device is no matter of a mount."""
    assert bwrap_arguments(container(mount("/n", "/dev/null", read_only=read_only))) == [
        "--dev-bind",
        "/dev/null",
        "/n",
    ]


@pytest.mark.parametrize("path", ["/dev/null", "/absent"])
def test_a_block_volume_that_is_no_block_device_any_more(container, path):
    with pytest.raises(FailedPreconditionError, match=f"exporting block volume d: {path}"):
        bwrap_arguments(container(ContainerDevice("d", path, "/dev/xvda", read_only=True)))


def test_a_path_that_is_gone_is_an_error(container, mount):
    with pytest.raises(OSError, match="No such file"):
        bwrap_arguments(container(mount("/a", "/absent")))


@pytest.mark.root
def test_block_devices(container, tmp_path):
    node = tmp_path / "node"
    os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(7, 0))
    device = ContainerDevice("d", str(node), "/dev/xvda")
    assert bwrap_arguments(container(device)) == ["--dev-bind", str(node), "/dev/xvda"]
