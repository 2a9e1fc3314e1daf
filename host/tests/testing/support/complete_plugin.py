"""A plugin with every interface, over directories and bind mounts: what good behaviour is for the conformance run.

Its "array" is a directory: for each volume a directory ``<handle>`` with the data, a size, and who it is attached to.
The ``broken_*`` modules break it in one respect at a time, by other classes for what it returns.
"""

from __future__ import annotations

import os
import re
import shutil

from volumehost import (
    Attributes,
    ReconstructedVolume,
    Spec,
    VolumeHost,
    errors,
    hookimpl,
    sdk,
)

NAME = "example.com/complete"


def source_of(spec):
    source = None
    if spec.volume is not None:
        source = spec.volume.flex_volume
    elif spec.persistent_volume is not None:
        source = spec.persistent_volume.spec.flex_volume
    return source if source is not None and source.driver == NAME else None


def handle_of(spec):
    source = source_of(spec)
    if source is None:
        raise errors.SpecError(f"not a volume of {NAME}", subject=spec.name())
    handle = source.options.get("handle", spec.name())
    if not re.fullmatch(r"[\w-]{1,100}", handle):
        raise errors.SpecError(f"{handle!r} is no handle", action="reading the option handle", subject=spec.name())
    return handle


class Volume:
    """Mounter and unmounter: a bind mount of the device's global mount."""

    def __init__(self, plugin, name, uid, handle="", read_only=False):
        self.plugin, self.host, self.name, self.uid = plugin, plugin.host, name, uid
        self.handle, self.read_only = handle, read_only
        self.path = self.host.get_pod_volume_dir(uid, NAME, name)

    def get_path(self):
        return self.path

    def is_mounted(self, directory):
        return os.path.exists(directory) and self.host.get_mounter().is_mount_point(directory)

    def get_attributes(self):
        return Attributes(read_only=self.read_only, managed=not self.read_only)

    def get_metrics(self):
        return sdk.StatFsMetrics(self.path).get_metrics()

    def set_up(self, args):
        self.set_up_at(self.path, args)

    def set_up_at(self, directory, args):
        sdk.make_directories(directory)
        mounter = self.host.get_mounter()
        if not mounter.is_mount_point(directory):
            device = self.plugin.device_mounts(self.plugin).path_of(self.handle)
            mounter.mount(device, directory, "", ["bind", *(["ro"] if self.read_only else [])])
        sdk.apply_ownership(self, directory, args)

    def tear_down(self):
        self.tear_down_at(self.path)

    def tear_down_at(self, directory):
        sdk.cleanup_mount_point(directory, self.host.get_mounter(), extensive=True)


class DeviceMounts:
    """Device mounter and unmounter: the volume's data, mounted once."""

    def __init__(self, plugin):
        self.plugin, self.host = plugin, plugin.host

    def path_of(self, handle):
        return f"{self.host.get_plugin_dir(NAME)}/mounts/{handle}"

    def get_device_mount_path(self, spec):
        return self.path_of(handle_of(spec))

    def mount_device(self, spec, device_path, device_mount_path, args):
        sdk.make_directories(device_mount_path)
        mounter = self.host.get_mounter()
        if not mounter.is_mount_point(device_mount_path):
            mounter.mount(device_path, device_mount_path, "", ["bind"])

    def unmount_device(self, device_mount_path):
        sdk.cleanup_mount_point(device_mount_path, self.host.get_mounter(), extensive=True)


class Attachments:
    """Attacher and detacher: a file says which node has the volume."""

    def __init__(self, plugin):
        self.plugin = plugin

    def file_of(self, handle, node):
        return f"{self.plugin.array}/{handle}/attached-to-{node}"

    def attach(self, spec, node_name):
        handle = handle_of(spec)
        self.plugin.create(handle)
        with open(self.file_of(handle, node_name), "a"):
            return self.plugin.data_of(handle)

    def volumes_are_attached(self, specs, node_name):
        return {spec: os.path.exists(self.file_of(handle_of(spec), node_name)) for spec in specs}

    def wait_for_attach(self, spec, device_path, pod, timeout):
        return os.path.realpath(device_path)

    def detach(self, volume_name, node_name):
        if os.path.exists(self.file_of(volume_name, node_name)):
            os.unlink(self.file_of(volume_name, node_name))


class BlockVolume:
    """Mapper and unmapper of a raw volume: its device is a file."""

    def __init__(self, plugin, name, uid, handle=""):
        self.plugin, self.host, self.name, self.uid, self.handle = plugin, plugin.host, name, uid, handle

    def get_global_map_path(self, spec):
        return f"{self.host.get_volume_device_plugin_dir(NAME)}/{handle_of(spec)}"

    def get_pod_device_map_path(self):
        return self.host.get_pod_volume_device_dir(self.uid, NAME), self.name

    def supports_metrics(self):
        return False

    def get_metrics(self):
        return sdk.NilMetrics().get_metrics()

    def get_staging_path(self):
        return f"{self.host.get_volume_device_plugin_dir(NAME)}/staged-{self.name}"

    def set_up_device(self):
        sdk.make_directories(self.get_staging_path())
        return self.get_staging_path()

    def map_pod_device(self):
        path = f"{self.get_staging_path()}/{self.uid}"
        with open(path, "a"):
            return path

    def tear_down_device(self, map_path, device_path):
        if os.path.isdir(self.get_staging_path()):
            os.rmdir(self.get_staging_path())

    def unmap_pod_device(self):
        if os.path.exists(f"{self.get_staging_path()}/{self.uid}"):
            os.unlink(f"{self.get_staging_path()}/{self.uid}")


class Provisioner:
    """Makes a directory in the array."""

    def __init__(self, plugin, options):
        self.plugin, self.options = plugin, options

    def provision(self, selected_node=None, allowed_topologies=()):
        from volumehost.api.objects import (
            FlexPersistentVolumeSource,
            ObjectMeta,
            PersistentVolume,
            PersistentVolumeSpec,
        )

        claim, name = self.options.pvc.spec, self.options.pv_name
        self.plugin.create(name)
        return PersistentVolume(
            metadata=ObjectMeta(name=name),
            spec=PersistentVolumeSpec(
                capacity={"storage": claim.resources.requests["storage"]},
                access_modes=list(claim.access_modes),
                flex_volume=FlexPersistentVolumeSource(driver=NAME, options={"handle": name}),
                persistent_volume_reclaim_policy=self.options.persistent_volume_reclaim_policy,
                mount_options=list(self.options.mount_options),
                volume_mode=claim.volume_mode,
            ),
        )


class Deleter:
    """Removes it."""

    def __init__(self, plugin, handle):
        self.plugin, self.handle = plugin, handle

    def get_path(self):
        return self.plugin.data_of(self.handle)

    def get_metrics(self):
        return sdk.NilMetrics().get_metrics()

    def delete(self):
        if os.path.exists(f"{self.plugin.array}/{self.handle}"):
            shutil.rmtree(f"{self.plugin.array}/{self.handle}")


class CompletePlugin:
    """Serves flexVolume volumes of the driver example.com/complete. Option: handle, the volume's name by default."""

    volume = Volume
    device_mounts = DeviceMounts
    attachments = Attachments
    block_volume = BlockVolume
    provisioner = Provisioner
    deleter = Deleter

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        self.host = host
        self.array = f"{host.get_plugin_dir(NAME)}/array"

    @hookimpl
    def shutdown(self):
        pass

    @hookimpl
    def get_plugin_name(self):
        return NAME

    @hookimpl
    def get_volume_sources(self):
        return ("flex_volume",)

    @hookimpl
    def can_support(self, spec):
        return source_of(spec) is not None

    @hookimpl
    def get_volume_name(self, spec):
        return handle_of(spec)

    @hookimpl
    def requires_remount(self, spec):
        return False

    @hookimpl
    def supports_mount_option(self):
        return True

    @hookimpl
    def new_mounter(self, spec, pod):
        return self.volume(self, spec.name(), pod.metadata.uid, handle_of(spec), spec.read_only)

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        return self.volume(self, volume_name, pod_uid)

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        from volumehost.api.objects import FlexVolumeSource
        from volumehost.api.objects import Volume as ApiVolume

        mounts = {mount.path: mount.root for mount in self.host.get_mounter().list_mounts()}
        handle = os.path.basename(os.path.dirname(mounts.get(mount_path, "")))
        source = FlexVolumeSource(driver=NAME, options={"handle": handle} if handle else {})
        return ReconstructedVolume(
            Spec.from_volume(ApiVolume(name=volume_name, flex_volume=source)), complete=bool(handle)
        )

    # --- persistent, provisioned, deleted, recycled ---

    @hookimpl
    def get_access_modes(self):
        return ("ReadWriteOnce", "ReadWriteMany")

    @hookimpl
    def new_provisioner(self, options):
        return self.provisioner(self, options)

    @hookimpl
    def new_deleter(self, spec):
        return self.deleter(self, handle_of(spec))

    @hookimpl
    def recycle(self, pv_name, spec, event_recorder):
        event_recorder("Normal", f"emptying {pv_name}")
        data = self.data_of(handle_of(spec))
        for name in os.listdir(data):
            shutil.rmtree(f"{data}/{name}") if os.path.isdir(f"{data}/{name}") else os.unlink(f"{data}/{name}")

    # --- attached, mounted once ---

    @hookimpl
    def new_attacher(self):
        return self.attachments(self)

    @hookimpl
    def new_detacher(self):
        return self.attachments(self)

    @hookimpl
    def can_attach(self, spec):
        return True

    @hookimpl
    def verify_exhausted_resource(self, spec):
        return False

    @hookimpl
    def new_device_mounter(self):
        return self.device_mounts(self)

    @hookimpl
    def new_device_unmounter(self):
        return self.device_mounts(self)

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        return self.host.get_mounter().get_mount_refs(device_mount_path)

    @hookimpl
    def can_device_mount(self, spec):
        return spec.volume_mode() == "Filesystem"

    # --- resized ---

    @hookimpl
    def requires_fs_resize(self):
        return True

    @hookimpl
    def expand_volume_device(self, spec, new_size, old_size):
        return self.grow(handle_of(spec), "size", new_size)

    @hookimpl
    def node_expand(self, resize_options):
        handle = handle_of(resize_options.volume_spec)
        done = self.read(handle, "fs-size") < resize_options.new_size
        self.grow(handle, "fs-size", resize_options.new_size)
        return done

    @hookimpl
    def resize_ephemeral_volume(self, spec, pod, new_size):
        if new_size is not None and new_size <= 0:
            raise errors.InfeasibleError(f"{new_size} bytes is not a size", subject=spec.name())
        self.write(handle_of(spec), "limit", new_size or 0)

    # --- raw ---

    @hookimpl
    def new_block_volume_mapper(self, spec, pod):
        return self.block_volume(self, spec.name(), pod.metadata.uid, handle_of(spec))

    @hookimpl
    def new_block_volume_unmapper(self, volume_name, pod_uid):
        return self.block_volume(self, volume_name, pod_uid)

    @hookimpl
    def construct_block_volume_spec(self, pod_uid, volume_name, map_path):
        from volumehost.api.objects import (
            FlexPersistentVolumeSource,
            ObjectMeta,
            PersistentVolume,
            PersistentVolumeSpec,
        )

        source = FlexPersistentVolumeSource(driver=NAME)
        spec = PersistentVolumeSpec(flex_volume=source, volume_mode="Block")
        return Spec.from_persistent_volume(
            PersistentVolume(metadata=ObjectMeta(name=volume_name), spec=spec), read_only=False
        )

    # --- the array ---

    def data_of(self, handle):
        return f"{self.array}/{handle}/data"

    def create(self, handle):
        sdk.make_directories(self.data_of(handle))

    def read(self, handle, what):
        try:
            with open(f"{self.array}/{handle}/{what}") as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    def write(self, handle, what, number):
        self.create(handle)
        with open(f"{self.array}/{handle}/{what}.new", "w") as file:
            file.write(str(number))
        os.rename(f"{self.array}/{handle}/{what}.new", f"{self.array}/{handle}/{what}")

    def grow(self, handle, what, size):
        self.write(handle, what, max(self.read(handle, what), size))
        return self.read(handle, what)
