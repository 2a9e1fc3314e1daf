"""Growing a volume on the node that uses it (CSI-EXP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import OperationNotSupportedError, StorageDriverUnsupportedError
from volumehost_csi.client import EXPAND_VOLUME, STAGE_UNSTAGE_VOLUME
from volumehost_csi.context import secret_values
from volumehost_csi.source import EPHEMERAL, capability, lifecycle_mode, persistent_source

if TYPE_CHECKING:
    from volumehost.volumes import NodeResizeOptions
    from volumehost_csi.services import Services


def node_expand(services: Services, options: NodeResizeOptions) -> bool:
    """Let the driver grow what is mounted; True when it has (CSI-EXP-02 to -08).

    :raises OperationNotSupportedError: the volume is an inline one (CSI-EXP-01).
    :raises TransientOperationError: the driver is not registered, or the secret cannot be had (CSI-EXP-04, improved).
    :raises StorageDriverUnsupportedError: the driver does not expand volumes on nodes (CSI-EXP-03).
    :raises StorageDriverPreconditionError: it cannot while the volume is used (CSI-EXP-09).
    :raises StorageDriverInfeasibleError: it never will (CSI-EXP-10).
    :raises StorageDriverUncertainError: it may be at it still (CSI-EXP-12, improved).
    """
    spec = options.volume_spec
    if lifecycle_mode(spec) == EPHEMERAL:
        raise OperationNotSupportedError(
            "an inline volume cannot be expanded", action=f"expanding the volume {spec.name()}", subject=spec.name()
        )
    source = persistent_source(spec)
    assert spec.persistent_volume is not None
    client = services.client(source.driver)
    if not client.has(EXPAND_VOLUME):
        raise StorageDriverUnsupportedError(
            f"the CSI driver {source.driver} does not expand volumes on nodes",
            driver=source.driver,
            call="NodeExpandVolume",
            action=f"expanding the volume {spec.name()}",
            subject=spec.name(),
        )
    secrets = secret_values(services.host, source.node_expand_secret_ref)
    wanted = capability(spec, client.capabilities(), mount_flags=list(spec.persistent_volume.spec.mount_options))
    client.expand_volume(
        source.volume_handle,
        options.device_path if wanted.block else options.device_mount_path,
        wanted,
        options.new_size,
        # Only a driver that stages knows what the path means (CSI-EXP-06, improved).
        staging_path=options.device_stage_path if client.has(STAGE_UNSTAGE_VOLUME) else "",
        secrets=secrets,
        migrated=spec.migrated,
    )
    return True
