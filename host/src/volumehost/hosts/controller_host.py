"""ControllerHost: what plugins may ask of a controller, which has the API but no node (ADHOST rules)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from volumehost.errors import NotAvailableOnHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import (
        ConfigMap,
        CSIDriver,
        CSINode,
        Pod,
        Secret,
        TokenRequest,
        VolumeAttachment,
    )
    from volumehost.host_services import EventRecorder, Lister, Recycler
    from volumehost.hosts.config import HostConfig
    from volumehost.spec import Spec, VolumeConfig


class ControllerHost:
    """The host of a controller: implements VolumeHost, CSIDriverVolumeHost and AttachDetachVolumeHost.

    Whatever needs a node raises NotAvailableOnHostError: an empty path would turn into a relative one (ADHOST-02,
    improved). ``recorder`` is None for the attach/detach controller.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        config: HostConfig,
        recorder: EventRecorder | None = None,
        recycler: Recycler | None = None,
    ) -> None:
        self._api = api
        self._config = config
        self._recorder = recorder
        self._recycler = recycler

    # --- what a controller has ----------------------------------------------------------------------------------

    def get_kube_client(self) -> ApiClient | None:
        """The API client."""
        return self._api

    def get_event_recorder(self) -> EventRecorder | None:
        """Where events go."""
        return self._recorder

    def get_volume_config(self, plugin_name: str) -> VolumeConfig:
        """The configuration for that plugin."""
        return self._config.volume_config(plugin_name)

    def get_recycler(self) -> Recycler:
        """Runs recycler pods.

        :raises NotAvailableOnHostError: this controller was given none.
        """
        if self._recycler is None:
            _unavailable("recycling volumes")
        return self._recycler

    def csi_driver_lister(self) -> Lister[CSIDriver]:
        """CSIDriver objects."""
        from volumehost.api.listers import StoreLister
        from volumehost.api.objects import CSIDriver

        return StoreLister(self._api, CSIDriver)

    def csi_node_lister(self) -> Lister[CSINode]:
        """CSINode objects."""
        from volumehost.api.listers import StoreLister
        from volumehost.api.objects import CSINode

        return StoreLister(self._api, CSINode)

    def volume_attachment_lister(self) -> Lister[VolumeAttachment]:
        """VolumeAttachment objects."""
        from volumehost.api.listers import StoreLister
        from volumehost.api.objects import VolumeAttachment

        return StoreLister(self._api, VolumeAttachment)

    def is_attach_detach_controller(self) -> bool:
        """Marks this host (ADHOST-01)."""
        return True

    # --- what only a node has -----------------------------------------------------------------------------------

    def get_plugin_dir(self, plugin_name: str) -> NoReturn:
        """Not available."""
        _unavailable(f"asking for the directory of plugin {plugin_name}")

    def get_volume_device_plugin_dir(self, plugin_name: str) -> NoReturn:
        """Not available."""
        _unavailable(f"asking for the device directory of plugin {plugin_name}")

    def get_pods_dir(self) -> NoReturn:
        """Not available."""
        _unavailable("asking for the pods directory")

    def get_pod_volume_dir(self, pod_uid: str, plugin_name: str, volume_name: str) -> NoReturn:
        """Not available."""
        _unavailable(f"asking for the directory of volume {volume_name} ({plugin_name}) of pod {pod_uid}")

    def get_pod_plugin_dir(self, pod_uid: str, plugin_name: str) -> NoReturn:
        """Not available."""
        _unavailable(f"asking for the directory of plugin {plugin_name} in pod {pod_uid}")

    def get_pod_volume_device_dir(self, pod_uid: str, plugin_name: str) -> NoReturn:
        """Not available."""
        _unavailable(f"asking for the device directory of plugin {plugin_name} in pod {pod_uid}")

    def new_wrapper_mounter(self, volume_name: str, spec: Spec, pod: Pod) -> NoReturn:
        """Not available."""
        del spec, pod
        _unavailable(f"mounting the wrapped volume {volume_name}")

    def new_wrapper_unmounter(self, volume_name: str, spec: Spec, pod_uid: str) -> NoReturn:
        """Not available."""
        del spec, pod_uid
        _unavailable(f"unmounting the wrapped volume {volume_name}")

    def get_mounter(self) -> NoReturn:
        """Not available."""
        _unavailable("mounting")

    def get_subpather(self) -> NoReturn:
        """Not available."""
        _unavailable("preparing subpaths")

    def get_node_allocatable(self) -> Mapping[str, int]:
        """Nothing: a controller has no resources to give to pods."""
        return {}

    def get_node_labels(self) -> NoReturn:
        """Not available."""
        _unavailable("asking for node labels")

    def get_node_name(self) -> NoReturn:
        """Not available."""
        _unavailable("asking for the node's name")

    def get_attached_volumes_from_node_status(self) -> Mapping[str, str]:
        """Nothing: a controller is not a node."""
        return {}

    def get_secret_func(self) -> Callable[[str, str], Secret]:
        """A function that raises NotAvailableOnHostError."""
        return lambda namespace, name: _unavailable(f"reading secret {namespace}/{name}")

    def get_config_map_func(self) -> Callable[[str, str], ConfigMap]:
        """A function that raises NotAvailableOnHostError."""
        return lambda namespace, name: _unavailable(f"reading config map {namespace}/{name}")

    def get_service_account_token_func(self) -> Callable[[str, str, TokenRequest], TokenRequest]:
        """A function that raises NotAvailableOnHostError."""
        return lambda namespace, name, _request: _unavailable(f"requesting a token for {namespace}/{name}")

    def delete_service_account_token_func(self) -> Callable[[str], None]:
        """A function that raises NotAvailableOnHostError."""
        return lambda pod_uid: _unavailable(f"dropping tokens of pod {pod_uid}")


def _unavailable(action: str) -> NoReturn:
    raise NotAvailableOnHostError(
        "a controller does not offer this", action=action, hint="only the host of a node does"
    )
