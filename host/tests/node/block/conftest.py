"""A volume plugin with raw block volumes on real loop devices, for the node's tests."""

import contextlib
import os

import pytest

from volumehost import Spec, hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume
from volumehost.errors import NotSupportedMetricsError
from volumehost.mount import loop


class BlockDisk:
    """Attaches the file that the nfs path of a PersistentVolume names; ``custom`` stages and publishes besides.

    ``trouble`` maps a step to what is called before it: it may raise or hang. ``size_seen`` are the sizes grown to.
    """

    def __init__(self, name="example.com/block", custom=True, attaches=True):
        self.name, self.custom, self.attaches = name, custom, attaches
        self.host = None
        self.calls, self.trouble, self.expansions = [], {}, []
        self.found_at = lambda device_path: device_path
        self.remount = False

    def step(self, name, *details):
        self.calls.append((name, *details))
        action = self.trouble.get(name)
        if action is not None:
            action()

    def count(self, name):
        return sum(call[0] == name for call in self.calls)

    @hookimpl
    def init(self, host):
        self.host = host

    @hookimpl
    def get_plugin_name(self):
        return self.name

    @hookimpl
    def get_volume_name(self, spec):
        return file_of(spec)

    @hookimpl
    def can_support(self, spec):
        return spec.source() == "nfs"

    @hookimpl
    def requires_remount(self, spec):
        return self.remount

    @hookimpl
    def new_mounter(self, spec, pod):
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError

    # --- devices

    @hookimpl
    def can_device_mount(self, spec):
        return True

    @hookimpl
    def can_attach(self, spec):
        return self.attaches

    @hookimpl
    def verify_exhausted_resource(self, spec):
        return False

    @hookimpl
    def new_device_mounter(self):
        raise AssertionError("a block volume has no device mounter")

    @hookimpl
    def new_device_unmounter(self):
        raise AssertionError("a block volume has no device unmounter")

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        return ()

    @hookimpl
    def new_attacher(self):
        return Attaching(self)

    @hookimpl
    def new_detacher(self):
        return Attaching(self)

    # --- growing

    @hookimpl
    def requires_fs_resize(self):
        return True

    @hookimpl
    def node_expand(self, resize_options):
        self.step("node_expand")
        self.expansions.append(resize_options)
        return True

    # --- block

    @hookimpl
    def new_block_volume_mapper(self, spec, pod):
        self.step("new_block_volume_mapper")
        kind = CustomMapping if self.custom else Mapping
        return kind(self, spec.name(), pod.metadata.uid, file_of(spec))

    @hookimpl
    def new_block_volume_unmapper(self, volume_name, pod_uid):
        kind = CustomMapping if self.custom else Mapping
        return kind(self, volume_name, pod_uid, "")

    @hookimpl
    def construct_block_volume_spec(self, pod_uid, volume_name, map_path):
        self.step("construct_block_volume_spec")
        with open(f"{self.record_dir()}/{volume_name}") as file:
            return spec_of(volume_name, file.read())

    def record_dir(self):
        return f"{self.host.get_plugin_dir(self.name)}/records"


class Attaching:
    """Loop devices that stand for attached disks."""

    def __init__(self, plugin):
        self.plugin = plugin

    def attach(self, spec, node_name):
        self.plugin.step("attach")
        found = loop.find(file_of(spec))
        return found[0] if found else loop.attach(file_of(spec))

    def volumes_are_attached(self, specs, node_name):
        return {spec: bool(loop.find(file_of(spec))) for spec in specs}

    def wait_for_attach(self, spec, device_path, pod, timeout):
        self.plugin.step("wait_for_attach", device_path)
        return self.plugin.found_at(device_path)

    def detach(self, volume_name, node_name):
        self.plugin.step("detach", volume_name)
        for device in loop.find(volume_name):
            loop.detach(device)


class Mapping:
    """The least that a block volume needs; keeps a record that a spec can be rebuilt from."""

    def __init__(self, plugin, name, pod_uid, file):
        self.plugin, self.name, self.pod_uid, self.file = plugin, name, pod_uid, file
        if file:
            os.makedirs(plugin.record_dir(), exist_ok=True)
            with open(f"{plugin.record_dir()}/{name}", "w") as record:
                record.write(file)

    def get_global_map_path(self, spec):
        return f"{self.plugin.host.get_volume_device_plugin_dir(self.plugin.name)}/{spec.name()}/dev"

    def get_pod_device_map_path(self):
        return self.plugin.host.get_pod_volume_device_dir(self.pod_uid, self.plugin.name), self.name

    def supports_metrics(self):
        return False

    def get_metrics(self):
        raise NotSupportedMetricsError("none")


class CustomMapping(Mapping):
    """Stages and publishes, like a CSI driver; publishing binds the device to a file for the pod."""

    def get_staging_path(self):
        return f"{self.plugin.host.get_plugin_dir(self.plugin.name)}/staging/{self.name}"

    def publish_path(self):
        return f"{self.plugin.host.get_plugin_dir(self.plugin.name)}/publish/{self.name}/{self.pod_uid}"

    def set_up_device(self):
        self.plugin.step("set_up_device")
        os.makedirs(self.get_staging_path(), exist_ok=True)
        return self.get_staging_path()

    def map_pod_device(self):
        self.plugin.step("map_pod_device")
        path, mounter = self.publish_path(), self.plugin.host.get_mounter()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        if not mounter.is_mount_point(path):
            mounter.mount(loop.find(self.file)[0], path, options=["bind"])
        return path

    def unmap_pod_device(self):
        self.plugin.step("unmap_pod_device")
        if os.path.exists(self.publish_path()):
            self.plugin.host.get_mounter().unmount(self.publish_path())
            os.unlink(self.publish_path())

    def tear_down_device(self, map_path, device_path):
        self.plugin.step("tear_down_device", map_path)
        if os.path.exists(self.get_staging_path()):
            os.rmdir(self.get_staging_path())


def file_of(spec):
    return spec.persistent_volume.spec.nfs.path


def spec_of(name, file):
    body = {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Mi"},
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Block",
            "nfs": {"server": "s", "path": file},
        },
    }
    return Spec.from_persistent_volume(to_object(PersistentVolume, body), read_only=False)


def attached_loops():
    """(device, backing file) of every loop device that is attached."""
    found = []
    for name in os.listdir("/sys/block"):
        with contextlib.suppress(OSError), open(f"/sys/block/{name}/loop/backing_file") as file:
            found.append((f"/dev/{name}", file.read().strip()))
    return found


@pytest.fixture
def loops(tmp_path):
    """The files below the test's directory that loop devices are attached to; detached at the end."""

    def below():
        return sorted(file for _, file in attached_loops() if file.startswith(f"{tmp_path}/"))

    yield below
    for _ in range(3):
        for device, file in attached_loops():
            if file.startswith(f"{tmp_path}/"):
                with contextlib.suppress(Exception):
                    loop.detach(device)


@pytest.fixture
def disk_file(tmp_path, loops):
    """The file behind the disk."""
    path = tmp_path / "disk.img"
    path.write_bytes(b"on the disk".ljust(1 << 20, b"."))
    return str(path)


@pytest.fixture
def block_disk():
    return BlockDisk


@pytest.fixture
def block_claim(claimed, disk_file):
    """A bound claim for the disk as a raw block device."""

    def make(api, name="claim", *, file=None, modes=("ReadWriteOnce",), claim=None, volume=None):
        both = {"volumeMode": "Block", "accessModes": list(modes)}
        claim, volume = {**both, **(claim or {})}, {**both, **(volume or {})}
        return claimed(api, name, path=file or disk_file, claim=claim, volume=volume)

    return make


@pytest.fixture
def block_pod():
    """A pod with the claim as a device."""

    def make(name="web", claim="claim", **source):
        container = {"name": "c", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/dev/xvda"}]}
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim, **source}}
        return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": [volume]}}

    return make
