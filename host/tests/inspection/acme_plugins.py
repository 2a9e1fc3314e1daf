"""Volume plugins whose volumes are bind mounts of directories: of files alone, and of devices that are attached."""

import os

from volumehost import Attributes, ReconstructedVolume, Spec, hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import Volume
from volumehost.errors import NotSupportedMetricsError
from volumehost.sdk import cleanup_mount_point


class Shares:
    """A volume plugin that binds the directory that an nfs source names; its devices are bound below ``plugins``."""

    name = "example.com/share"

    def __init__(self, *, device=False, attaches=False):
        self.device, self.attaches = device, attaches
        self.host = None
        self.calls = []

    @hookimpl
    def init(self, host):
        self.host = host

    @hookimpl
    def get_plugin_name(self):
        return self.name

    @hookimpl
    def get_volume_name(self, spec):
        return path_of(spec)

    @hookimpl
    def can_support(self, spec):
        return spec.source() == "nfs"

    @hookimpl
    def new_mounter(self, spec, pod):
        source = self.global_path(spec) if self.device else path_of(spec)
        return Share(self, source, self.host.get_pod_volume_dir(pod.metadata.uid, self.name, spec.name()))

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        return Share(self, "", self.host.get_pod_volume_dir(pod_uid, self.name, volume_name))

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        volume = to_object(Volume, {"name": volume_name, "nfs": {"server": "s", "path": "/unknown"}})
        return ReconstructedVolume(Spec.from_volume(volume), complete=False)

    def global_path(self, spec):
        return f"{self.host.get_plugin_dir(self.name)}/mounts/{os.path.basename(path_of(spec))}"


class Disks(Shares):
    """The same with a device, which is attached."""

    def __init__(self):
        super().__init__(device=True)

    @hookimpl
    def can_device_mount(self, spec):
        return True

    @hookimpl
    def can_attach(self, spec):
        return True

    @hookimpl
    def verify_exhausted_resource(self, spec):
        return False

    @hookimpl
    def new_device_mounter(self):
        return Device(self)

    @hookimpl
    def new_device_unmounter(self):
        return Device(self)

    @hookimpl
    def new_attacher(self):
        return Device(self)

    @hookimpl
    def new_detacher(self):
        return Device(self)

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        return self.host.get_mounter().get_mount_refs(device_mount_path)


class Share:
    def __init__(self, plugin, source, target):
        self.plugin, self.source, self.target = plugin, source, target

    def get_path(self):
        return self.target

    def get_attributes(self):
        return Attributes()

    def get_metrics(self):
        raise NotSupportedMetricsError("none")

    def set_up(self, args):
        os.makedirs(self.target, mode=0o750, exist_ok=True)
        mounter = self.plugin.host.get_mounter()
        if not mounter.is_mount_point(self.target):
            mounter.mount(self.source, self.target, options=["bind"])

    def set_up_at(self, directory, args):
        raise NotImplementedError

    def tear_down(self):
        self.plugin.calls.append(("tear_down", self.target))
        cleanup_mount_point(self.target, self.plugin.host.get_mounter(), True)

    def tear_down_at(self, directory):
        raise NotImplementedError


class Device:
    def __init__(self, plugin):
        self.plugin = plugin

    def attach(self, spec, node_name):
        return "/dev/example"

    def volumes_are_attached(self, specs, node_name):
        return dict.fromkeys(specs, True)

    def wait_for_attach(self, spec, device_path, pod, timeout):
        return device_path

    def detach(self, volume_name, node_name):
        self.plugin.calls.append(("detach", volume_name))

    def get_device_mount_path(self, spec):
        return self.plugin.global_path(spec)

    def mount_device(self, spec, device_path, device_mount_path, args):
        os.makedirs(device_mount_path, mode=0o750, exist_ok=True)
        mounter = self.plugin.host.get_mounter()
        if not mounter.is_mount_point(device_mount_path):
            mounter.mount(path_of(spec), device_mount_path, options=["bind"])

    def unmount_device(self, device_mount_path):
        self.plugin.calls.append(("unmount_device", device_mount_path))
        cleanup_mount_point(device_mount_path, self.plugin.host.get_mounter(), True)


def path_of(spec):
    return spec.volume.nfs.path if spec.volume is not None else spec.persistent_volume.spec.nfs.path
