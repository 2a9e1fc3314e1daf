"""NodeHost: what plugins on a node may ask of the process that runs them (HOST and KHOST rules).

Making one costs next to nothing: the mounter, the API and the machine's facts are looked at when somebody asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, NotAvailableOnHostError, WaitTimeoutError
from volumehost.hosts.api_objects import ApiObjects
from volumehost.hosts.config import HostConfig
from volumehost.hosts.layout import Layout
from volumehost.hosts.node_info import local_allocatable, local_labels
from volumehost.hosts.node_name import node_name_of
from volumehost.hosts.remembered import Remembered

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import (
        ConfigMap,
        CSIDriver,
        LabelSelector,
        Node,
        Pod,
        Secret,
        TokenRequest,
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
    from volumehost.hosts.tokens import Signer
    from volumehost.loader.entry_points import InstalledEntryPoints
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.mount.selinux import SELinux
    from volumehost.spec import Spec, VolumeConfig
    from volumehost.volumes import Mounter, Unmounter

logger = logging.getLogger(__name__)

#: The name under which node events are reported (EVENT-01).
COMPONENT = "kubelet"

#: How long the Node object and the machine's resources are remembered, in seconds: a mount asks for them every time.
NODE_SECONDS = 2.0


class NodeHost:
    """The host of one node: implements VolumeHost and KubeletVolumeHost.

    ``api`` is a client, a function that opens one at its first use, or None where there is no API (HOST-02).
    ``plugin_manager`` may be set later: the manager itself is given the host when it loads plugins. ``token_signer``
    answers ``(namespace, service account, request)`` with the request and its status (HOST-04). ``selinux`` stands in
    for the machine's own.
    """

    def __init__(
        self,
        root_dir: str,
        *,
        node_name: str | None = None,
        api: ApiClient | Callable[[], ApiClient] | None = None,
        plugin_manager: VolumePluginManager | None = None,
        mounter: MountInterface | None = None,
        selinux: SELinux | None = None,
        recorder: EventRecorder | None = None,
        token_signer: Signer | None = None,
        config: HostConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.layout = Layout(root_dir)
        self.plugin_manager = plugin_manager
        self._node_name = node_name or node_name_of(root_dir)
        self._api = api
        self._mounter = mounter
        self._subpather: Subpather | None = None
        self._selinux = selinux
        self._has_selinux: bool | None = None
        self._recorder = recorder
        self._config = config or HostConfig.for_root_dir(root_dir)
        self._objects = ApiObjects(self.get_kube_client, lambda: token_signer or self.default_token_signer())
        self._node = Remembered(self._read_node, NODE_SECONDS, clock)
        self._allocatable = Remembered(lambda: local_allocatable(root_dir), NODE_SECONDS, clock)
        self._lock = threading.RLock()
        self._informers: InformerFactory | None = None
        self._kubelet_error: Exception | None = None
        self._entry_points: InstalledEntryPoints | None = None

    def default_token_signer(self) -> Signer | None:
        """What signs service account tokens when no signer was given; in a cluster the API server would."""
        return None

    # --- directories ----------------------------------------------------------------------------------------

    def get_plugin_dir(self, plugin_name: str) -> str:
        """``<root>/plugins/<name>``."""
        return self.layout.plugin_dir(plugin_name)

    def get_volume_device_plugin_dir(self, plugin_name: str) -> str:
        """``<root>/plugins/<name>/volumeDevices``."""
        return self.layout.volume_device_plugin_dir(plugin_name)

    def get_pods_dir(self) -> str:
        """``<root>/pods``."""
        return self.layout.pods_dir()

    def get_pod_volume_dir(self, pod_uid: str, plugin_name: str, volume_name: str) -> str:
        """``<root>/pods/<uid>/volumes/<escaped plugin>/<volume>``."""
        return self.layout.pod_volume_dir(pod_uid, plugin_name, volume_name)

    def get_pod_plugin_dir(self, pod_uid: str, plugin_name: str) -> str:
        """``<root>/pods/<uid>/plugins/<escaped plugin>``."""
        return self.layout.pod_plugin_dir(pod_uid, plugin_name)

    def get_pod_volume_device_dir(self, pod_uid: str, plugin_name: str) -> str:
        """``<root>/pods/<uid>/volumeDevices/<escaped plugin>``."""
        return self.layout.pod_volume_device_dir(pod_uid, plugin_name)

    def get_plugins_registry_dir(self) -> str:
        """``<root>/plugins_registry``."""
        return self.layout.plugins_registry_dir()

    def get_drivers_dir(self) -> str:
        """``<root>/drivers``."""
        return self.layout.drivers_dir()

    def get_installed_entry_points(self, group: str) -> Sequence[InstalledEntryPoint]:
        """Entry points of a group in the installed distributions as they are now, without importing any."""
        with self._lock:
            if self._entry_points is None:
                from volumehost.loader.entry_points import InstalledEntryPoints
                from volumehost.loader.trust import TrustPolicy

                manager = self.plugin_manager
                self._entry_points = InstalledEntryPoints(
                    manager.trust if manager is not None else TrustPolicy.from_environment()
                )
        return self._entry_points.of(group)

    # --- the API ----------------------------------------------------------------------------------------------

    def get_kube_client(self) -> ApiClient | None:
        """The API client, opened now if it was not; None where there is none."""
        if self._api is None or not callable(self._api):
            return self._api
        with self._lock:
            if callable(self._api):
                self._api = self._api()
            return self._api

    def get_secret_func(self) -> Callable[[str, str], Secret]:
        """A function ``(namespace, name)`` that returns the secret."""
        return self._objects.get_secret

    def get_config_map_func(self) -> Callable[[str, str], ConfigMap]:
        """A function ``(namespace, name)`` that returns the config map."""
        return self._objects.get_config_map

    def get_service_account_token_func(self) -> Callable[[str, str, TokenRequest], TokenRequest]:
        """A function ``(namespace, name, request)`` that returns the request with its status."""
        return self._objects.get_service_account_token

    def delete_service_account_token_func(self) -> Callable[[str], None]:
        """A function ``(pod_uid)`` that drops cached tokens."""
        return self._objects.delete_service_account_token

    def get_event_recorder(self) -> EventRecorder | None:
        """Where events go; None where there is no API."""
        if self._recorder is None and self._api is not None:
            from volumehost.hosts.events import ApiEventRecorder

            with self._lock:
                if self._recorder is None:
                    self._recorder = ApiEventRecorder(self.get_kube_client, COMPONENT, self._node_name)
        return self._recorder

    def flush_events(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds until recorded events are in the API; the host is about to end."""
        from volumehost.hosts.events import ApiEventRecorder

        if isinstance(self._recorder, ApiEventRecorder) and not self._recorder.flush(timeout):
            logger.warning("some events could not be recorded within %g s", timeout)

    def get_trust_anchors_by_name(self, name: str, allow_missing: bool) -> bytes:
        """PEM trust anchors of the named ClusterTrustBundle."""
        return self._objects.trust_anchors_by_name(name, allow_missing)

    def get_trust_anchors_by_signer(
        self, signer_name: str, label_selector: LabelSelector | None, allow_missing: bool
    ) -> bytes:
        """PEM trust anchors of the bundles chosen by signer and labels."""
        return self._objects.trust_anchors_by_signer(signer_name, label_selector, allow_missing)

    def get_pod_certificate_credential_bundle(
        self, namespace: str, pod_name: str, pod_uid: str, volume_name: str, source_index: int
    ) -> tuple[bytes, bytes]:
        """Only a Kubernetes API server issues pod certificates.

        :raises NotAvailableOnHostError: always, here.
        """
        del pod_uid, source_index
        raise NotAvailableOnHostError(
            "no API server here issues pod certificates",
            action=f"requesting a certificate for volume {volume_name} of pod {namespace}/{pod_name}",
            hint="run the host with --kubeconfig",
        )

    # --- informers --------------------------------------------------------------------------------------------

    def get_informer_factory(self) -> InformerFactory:
        """The caches behind the listers.

        :raises NotAvailableOnHostError: the host has no API.
        """
        if self._informers is None:
            from volumehost.api.listers import StoreInformerFactory

            self._informers = StoreInformerFactory(self._require_api("watching objects"))
        return self._informers

    def csi_driver_lister(self) -> Lister[CSIDriver]:
        """CSIDriver objects.

        :raises NotAvailableOnHostError: the host has no API.
        """
        api = self._require_api("listing CSIDriver objects")
        from volumehost.api.listers import StoreLister
        from volumehost.api.objects import CSIDriver

        return StoreLister(api, CSIDriver)

    def csi_drivers_synced(self) -> bool:
        """Whether CSIDriver objects can be read now."""
        return self._api is not None and self.get_informer_factory().wait_for_cache_sync(0)

    def wait_for_cache_sync(self) -> None:
        """Wait until they can; half a minute at most (KHOST-03).

        :raises WaitTimeoutError: the host has no API, or it does not answer.
        """
        if self._api is None or not self.get_informer_factory().wait_for_cache_sync(30):
            reason = "the host has no API" if self._api is None else "the API did not answer within 30 seconds"
            raise WaitTimeoutError(reason, action="waiting until CSIDriver objects are known")

    # --- the node ---------------------------------------------------------------------------------------------

    def get_node_name(self) -> str:
        """Name of the node."""
        return self._node_name

    def get_node_labels(self) -> Mapping[str, str]:
        """Labels of the Node object; those that every node has where there is none (HOST-06, HOST-05)."""
        node = self._node.get()
        return node.metadata.labels if node is not None else local_labels(self._node_name)

    def forget_node(self) -> None:
        """Read the Node object anew when it is asked about next: drivers add labels to it when they register."""
        self._node.forget()

    def get_node_allocatable(self) -> Mapping[str, int]:
        """Resource name to amount, from the Node object or else from the machine (HOST-05)."""
        node = self._node.get()
        if node is None or not node.status.allocatable:
            return self._allocatable.get()
        from volumehost.sdk.quantity import parse_quantity

        return {
            name: parse_quantity(text).milli_value() if name == "cpu" else parse_quantity(text).value()
            for name, text in node.status.allocatable.items()
        }

    def get_attached_volumes_from_node_status(self) -> Mapping[str, str]:
        """Unique volume name to device path (HOST-07)."""
        node = self._node.get()
        return {volume.name: volume.device_path for volume in node.status.volumes_attached} if node is not None else {}

    def set_kubelet_error(self, error: Exception | None) -> None:
        """Report the node as not ready because of this error, until called with None."""
        self._kubelet_error = error

    @property
    def kubelet_error(self) -> Exception | None:
        """Why the node is not ready, as a plugin told."""
        return self._kubelet_error

    def _read_node(self) -> Node | None:
        """The Node object; None when there is none, or when the API does not answer: the node must work without it."""
        try:
            api = self.get_kube_client()
            if api is None:
                return None
            from volumehost.api.objects import Node

            return api.get(Node, self._node_name)
        except ApiError:
            return None

    # --- services ---------------------------------------------------------------------------------------------

    def get_mounter(self) -> MountInterface:
        """The kernel's mounts."""
        if self._mounter is None:
            from volumehost.mount.mounter import LinuxMounter

            self._mounter = LinuxMounter()
        return self._mounter

    def get_host_util(self) -> HostUtils:
        """Questions about paths of the host."""
        from volumehost.mount.hostutil import LinuxHostUtils

        return LinuxHostUtils(self.get_mounter(), selinux=self._selinux)

    def has_selinux(self) -> bool:
        """Whether the kernel has SELinux on, which does not change while this process runs."""
        if self._has_selinux is None:
            from volumehost.mount.selinux import SELinux

            self._has_selinux = (self._selinux or SELinux()).enabled()
        return self._has_selinux

    def get_subpather(self) -> Subpather:
        """Safe subpaths."""
        if self._subpather is None:
            from volumehost.mount.subpath import LinuxSubpather

            self._subpather = LinuxSubpather(self.get_mounter())
        return self._subpather

    def get_recycler(self) -> Recycler:
        """Empties volumes in this process (RECYCLE-08)."""
        from volumehost.hosts.recycler import LocalRecycler

        return LocalRecycler(self.layout.root_dir)

    def get_volume_config(self, plugin_name: str) -> VolumeConfig:
        """The configuration for that plugin."""
        return self._config.volume_config(plugin_name)

    def new_wrapper_mounter(self, volume_name: str, spec: Spec, pod: Pod) -> Mounter:
        """A mounter of whichever plugin supports ``spec`` (WRAP-01)."""
        from volumehost.hosts.wrappers import new_wrapper_mounter

        return new_wrapper_mounter(self._plugins(), volume_name, spec, pod)

    def new_wrapper_unmounter(self, volume_name: str, spec: Spec, pod_uid: str) -> Unmounter:
        """The unmounter to go with it (WRAP-02)."""
        from volumehost.hosts.wrappers import new_wrapper_unmounter

        return new_wrapper_unmounter(self._plugins(), volume_name, spec, pod_uid)

    def _require_api(self, action: str) -> ApiClient:
        api = self.get_kube_client()
        if api is None:
            raise NotAvailableOnHostError("the host has no API", action=action)
        return api

    def _plugins(self) -> VolumePluginManager:
        if self.plugin_manager is None:
            raise NotAvailableOnHostError("the host has no plugin manager", action="wrapping a volume")
        return self.plugin_manager
