"""NodeClient: the node service of one registered driver, over one channel that is reused (CSI-CLI).

Made for each registration by :mod:`volumehost_csi.drivers`; used by everything here that mounts. Arguments that can
never be right are refused before the call (CSI-ERR-06); what the driver answers with becomes an error of
:mod:`volumehost_csi.failures`. There are no retries in here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from volumehost.errors import StorageDriverError
from volumehost_csi.failures import RecentSecrets, rpc_failure
from volumehost_csi.metrics import CSIMetrics
from volumehost_csi.names import shorten

if TYPE_CHECKING:
    import grpc

    from volumehost.storage_driver import Topology, VolumeCapability
    from volumehost.volumes import VolumeMetrics

#: Deadline of one RPC in seconds, where nothing else is configured (CSI-CLI-05).
DEFAULT_TIMEOUT: Final = 120.0

#: The key under which service account tokens travel; secret wherever it is (CSI-TOK-05).
TOKEN_KEY: Final = "csi.storage.k8s.io/serviceAccount.tokens"  # noqa: S105 - the key, not a token

STAGE_UNSTAGE_VOLUME: Final = "STAGE_UNSTAGE_VOLUME"
GET_VOLUME_STATS: Final = "GET_VOLUME_STATS"
EXPAND_VOLUME: Final = "EXPAND_VOLUME"
VOLUME_CONDITION: Final = "VOLUME_CONDITION"
SINGLE_NODE_MULTI_WRITER: Final = "SINGLE_NODE_MULTI_WRITER"
VOLUME_MOUNT_GROUP: Final = "VOLUME_MOUNT_GROUP"

_SERVICE: Final = "/csi.v1.Node/"


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What the driver tells of this node; ``max_volumes`` 0 is no limit of its own (CSI-CLI-21)."""

    node_id: str
    max_volumes: int = 0
    topology: Topology = field(default_factory=dict)


class NodeClient:
    """Calls one driver's node service. Safe for threads.

    :param driver: the name that it registered with.
    :param channel: to its endpoint; whoever made it closes it.
    :param metrics: where each call is counted.
    :param timeout: deadline of each RPC, in seconds.
    """

    def __init__(
        self,
        driver: str,
        channel: grpc.Channel,
        metrics: CSIMetrics | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        from volumehost_csi.drivers.messages import capability_message
        from volumehost_csi_kit import csi, stubs

        self.driver = driver
        self._capability_message = capability_message
        self._csi: Any = csi
        self._stub = stubs.NodeStub(channel)
        self._metrics = metrics if metrics is not None else CSIMetrics()
        self._timeout = timeout
        self._capabilities: frozenset[str] | None = None
        self._lock = threading.Lock()
        self._sent = RecentSecrets()

    # --- what the driver is ---------------------------------------------------------------------------------

    def get_info(self, timeout: float | None = None) -> NodeInfo:
        """NodeGetInfo (CSI-WIRE-20).

        :param timeout: seconds; the client's own deadline when not given.
        :raises StorageDriverError: it failed, or the node id is empty (CSI-NIM-09).
        """
        action = "asking about this node"
        reply = self._call("NodeGetInfo", action, timeout=timeout)
        if not reply.node_id:
            raise self._refused(
                "NodeGetInfo", action, f"the CSI driver {self.driver} answers NodeGetInfo with an empty node id"
            )
        segments = dict(reply.accessible_topology.segments) if reply.HasField("accessible_topology") else {}
        return NodeInfo(reply.node_id, reply.max_volumes_per_node, segments)

    def capabilities(self) -> frozenset[str]:
        """Names of the node service's capabilities, asked once for each registration (CSI-CLI-06, improved).

        :raises StorageDriverError: they could not be asked for; the next call asks again.
        """
        known = self._capabilities
        if known is None:
            with self._lock:
                if self._capabilities is None:
                    self._capabilities = self._ask_capabilities()
                known = self._capabilities
        return known

    def has(self, capability: str) -> bool:
        """Whether the node service has that capability."""
        return capability in self.capabilities()

    def _ask_capabilities(self) -> frozenset[str]:
        from volumehost_csi.drivers.messages import enum_names

        reply = self._call("NodeGetCapabilities", "asking what the node service can do")
        types = (each.rpc.type for each in reply.capabilities if each.HasField("rpc"))
        return enum_names(types, self._csi.NodeServiceCapability.RPC.Type)

    # --- mounting -------------------------------------------------------------------------------------------

    def stage_volume(
        self,
        handle: str,
        staging_path: str,
        capability: VolumeCapability,
        *,
        publish_context: Mapping[str, str] | None = None,
        volume_context: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        migrated: bool = False,
    ) -> None:
        """NodeStageVolume (CSI-CLI-11)."""
        action = f"staging the volume {shorten(handle)} at {staging_path}"
        self._require("NodeStageVolume", action, handle, staging_path)
        self._call(
            "NodeStageVolume",
            action,
            handle,
            migrated=migrated,
            volume_id=handle,
            publish_context=publish_context,
            staging_target_path=staging_path,
            volume_capability=self._capability_message(capability),
            secrets=secrets,
            volume_context=volume_context,
        )

    def publish_volume(
        self,
        handle: str,
        target_path: str,
        capability: VolumeCapability,
        *,
        read_only: bool,
        staging_path: str = "",
        publish_context: Mapping[str, str] | None = None,
        volume_context: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        migrated: bool = False,
    ) -> None:
        """NodePublishVolume (CSI-CLI-12); ``staging_path`` "" where the driver does not stage."""
        action = f"publishing the volume {shorten(handle)} at {target_path}"
        self._require("NodePublishVolume", action, handle, target_path)
        self._call(
            "NodePublishVolume",
            action,
            handle,
            migrated=migrated,
            volume_id=handle,
            publish_context=publish_context,
            staging_target_path=staging_path,
            target_path=target_path,
            volume_capability=self._capability_message(capability),
            readonly=read_only,
            secrets=secrets,
            volume_context=volume_context,
        )

    def unpublish_volume(self, handle: str, target_path: str) -> None:
        """NodeUnpublishVolume (CSI-CLI-20)."""
        action = f"unpublishing the volume {shorten(handle)} from {target_path}"
        self._require("NodeUnpublishVolume", action, handle, target_path)
        self._call("NodeUnpublishVolume", action, handle, volume_id=handle, target_path=target_path)

    def unstage_volume(self, handle: str, staging_path: str) -> None:
        """NodeUnstageVolume (CSI-CLI-20)."""
        action = f"unstaging the volume {shorten(handle)} from {staging_path}"
        self._require("NodeUnstageVolume", action, handle, staging_path)
        self._call("NodeUnstageVolume", action, handle, volume_id=handle, staging_target_path=staging_path)

    # --- what is mounted ------------------------------------------------------------------------------------

    def expand_volume(
        self,
        handle: str,
        volume_path: str,
        capability: VolumeCapability,
        required_bytes: int,
        *,
        staging_path: str = "",
        secrets: Mapping[str, str] | None = None,
        migrated: bool = False,
    ) -> int:
        """NodeExpandVolume (CSI-CLI-16); returns the capacity that the driver tells, 0 when it does not."""
        action = f"expanding the volume {shorten(handle)} at {volume_path} to {required_bytes} bytes"
        self._require("NodeExpandVolume", action, handle, volume_path)
        if required_bytes < 0:
            raise self._refused("NodeExpandVolume", action, "the size is negative", handle)
        reply = self._call(
            "NodeExpandVolume",
            action,
            handle,
            migrated=migrated,
            expansion=True,
            volume_id=handle,
            volume_path=volume_path,
            capacity_range=self._csi.CapacityRange(required_bytes=required_bytes),
            staging_target_path=staging_path,
            volume_capability=self._capability_message(capability),
            secrets=secrets,
        )
        return int(reply.capacity_bytes)

    def get_volume_stats(self, handle: str, volume_path: str, *, staging_path: str = "") -> VolumeMetrics:
        """NodeGetVolumeStats (CSI-CLI-17 to -19), stamped with the time before the call (CSI-MET-06)."""
        from volumehost_csi.stats import volume_metrics

        action = f"measuring the volume {shorten(handle)} at {volume_path}"
        self._require("NodeGetVolumeStats", action, handle, volume_path)
        started = time.time()
        reply = self._call(
            "NodeGetVolumeStats",
            action,
            handle,
            volume_id=handle,
            volume_path=volume_path,
            staging_target_path=staging_path,
        )
        condition = reply.volume_condition if self.has(VOLUME_CONDITION) else None
        if not reply.usage and condition is None:
            raise self._refused(
                "NodeGetVolumeStats",
                action,
                f"the CSI driver {self.driver} answers NodeGetVolumeStats without any usage",
                handle,
            )
        return volume_metrics(started, reply.usage, condition, self.driver)

    # --- one call -------------------------------------------------------------------------------------------

    def _call(
        self,
        call: str,
        action: str,
        handle: str = "",
        *,
        timeout: float | None = None,
        migrated: bool = False,
        expansion: bool = False,
        **fields: Any,
    ) -> Any:
        request = self._request(call, action, handle, fields)
        if fields.get("secrets") or TOKEN_KEY in (fields.get("volume_context") or ()):
            from volumehost_csi_kit import redaction

            self._sent.remember(redaction.secret_values(request))
        __waits_for__ = f"{call} of the CSI driver {self.driver}"  # noqa: F841 - status shows it
        code = "OK"
        started = time.perf_counter()
        try:
            return getattr(self._stub, call)(request, timeout=self._timeout if timeout is None else timeout)
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a failure of the call (CSI-ERR-05)
            from volumehost_csi_kit import redaction

            failure = rpc_failure(
                error,
                driver=self.driver,
                call=call,
                action=action,
                subject=handle,
                secrets=[*redaction.secret_values(request), *self._sent.values()],
                expansion=expansion,
            )
            code = failure.code
            raise failure from None
        finally:
            seconds = time.perf_counter() - started
            self._metrics.observe_call(self.driver, _SERVICE + call, code, seconds, migrated=migrated)

    def _request(self, call: str, action: str, handle: str, fields: Mapping[str, Any]) -> Any:
        """The request message; texts that protobuf cannot carry are refused here, not half way (CSI-ERR-06)."""
        try:
            return getattr(self._csi, f"{call}Request")(**fields)
        except (ValueError, TypeError) as error:
            # The value may be a secret, and protobuf shows it.
            raise self._refused(call, action, f"a value cannot be sent: {type(error).__name__}", handle) from None

    def _require(self, call: str, action: str, handle: str, path: str) -> None:
        """Refuse what no driver can do anything with (CSI-ERR-06)."""
        if not handle or not path:
            raise self._refused(call, action, f"the {'path' if handle else 'volume handle'} is empty", handle)

    def _refused(self, call: str, action: str, reason: str, handle: str = "") -> StorageDriverError:
        return StorageDriverError(reason, driver=self.driver, call=call, action=action, subject=handle)
