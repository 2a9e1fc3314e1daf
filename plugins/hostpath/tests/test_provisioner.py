"""Provisioning: HOSTPATH-44 to -47, in a base directory that others may have got at first."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path

import pytest

from volumehost import VolumeConfig, VolumeOptions
from volumehost.errors import OperationNotSupportedError, SpecError, UnsafePathError, VolumeHostError
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_hostpath.plugin import HostPathPlugin
from volumehost_hostpath.provisioner import set_container_label


def test_a_directory_and_the_volume_that_describes_it(plugin, base, make_claim):
    options = VolumeOptions(
        pv_name="pvc-1", pvc=make_claim(), persistent_volume_reclaim_policy="Retain", mount_options=("noatime",)
    )
    volume = plugin.new_provisioner(options).provision()
    path = volume.spec.host_path.path
    parent, name = os.path.split(path)
    assert parent == f"{base}/hostpath_pv"
    assert str(uuid.UUID(name)) == name
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o750
    assert stat.S_IMODE(os.stat(parent).st_mode) == 0o750
    assert volume.metadata.name == "pvc-1"
    assert volume.metadata.annotations == {"kubernetes.io/createdby": "hostpath-dynamic-provisioner"}
    assert volume.spec.capacity == {"storage": "3Gi"}
    assert volume.spec.access_modes == ["ReadWriteOnce"]
    assert volume.spec.persistent_volume_reclaim_policy == "Retain"
    assert volume.spec.mount_options == ["noatime"]


def test_the_claims_access_modes(plugin, make_claim):
    claim = make_claim(access_modes=["ReadWriteMany", "ReadOnlyMany"])
    volume = plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=claim)).provision()
    assert volume.spec.access_modes == ["ReadWriteMany", "ReadOnlyMany"]


def test_each_volume_has_a_directory_of_its_own(plugin, make_claim):
    provisioner = plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim()))
    assert provisioner.provision().spec.host_path.path != provisioner.provision().spec.host_path.path


def test_the_default_base_is_the_literal_prefix():
    from volumehost_hostpath.settings import base_directory

    assert base_directory(VolumeConfig()) == "/tmp"


@pytest.mark.parametrize("base", ["", "relative", "/a/../b", "/", "//", "."])
def test_a_base_that_is_no_directory_below_the_root_is_refused(directory, make_claim, base):
    plugin = HostPathPlugin()
    config = VolumeConfig(provisioning_enabled=True, other_attributes={"base_dir": base})
    plugin.init(PluginTestHost(directory, volume_config=config))
    with pytest.raises(SpecError, match="base_dir"):
        plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim()))


def test_block_claims_are_refused(plugin, base, make_claim):
    claim = make_claim(volume_mode="Block")
    with pytest.raises(OperationNotSupportedError, match="host-path does not support block volume provisioning"):
        plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=claim)).provision()
    assert os.listdir(base) == []


def test_disabled_unless_asked_for(directory, make_claim, make_pv_spec):
    plugin = HostPathPlugin()
    plugin.init(PluginTestHost(directory))
    disabled = 'provisioning in volume plugin "kubernetes.io/host-path" is disabled'
    with pytest.raises(OperationNotSupportedError, match=disabled):
        plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim()))
    with pytest.raises(OperationNotSupportedError, match=disabled):
        plugin.new_deleter(make_pv_spec("/tmp/x"))


@pytest.mark.parametrize("planted", ["link", "file", "others"])
@pytest.mark.root
def test_a_directory_that_somebody_else_put_there_is_not_used(plugin, base, directory, make_claim, planted):
    os.mkdir(f"{directory}/elsewhere")
    path = f"{base}/hostpath_pv"
    if planted == "link":
        os.symlink(f"{directory}/elsewhere", path)
    elif planted == "file":
        Path(path).touch()
    else:
        os.mkdir(path)
        os.chown(path, 12345, -1)
    with pytest.raises((VolumeHostError, UnsafePathError), match="hostpath_pv"):
        plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim())).provision()
    assert os.listdir(f"{directory}/elsewhere") == []
    assert planted != "others" or os.listdir(path) == []


def test_a_directory_that_others_can_write_to_is_not_used(plugin, base, make_claim):
    os.mkdir(f"{base}/hostpath_pv")
    os.chmod(f"{base}/hostpath_pv", 0o1777)
    with pytest.raises(UnsafePathError, match="others can change it"):
        plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim())).provision()


@pytest.mark.root
def test_a_full_or_read_only_base_yields_an_error_and_nothing_else(plugin, base, make_claim):
    LinuxMounter().mount("tmpfs", base, "tmpfs", ["size=1M", "ro"])
    try:
        with pytest.raises(VolumeHostError, match="Read-only file system"):
            plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim())).provision()
    finally:
        LinuxMounter().unmount(base)


@pytest.mark.root
def test_the_container_label(base):
    """HOSTPATH-46: what SELinux reads; any filesystem with extended attributes can hold it."""
    LinuxMounter().mount("tmpfs", base, "tmpfs", ["size=1M"])
    try:
        fd = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        try:
            set_container_label(fd)
            assert os.getxattr(fd, "security.selinux").rstrip(b"\0") == b"system_u:object_r:container_file_t:s0"
        finally:
            os.close(fd)
    finally:
        LinuxMounter().unmount(base)


def test_provision_then_delete(plugin, make_claim):
    """HOSTPATH-47."""
    from volumehost import Spec

    volume = plugin.new_provisioner(VolumeOptions(pv_name="pvc-1", pvc=make_claim())).provision()
    path = volume.spec.host_path.path
    Path(path, "data").touch()
    deleter = plugin.new_deleter(Spec.from_persistent_volume(volume, read_only=False))
    assert deleter.get_path() == path
    deleter.delete()
    assert not os.path.exists(path)
    deleter.delete()
