"""The hostPath plugin: what the entry point names and the host loads (HOSTPATH rules).

Importing this module loads nothing but the contract: the rest comes when a hook needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost import hookimpl
from volumehost.errors import NotAvailableOnHostError, SpecError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from volumehost.api.objects import HostPathVolumeSource
    from volumehost.host_services import RecycleEventRecorder
    from volumehost.spec import Spec
    from volumehost.volume_host import KubeletVolumeHost, VolumeHost
    from volumehost.volumes import Deleter, Mounter, Provisioner, ReconstructedVolume, Unmounter, VolumeOptions

PLUGIN_NAME = "kubernetes.io/host-path"


class HostPathPlugin:
    """Shows a path of the node to a pod. Nothing is mounted and nothing of the path is ever removed with the pod."""

    def __init__(self) -> None:
        self._host: VolumeHost | None = None

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        """Keep the host; any kind of host will do until something is to be mounted (KHOST-04)."""
        self._host = host

    @hookimpl
    def get_plugin_name(self) -> str:
        """``kubernetes.io/host-path``."""
        return PLUGIN_NAME

    @hookimpl
    def get_volume_sources(self) -> Collection[str]:
        """hostPath, of a pod's volume or of a PersistentVolume."""
        return ("host_path",)

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        """Whether there is a hostPath source (HOSTPATH-01)."""
        return find_source(spec) is not None

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The path itself (HOSTPATH-02)."""
        return require_source(spec).path

    @hookimpl
    def get_access_modes(self) -> Sequence[str]:
        """One node at a time (HOSTPATH-03)."""
        return ("ReadWriteOnce",)

    @hookimpl
    def new_mounter(self, spec: Spec) -> Mounter:
        """Checks the path at each ``set_up``."""
        from volumehost_hostpath.volumes import HostPathMounter

        return HostPathMounter(require_source(spec), spec.read_only, self._kubelet_host().get_host_util())

    @hookimpl
    def new_unmounter(self) -> Unmounter:
        """Does nothing (HOSTPATH-08)."""
        from volumehost_hostpath.volumes import HostPathUnmounter

        return HostPathUnmounter()

    @hookimpl
    def construct_volume_spec(self, volume_name: str) -> ReconstructedVolume:
        """A spec with the name and an unknown path: enough for teardown, which does nothing (HOSTPATH-10, improved)."""
        from volumehost import ReconstructedVolume, Spec
        from volumehost.api.objects import HostPathVolumeSource, Volume

        volume = Volume(name=volume_name, host_path=HostPathVolumeSource())
        return ReconstructedVolume(Spec.from_volume(volume), complete=False)

    @hookimpl
    def recycle(self, pv_name: str, spec: Spec, event_recorder: RecycleEventRecorder) -> None:
        """Empty the path with the host's recycler (HOSTPATH-40)."""
        from volumehost_hostpath.recycling import recycler_pod

        host = self._any_host()
        host.get_recycler().recycle(pv_name, recycler_pod(spec, host.get_volume_config(PLUGIN_NAME)), event_recorder)

    @hookimpl
    def new_deleter(self, spec: Spec) -> Deleter:
        """Removes a directory that the provisioner made, where provisioning is enabled (HOSTPATH-42)."""
        from volumehost_hostpath.deleter import HostPathDeleter

        return HostPathDeleter(spec, self._any_host().get_volume_config(PLUGIN_NAME))

    @hookimpl
    def new_provisioner(self, options: VolumeOptions) -> Provisioner:
        """Makes directories, where provisioning is enabled (HOSTPATH-44)."""
        from volumehost_hostpath.provisioner import HostPathProvisioner

        return HostPathProvisioner(options, self._any_host().get_volume_config(PLUGIN_NAME))

    def _any_host(self) -> VolumeHost:
        if self._host is None:
            raise NotAvailableOnHostError("the plugin was not initialised with a host", subject=PLUGIN_NAME)
        return self._host

    def _kubelet_host(self) -> KubeletVolumeHost:
        from volumehost import KubeletVolumeHost

        host = self._any_host()
        if not isinstance(host, KubeletVolumeHost):
            raise NotAvailableOnHostError(
                "plugin volume host does not implement KubeletVolumeHost interface",
                action="mounting a hostPath volume",
                subject=PLUGIN_NAME,
                hint="hostPath volumes are mounted by the host of a node, not by a controller",
            )
        return host


def find_source(spec: Spec) -> HostPathVolumeSource | None:
    """The spec's hostPath source, of the pod's volume first."""
    if spec.volume is not None and spec.volume.host_path is not None:
        return spec.volume.host_path
    if spec.persistent_volume is not None:
        return spec.persistent_volume.spec.host_path
    return None


def require_source(spec: Spec) -> HostPathVolumeSource:
    """The same, for a caller that cannot do without.

    :raises SpecError: there is none.
    """
    source = find_source(spec)
    if source is None:
        raise SpecError(
            "spec does not reference a hostPath volume type", action="reading a volume", subject=spec.name()
        )
    return source
