"""The plugin contract: eleven interfaces, each at once a pluggy hook specification and a typing Protocol.

A plugin is a class, an instance or a module whose functions are marked with :data:`hookimpl`. It *is* a
``DeletableVolumePlugin`` when it implements every required hook of it, and so on: interfaces are found when the
plugin loads, never declared. An implementation may take fewer arguments than the hook names.

Each class declares its own hooks once; pluggy refuses a hook that it is told twice, so the host registers the names
in ``vars()`` of each class and no inherited ones.
"""

# ruff: noqa: ARG002  (an interface names arguments that its default bodies do not use)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from volumehost.api.objects import Pod
    from volumehost.host_services import RecycleEventRecorder
    from volumehost.spec import Spec
    from volumehost.storage_driver import StorageDrivers
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import (
        Attacher,
        BlockVolumeMapper,
        BlockVolumeUnmapper,
        Deleter,
        Detacher,
        DeviceMounter,
        DeviceUnmounter,
        FoundDeviceMount,
        MetricsCollector,
        Mounter,
        NodeResizeOptions,
        Provisioner,
        ReconstructedVolume,
        SpecTranslator,
        Unmounter,
        VolumeOptions,
    )

PROJECT_NAME = "volumehost"

#: Marks a function of a plugin as an implementation of the hook of that name.
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)
#: Marks a method of an interface class as a hook. One plugin answers, so the first result is the result.
hookspec = pluggy.HookspecMarker(PROJECT_NAME)

#: Hooks that a plugin may leave out, with the answer that then stands. They have bodies, which
#: tells a type checker that a plugin class which extends the Protocol need not have them.
OPTIONAL_HOOKS: dict[str, Any] = {
    "init": None,
    "requires_remount": False,
    "supports_mount_option": False,
    "supports_selinux_context_mount": False,
    "get_volume_sources": None,
    "shutdown": None,
    "get_storage_drivers": None,
    "get_spec_translators": None,
    "get_metrics_collectors": None,
    "find_device_mounts": (),
}


class VolumePlugin(Protocol):
    """A kind of volume that pods can use on a node (PLUG-01 to -10). Every plugin is one."""

    @hookspec(firstresult=True)
    def init(self, host: VolumeHost) -> None:
        """Make the plugin ready; called once, before any other hook but ``get_plugin_name``.

        Optional. An exception excludes the plugin and nobody else (MGR-INIT-07). It has a deadline: a plugin that
        waits for something must do so later, in the hook that needs it.

        :param host: what the plugin may ask of the process that runs it, for as long as it is loaded.
        """
        return

    @hookspec(firstresult=True)
    def shutdown(self) -> None:
        """Let go of what ``init`` and later calls hold of the process: threads, channels, open files.

        Optional. Called once, when the host ends or the plugin is unloaded (its distribution was removed or
        replaced and its last volume is gone). It leaves mounts alone. It has a deadline; an exception is reported
        and keeps no other plugin from its own shutdown (BR-18).
        """
        return

    @hookspec(firstresult=True)
    def get_plugin_name(self) -> str:
        """The plugin's name, such as ``example.com/nfs``: constant, with exactly one slash.

        ``kubernetes.io/`` is reserved for the distributions that the host's trust policy lists.
        """

    @hookspec(firstresult=True)
    def get_volume_name(self, spec: Spec) -> str:
        """The identity of the backing storage within this plugin: a device, a path, a handle (PLUG-03).

        Computable from the spec alone, the same on every node and after a restart, and enough for ``detach`` to
        work from. Raises SpecError when the spec is not for this plugin.
        """

    @hookspec(firstresult=True)
    def can_support(self, spec: Spec) -> bool:
        """Whether this plugin is the one for the spec.

        Without side effects, quick, and able to take a spec with neither volume nor persistent volume (PLUG-04).
        A plugin that raises, hangs or returns anything but a bool is set aside; the others are not affected.
        """

    @hookspec(firstresult=True)
    def get_volume_sources(self) -> Collection[str] | None:
        """The kinds of source (``host_path``, ``csi``) for which ``can_support`` can ever be true.

        Optional; None means any. Declaring them lets the host ask only the plugins concerned.
        """
        return None

    @hookspec(firstresult=True)
    def requires_remount(self, spec: Spec) -> bool:
        """Whether ``set_up`` is to run again from time to time to refresh the content (PLUG-05). Optional: False."""
        return False

    @hookspec(firstresult=True)
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        """The object that mounts the volume for the pod; may raise (PLUG-06). The spec is borrowed."""

    @hookspec(firstresult=True)
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        """The object that tears it down, from recoverable state alone: neither spec nor pod (PLUG-07).

        :param volume_name: the spec's name, which is the name of the volume's directory.
        """

    @hookspec(firstresult=True)
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        """The best spec that can be rebuilt from a directory's name and path (PLUG-08).

        Used where no record of the mount is left. It may be incomplete; say so in the result.
        """

    @hookspec(firstresult=True)
    def supports_mount_option(self) -> bool:
        """Whether a PersistentVolume's mount options may be given to it (PLUG-09). Optional: False."""
        return False

    @hookspec(firstresult=True)
    def supports_selinux_context_mount(self, spec: Spec) -> bool:
        """Whether the whole volume can be mounted with ``-o context=`` (PLUG-10). Optional: False."""
        return False

    @hookspec(firstresult=True)
    def get_storage_drivers(self) -> StorageDrivers | None:
        """The drivers outside of this process that the plugin fronts; the controllers provision through them.

        Optional; None means that it fronts none.
        """
        return None

    @hookspec(firstresult=True)
    def get_spec_translators(self) -> Mapping[str, SpecTranslator] | None:
        """Kinds of source that this plugin takes over, each with what turns such a spec into one of another kind.

        Optional; None means that it takes over none. Asked once, after ``init``. For a volume of such a kind the node
        and the controllers look up the plugin of the spec that the translator returns, whoever that is: this is how
        volumes of a type that was built into Kubernetes reach the CSI driver that serves them now (CSI-MIG-01).
        """
        return None

    @hookspec(firstresult=True)
    def get_metrics_collectors(self) -> Sequence[MetricsCollector] | None:
        """What the plugin itself counts, for whoever exports metrics.

        Optional; None means nothing. Asked at each scrape; it must be quick and wait for nobody.
        """
        return None


class PersistentVolumePlugin(VolumePlugin, Protocol):
    """A plugin for data that outlives pods (PLUG-20)."""

    @hookspec(firstresult=True)
    def get_access_modes(self) -> Sequence[str]:
        """The ways in which its volumes can be used: ``ReadWriteOnce``, ``ReadOnlyMany`` and so on."""


class RecyclableVolumePlugin(VolumePlugin, Protocol):
    """A plugin whose volumes can be scrubbed and offered again (PLUG-21)."""

    @hookspec(firstresult=True)
    def recycle(self, pv_name: str, spec: Spec, event_recorder: RecycleEventRecorder) -> None:
        """Empty the volume after its claim has gone; returns when it is empty.

        :param event_recorder: takes ``(event_type, message)``; the caller puts them on the PersistentVolume.
        """


class DeletableVolumePlugin(VolumePlugin, Protocol):
    """A plugin whose volumes can be deleted with their storage (PLUG-22)."""

    @hookspec(firstresult=True)
    def new_deleter(self, spec: Spec) -> Deleter:
        """The object that deletes the volume after its claim has gone."""


class ProvisionableVolumePlugin(VolumePlugin, Protocol):
    """A plugin that can create volumes (PLUG-23)."""

    @hookspec(firstresult=True)
    def new_provisioner(self, options: VolumeOptions) -> Provisioner:
        """The object that creates the volume asked for."""


class DeviceMountableVolumePlugin(VolumePlugin, Protocol):
    """A plugin that mounts a device once per node before binding it to pods (PLUG-24)."""

    @hookspec(firstresult=True)
    def new_device_mounter(self) -> DeviceMounter:
        """The object that mounts the device at its global path; making it does nothing yet."""

    @hookspec(firstresult=True)
    def new_device_unmounter(self) -> DeviceUnmounter:
        """The object that unmounts it."""

    @hookspec(firstresult=True)
    def get_device_mount_refs(self, device_mount_path: str) -> Sequence[str]:
        """Other mount points of the same device."""

    @hookspec(firstresult=True)
    def can_device_mount(self, spec: Spec) -> bool:
        """Whether this spec's device is mounted globally at all."""

    @hookspec(firstresult=True)
    def find_device_mounts(self, known: Collection[str]) -> Sequence[FoundDeviceMount]:
        """The devices that are mounted globally here, or may be, as the plugin's own records on disk tell (BR-55).

        Optional: none. Asked once by a node that has started, so that a device that no pod's directory leads to any
        more is unmounted all the same, where the host has no record of it. Only names and small files are to be read:
        what is mounted there may hang. ``known`` has the names of the volumes (``get_volume_name``) of whose devices
        the host knows: they may be left out, which saves reading their records.
        """
        return ()


class AttachableVolumePlugin(DeviceMountableVolumePlugin, Protocol):
    """A plugin whose volumes are attached to a node before they are mounted (PLUG-25)."""

    @hookspec(firstresult=True)
    def new_attacher(self) -> Attacher:
        """The object that attaches."""

    @hookspec(firstresult=True)
    def new_detacher(self) -> Detacher:
        """The object that detaches."""

    @hookspec(firstresult=True)
    def can_attach(self, spec: Spec) -> bool:
        """Whether this spec needs attaching; it can change while the host runs."""

    @hookspec(firstresult=True)
    def verify_exhausted_resource(self, spec: Spec) -> bool:
        """Whether the node has run out of attachments for this driver."""


class _FSResizeHook(Protocol):
    """The one hook that the two expandable interfaces share; it answers the same for both (PLUG-32)."""

    @hookspec(firstresult=True)
    def requires_fs_resize(self) -> bool:
        """Whether the filesystem on the volume must be grown after the volume."""


class ExpandableVolumePlugin(VolumePlugin, _FSResizeHook, Protocol):
    """A plugin whose volumes grow by a call of the control plane (PLUG-26). Sizes in bytes."""

    @hookspec(firstresult=True)
    def expand_volume_device(self, spec: Spec, new_size: int, old_size: int) -> int:
        """Grow the volume from ``old_size`` to at least ``new_size``; returns the size that it has then."""


class NodeExpandableVolumePlugin(VolumePlugin, _FSResizeHook, Protocol):
    """A plugin whose volumes need work on the node to grow (PLUG-27)."""

    @hookspec(firstresult=True)
    def node_expand(self, resize_options: NodeResizeOptions) -> bool:
        """Grow what is mounted on this node; True when it was done, False when nothing was to do."""


class ResizableEphemeralVolumePlugin(VolumePlugin, Protocol):
    """A plugin whose node-local volumes can change size while the pod runs (PLUG-29)."""

    @hookspec(firstresult=True)
    def resize_ephemeral_volume(self, spec: Spec, pod: Pod, new_size: int | None) -> None:
        """Give the mounted volume ``new_size`` bytes, or no limit of its own for None, without losing content."""


class BlockVolumePlugin(VolumePlugin, Protocol):
    """A plugin that can hand raw block devices to pods (PLUG-28)."""

    @hookspec(firstresult=True)
    def new_block_volume_mapper(self, spec: Spec, pod: Pod) -> BlockVolumeMapper:
        """The object that maps the device for the pod. The spec is borrowed."""

    @hookspec(firstresult=True)
    def new_block_volume_unmapper(self, volume_name: str, pod_uid: str) -> BlockVolumeUnmapper:
        """The object that unmaps it, from recoverable state alone."""

    @hookspec(firstresult=True)
    def construct_block_volume_spec(self, pod_uid: str, volume_name: str, map_path: str) -> Spec:
        """The best spec that can be rebuilt from the pod's device map path."""


#: The eleven interfaces, the base first.
INTERFACES: tuple[type, ...] = (
    VolumePlugin,
    PersistentVolumePlugin,
    RecyclableVolumePlugin,
    DeletableVolumePlugin,
    ProvisionableVolumePlugin,
    DeviceMountableVolumePlugin,
    AttachableVolumePlugin,
    ExpandableVolumePlugin,
    NodeExpandableVolumePlugin,
    ResizableEphemeralVolumePlugin,
    BlockVolumePlugin,
)

#: Every class that declares hooks: the interfaces and what they share.
HOOK_CLASSES: tuple[type, ...] = (*INTERFACES, _FSResizeHook)


def own_hooks(hook_class: type) -> tuple[str, ...]:
    """The hooks that this class itself declares, in order."""
    marker = f"{PROJECT_NAME}_spec"
    return tuple(name for name, value in vars(hook_class).items() if getattr(value, marker, None))


def required_hooks(interface: type) -> frozenset[str]:
    """All hooks that a plugin must implement to be an ``interface``, without the optional ones of the base."""
    names = (name for base in interface.__mro__ for name in own_hooks(base))
    return frozenset(name for name in names if name not in OPTIONAL_HOOKS)
