"""What would be in the way of a volume, as far as that can be known without calling anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from volumehost.control.writes import get_or_none
from volumehost.errors import VolumeHostError
from volumehost.node.populating.affinity import check_node_affinity

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod, SecretReference
    from volumehost.hosts.node_host import NodeHost
    from volumehost.node.explaining.plan_places import Places
    from volumehost.node.state.desired import VolumeUse
    from volumehost.storage_driver import DriverStatus

_NO_DRIVER = "pip installs drivers, and 'volumehost drivers register' takes one that runs elsewhere"


class Checks:
    """Checks uses of volumes against the copy of the store, the node and the drivers of the host."""

    def __init__(self, api: ApiClient, host: NodeHost, places: Places, statuses: Sequence[DriverStatus]) -> None:
        self._api = api
        self._host = host
        self._places = places
        self._drivers = {status.name: status for status in statuses}

    def problems(self, use: VolumeUse, pod: Pod) -> list[str]:
        """Sentences; none when nothing is known to be in the way."""
        return [*self._of_volume(use), *self._of_driver(use), *self._of_secrets(use, pod)]

    def notes(self, use: VolumeUse) -> list[str]:
        """What is worth knowing of its driver."""
        status = self._drivers.get(_driver(use))
        return (
            [f"driver {status.name} is {status.state}: {status.error}"] if status is not None and status.error else []
        )

    def _of_volume(self, use: VolumeUse) -> Iterator[str]:
        volume = use.spec.persistent_volume
        if volume is None:
            return
        try:
            check_node_affinity(volume, self._host)
        except VolumeHostError:
            node, name = self._host.get_node_name(), volume.metadata.name
            yield f"node {node} cannot reach persistentvolume {name}: its nodeAffinity allows other nodes"
        if volume.spec.access_modes == ["ReadWriteOncePod"]:
            for holder in self._places.holders(use):
                yield f"pod {holder} has the volume, and ReadWriteOncePod is for one pod"
        if volume.spec.mount_options and not use.is_block and not use.plugin.supports_mount_option():
            yield f"persistentvolume {volume.metadata.name} has mount options, and {use.plugin.name} takes none"
        if volume.metadata.deletion_timestamp is not None:
            yield f"persistentvolume {volume.metadata.name} is being deleted"

    def _of_driver(self, use: VolumeUse) -> Iterator[str]:
        name = _driver(use)
        if not name:
            return
        if name not in self._drivers:
            yield f"driver {name} is neither installed nor registered ({_NO_DRIVER})"
        volume = use.spec.volume
        if volume is None or volume.csi is None:
            return
        from volumehost.api.objects import CSIDriver

        driver = get_or_none(self._api, CSIDriver, name)
        if driver is None:
            yield f"there is no CSIDriver {name}, which inline volumes need"
        elif "Ephemeral" not in (driver.spec.volume_lifecycle_modes or ["Persistent"]):
            yield f"driver {name} has no inline volumes: its CSIDriver does not list the lifecycle mode Ephemeral"

    def _of_secrets(self, use: VolumeUse, pod: Pod) -> Iterator[str]:
        from volumehost.api.objects import Secret

        for reference in _secrets(use, pod):
            if reference.name and get_or_none(self._api, Secret, reference.name, reference.namespace) is None:
                yield f"there is no secret {reference.namespace}/{reference.name}, which the volume needs"


def _driver(use: VolumeUse) -> str:
    """The CSI driver that serves the volume, "" for none."""
    volume, persistent = use.spec.volume, use.spec.persistent_volume
    if persistent is not None:
        return persistent.spec.csi.driver if persistent.spec.csi is not None else ""
    return volume.csi.driver if volume is not None and volume.csi is not None else ""


def _secrets(use: VolumeUse, pod: Pod) -> Iterator[SecretReference]:
    """Secrets that mounting it needs."""
    from volumehost.api.objects import SecretReference

    volume, persistent = use.spec.volume, use.spec.persistent_volume
    if persistent is not None and persistent.spec.csi is not None:
        source = persistent.spec.csi
        references = [source.controller_publish_secret_ref] if use.attachable else []
        references += [source.node_stage_secret_ref, source.node_publish_secret_ref]
        yield from (each for each in references if each is not None)
    elif volume is not None and volume.csi is not None and volume.csi.node_publish_secret_ref is not None:
        yield SecretReference(name=volume.csi.node_publish_secret_ref.name, namespace=pod.metadata.namespace)
    elif volume is not None and volume.secret is not None and not volume.secret.optional:
        yield SecretReference(name=volume.secret.secret_name, namespace=pod.metadata.namespace)
