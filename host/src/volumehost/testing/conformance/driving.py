"""The order in which a node calls a plugin for one volume; for checks, and for the process that is killed in between.

The same as the volume manager's: attach, mount the device, set up; tear down, unmount the device, detach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.hookspecs import AttachableVolumePlugin, DeviceMountableVolumePlugin
from volumehost.volumes import DeviceMounterArgs, MounterArgs

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec
    from volumehost.volumes import Mounter

#: Seconds that a device may take to appear.
ATTACH_TIMEOUT = 30.0


def arguments_for(pod: Pod) -> MounterArgs:
    """What the pod's manifest says about its volumes."""
    context = pod.spec.security_context
    if context is None:
        return MounterArgs()
    return MounterArgs(fs_group=context.fs_group, fs_group_change_policy=context.fs_group_change_policy)


def needs_attaching(plugin: LoadedPlugin, spec: Spec) -> bool:
    """Whether the volume is attached to the node before it is mounted."""
    return plugin.supports(AttachableVolumePlugin) and plugin.can_attach(spec)


def has_device_mount(plugin: LoadedPlugin, spec: Spec) -> bool:
    """Whether the volume's device is mounted once for the node."""
    return plugin.supports(DeviceMountableVolumePlugin) and plugin.can_device_mount(spec)


def attach(plugin: LoadedPlugin, spec: Spec, pod: Pod, node: str) -> str:
    """Attach the volume if it needs that; returns the device's path, "" without one."""
    if not needs_attaching(plugin, spec):
        return ""
    attacher = plugin.new_attacher()
    return attacher.wait_for_attach(spec, attacher.attach(spec, node), pod, ATTACH_TIMEOUT)


def mount_device(plugin: LoadedPlugin, spec: Spec, device_path: str, fs_group: int | None = None) -> None:
    """Mount the volume's device for the node if it has one."""
    if has_device_mount(plugin, spec):
        mounter = plugin.new_device_mounter()
        path = mounter.get_device_mount_path(spec)
        mounter.mount_device(spec, device_path, path, DeviceMounterArgs(fs_group=fs_group))


def bring_up(plugin: LoadedPlugin, spec: Spec, pod: Pod, node: str, args: MounterArgs) -> Mounter:
    """Everything until the pod can use the volume; all of it may have been done already."""
    mount_device(plugin, spec, attach(plugin, spec, pod, node), args.fs_group)
    mounter = plugin.new_mounter(spec, pod)
    mounter.set_up(args)
    return mounter


def take_down(plugin: LoadedPlugin, spec: Spec, pod_uid: str) -> None:
    """Take the volume from the pod, by the two names alone."""
    plugin.new_unmounter(spec.name(), pod_uid).tear_down()


def let_go(plugin: LoadedPlugin, spec: Spec, node: str) -> None:
    """After the last pod: unmount the device and detach, where there is such a thing."""
    if has_device_mount(plugin, spec):
        path = plugin.new_device_mounter().get_device_mount_path(spec)
        plugin.new_device_unmounter().unmount_device(path)
    if needs_attaching(plugin, spec):
        plugin.new_detacher().detach(plugin.get_volume_name(spec), node)
