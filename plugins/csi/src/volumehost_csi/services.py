"""What the objects that the plugin hands out share: the host, the drivers, the settings.

Everything here is made when it is first needed: loading the plugin must cost a pod without CSI volumes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from volumehost.errors import (
    NotAvailableOnHostError,
    OperationError,
    TransientOperationError,
    VolumeHostError,
    is_operation_finished_error,
)
from volumehost_csi.driver_objects import DriverObjects
from volumehost_csi.metrics import CSIMetrics
from volumehost_csi.plugin import PLUGIN_NAME
from volumehost_csi.seen_attachments import SeenAttachments
from volumehost_csi.settings import Settings

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import CSIDriver
    from volumehost.host_services import HostUtils
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.client import NodeClient
    from volumehost_csi.drivers import Drivers
    from volumehost_csi.drivers.controller_drivers import ControllerDrivers
    from volumehost_csi.migration import Migration


class Services:
    """One plugin's view of its host. Safe for threads.

    :param fixed_driver_objects: see :class:`DriverObjects`.
    :param migration: which built-in kinds of volume are migrated, None when nobody said.
    """

    def __init__(
        self,
        host: VolumeHost,
        fixed_driver_objects: Iterable[CSIDriver] = (),
        migration: Migration | None = None,
        metrics: CSIMetrics | None = None,
    ) -> None:
        from volumehost.volume_host import AttachDetachVolumeHost, KubeletVolumeHost

        self.host = host
        self.settings = Settings.of(host)
        self.is_node = isinstance(host, KubeletVolumeHost)
        self.attaches = isinstance(host, AttachDetachVolumeHost)
        self.driver_objects = DriverObjects(host, fixed_driver_objects)
        self.metrics = metrics if metrics is not None else CSIMetrics()
        self.seen_attachments = SeenAttachments()
        self._migrated = migration.migrated_plugins() if migration is not None else None
        self._drivers: Drivers | None = None
        self._controller_drivers: ControllerDrivers | None = None
        self._host_util: HostUtils | None = None
        self._lock = threading.Lock()

    @cached_property
    def node_name(self) -> str:
        """Name of this node.

        :raises NotAvailableOnHostError: the host is no node's.
        """
        return self.host.get_node_name()

    @property
    def drivers(self) -> Drivers:
        """The drivers; made now if they were not."""
        if self._drivers is None:
            with self._lock:
                if self._drivers is None:
                    from volumehost_csi.drivers import Drivers

                    self._drivers = Drivers(
                        self.host, settings=self.settings, metrics=self.metrics, migrated=self._migrated
                    )
        return self._drivers

    @property
    def controller_drivers(self) -> ControllerDrivers:
        """The drivers of a host that is no node's: their controller services alone."""
        with self._lock:
            if self._controller_drivers is None:
                from volumehost_csi.drivers.controller_drivers import ControllerDrivers

                self._controller_drivers = ControllerDrivers(self.settings, self.metrics)
            return self._controller_drivers

    def close(self) -> None:
        """Let go of the drivers, if anybody needed them."""
        if self._controller_drivers is not None:
            self._controller_drivers.close()
        if self._drivers is not None:
            self._drivers.close()

    @property
    def host_util(self) -> HostUtils:
        """Questions about paths of the node."""
        if self._host_util is None:
            from volumehost.volume_host import KubeletVolumeHost

            host = self.host
            if not isinstance(host, KubeletVolumeHost):
                raise not_a_node("looking at a path")
            self._host_util = host.get_host_util()
        return self._host_util

    def client(self, driver: str) -> NodeClient:
        """The driver's client; one that is installed is started and waited for.

        :raises StorageDriverUnavailableError: it is not there (CSI-ERR-12).
        """
        return self.drivers.node_client(driver, self.settings.start_timeout)

    def refresh_node_info(self, driver: str) -> None:
        """Ask the driver anew how many volumes the node can take, and tell the cluster (CSI-REG-16).

        :raises VolumeHostError: it is not registered, does not answer, or the answer cannot be published.
        """
        self.drivers.registry.handler.refresh(driver)

    def require_node(self, action: str) -> None:
        """Refuse what only the host of a node can do.

        :raises NotAvailableOnHostError: this is another host.
        """
        if not self.is_node:
            raise not_a_node(action)

    def require_api(self, action: str) -> ApiClient:
        """The API.

        :raises NotAvailableOnHostError: the host has none.
        """
        api = self.host.get_kube_client()
        if api is None:
            raise NotAvailableOnHostError(
                "the host has no API", action=action, subject=PLUGIN_NAME, hint="run the host with an API"
            )
        return api


def not_a_node(action: str) -> NotAvailableOnHostError:
    """The error for a call that only the host of a node can serve."""
    return NotAvailableOnHostError(
        "plugin volume host does not implement KubeletVolumeHost interface",
        action=action,
        subject=PLUGIN_NAME,
        hint="CSI volumes are mounted by the host of a node, not by a controller",
    )


@contextmanager
def transient_failure(action: str, subject: str = "") -> Iterator[None]:
    """Failures in the block become transient: nothing was started yet, and a retry may help (CSI-ERR-12).

    Operation errors already say what they are (CSI-ERR-13, -14 improved).
    """
    try:
        yield
    except OperationError:
        raise
    except VolumeHostError as error:
        raise TransientOperationError(error.reason, action=action, subject=subject, hint=error.hint) from error


@contextmanager
def before_the_call() -> Iterator[None]:
    """For all that comes before a volume is staged or published: no failure of it is a final one.

    Nothing was started by this attempt, which proves nothing of an earlier one whose outcome is not known: that has to
    be undone one day (BR-31). What is uncertain or transient stays so.
    """
    try:
        yield
    except VolumeHostError as error:
        if not is_operation_finished_error(error):
            raise
        raise TransientOperationError(
            error.reason, action=error.action, subject=error.subject, hint=error.hint
        ) from error
