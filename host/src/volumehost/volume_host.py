"""The VolumeHost protocols: all that a plugin may ask of the process that runs it.

``NodeHost`` implements VolumeHost and KubeletVolumeHost, ``ControllerHost`` VolumeHost, CSIDriverVolumeHost and
AttachDetachVolumeHost. Plugins find out which host they have with ``isinstance`` (KHOST-04).

Directory getters never create anything (LAYOUT-04). They escape plugin names themselves and refuse names that would
leave their directory (LAYOUT-03, improved).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import (
        ConfigMap,
        CSIDriver,
        CSINode,
        LabelSelector,
        Pod,
        Secret,
        TokenRequest,
        VolumeAttachment,
    )
    from volumehost.host_services import (
        EventRecorder,
        HostUtils,
        InformerFactory,
        InstalledEntryPoint,
        Lister,
        MountInterface,
        Recycler,
        Subpather,
    )
    from volumehost.spec import Spec, VolumeConfig
    from volumehost.volumes import Mounter, Unmounter


@runtime_checkable
class VolumeHost(Protocol):
    """What every host offers (HOST-01). A method that this host cannot serve raises NotAvailableOnHostError."""

    def get_plugin_dir(self, plugin_name: str) -> str:
        """Where the plugin may keep data: ``<root>/plugins/<name>``, the name not escaped (LAYOUT-01)."""
        ...

    def get_volume_device_plugin_dir(self, plugin_name: str) -> str:
        """``<root>/plugins/<name>/volumeDevices``."""
        ...

    def get_pods_dir(self) -> str:
        """``<root>/pods``."""
        ...

    def get_pod_volume_dir(self, pod_uid: str, plugin_name: str, volume_name: str) -> str:
        """``<root>/pods/<uid>/volumes/<escaped plugin>/<volume>``."""
        ...

    def get_pod_plugin_dir(self, pod_uid: str, plugin_name: str) -> str:
        """``<root>/pods/<uid>/plugins/<escaped plugin>``: data of the plugin for one pod."""
        ...

    def get_pod_volume_device_dir(self, pod_uid: str, plugin_name: str) -> str:
        """``<root>/pods/<uid>/volumeDevices/<escaped plugin>``."""
        ...

    def get_kube_client(self) -> ApiClient | None:
        """The API, embedded or Kubernetes; None where there is none (HOST-02)."""
        ...

    def new_wrapper_mounter(self, volume_name: str, spec: Spec, pod: Pod) -> Mounter:
        """A mounter of whichever plugin supports ``spec``, for plugins that wrap others (WRAP-01)."""
        ...

    def new_wrapper_unmounter(self, volume_name: str, spec: Spec, pod_uid: str) -> Unmounter:
        """The unmounter to go with it (WRAP-02)."""
        ...

    def get_mounter(self) -> MountInterface:
        """The kernel's mounts."""
        ...

    def get_node_allocatable(self) -> Mapping[str, int]:
        """Resource name to amount: memory and storage in bytes, cpu in thousandths (HOST-05)."""
        ...

    def get_secret_func(self) -> Callable[[str, str], Secret]:
        """A function ``(namespace, name)`` that returns the secret (HOST-03)."""
        ...

    def get_config_map_func(self) -> Callable[[str, str], ConfigMap]:
        """A function ``(namespace, name)`` that returns the config map (HOST-03)."""
        ...

    def get_service_account_token_func(self) -> Callable[[str, str, TokenRequest], TokenRequest]:
        """A function ``(namespace, name, request)`` that returns the request with its status (HOST-04)."""
        ...

    def delete_service_account_token_func(self) -> Callable[[str], None]:
        """A function ``(pod_uid)`` that drops cached tokens of the pod (HOST-04)."""
        ...

    def get_node_labels(self) -> Mapping[str, str]:
        """Labels of the node (HOST-06)."""
        ...

    def get_node_name(self) -> str:
        """Name of the node."""
        ...

    def get_attached_volumes_from_node_status(self) -> Mapping[str, str]:
        """Unique volume name to device path (HOST-07)."""
        ...

    def get_event_recorder(self) -> EventRecorder | None:
        """Where events go; None where nobody records them (ADHOST-02)."""
        ...

    def get_subpather(self) -> Subpather:
        """Safe subpaths (HOST-08)."""
        ...

    def get_volume_config(self, plugin_name: str) -> VolumeConfig:
        """The configuration for that plugin; in the original it is given when the plugin is made."""
        ...

    def get_recycler(self) -> Recycler:
        """Runs recycler pods, or scrubs locally where no cluster runs pods (RECYCLE-08)."""
        ...


@runtime_checkable
class KubeletVolumeHost(Protocol):
    """What the host of a node offers besides (KHOST-01)."""

    def set_kubelet_error(self, error: Exception | None) -> None:
        """Make the node report that it is not ready, with this error, until called with None."""
        ...

    def get_informer_factory(self) -> InformerFactory:
        """The caches behind the listers."""
        ...

    def csi_driver_lister(self) -> Lister[CSIDriver]:
        """CSIDriver objects."""
        ...

    def csi_drivers_synced(self) -> bool:
        """Whether the CSIDriver cache has seen its first list."""
        ...

    def wait_for_cache_sync(self) -> None:
        """Wait until it has; raises WaitTimeoutError otherwise (KHOST-03)."""
        ...

    def get_host_util(self) -> HostUtils:
        """Questions about paths of the host."""
        ...

    def get_plugins_registry_dir(self) -> str:
        """``<root>/plugins_registry``, where drivers put their registration sockets (CSI-PATH-13)."""
        ...

    def get_drivers_dir(self) -> str:
        """``<root>/drivers``: records, logs and data of the drivers that this host knows or supervises."""
        ...

    def get_installed_entry_points(self, group: str) -> Sequence[InstalledEntryPoint]:
        """Entry points of a group in the installed distributions as they are now, without importing any.

        Those that the trust policy excludes are left out, and installations that are not finished.
        """
        ...

    def get_trust_anchors_by_name(self, name: str, allow_missing: bool) -> bytes:
        """PEM trust anchors of the named ClusterTrustBundle."""
        ...

    def get_trust_anchors_by_signer(
        self, signer_name: str, label_selector: LabelSelector | None, allow_missing: bool
    ) -> bytes:
        """PEM trust anchors of the bundles chosen by signer and labels."""
        ...

    def get_pod_certificate_credential_bundle(
        self, namespace: str, pod_name: str, pod_uid: str, volume_name: str, source_index: int
    ) -> tuple[bytes, bytes]:
        """(private key, certificate chain), both PEM, of a projected podCertificate source."""
        ...


@runtime_checkable
class CSIDriverVolumeHost(Protocol):
    """A host that can list CSIDriver objects."""

    def csi_driver_lister(self) -> Lister[CSIDriver]:
        """CSIDriver objects."""
        ...


@runtime_checkable
class AttachDetachVolumeHost(CSIDriverVolumeHost, Protocol):
    """The host of the attach/detach controller (ADHOST-01)."""

    def csi_node_lister(self) -> Lister[CSINode]:
        """CSINode objects."""
        ...

    def volume_attachment_lister(self) -> Lister[VolumeAttachment]:
        """VolumeAttachment objects."""
        ...

    def is_attach_detach_controller(self) -> bool:
        """Always True: marks this host."""
        ...
