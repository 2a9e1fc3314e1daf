"""``volumehost snapshot restore``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import snapshot_names
from volumehost.cli.managing import timeout_option
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.sizes import SizeType
from volumehost.cli.snapshot_report import echo_outcome, names_of
from volumehost.cli.wish import Wish, bring_about, existing_store
from volumehost.errors import FailedPreconditionError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, VolumeSnapshot
    from volumehost.sdk.quantity import Quantity


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost snapshot restore monday data-of-monday"),
        ("With more room", "volumehost snapshot restore monday bigger --size 50Gi --class fast"),
    ),
)
@click.argument("snapshot", metavar="SNAPSHOT", type=NameType(), shell_complete=snapshot_names)
@click.argument("claim", metavar="NEW_PVC", type=NameType())
@click.option("--size", type=SizeType(), help="Size of the claim.  [default: what the snapshot needs]")
@click.option(
    "--class", "class_name", metavar="NAME", help="StorageClass.  [default: that of the claim it was taken of]"
)
@click.option("--wait/--no-wait", default=True, help="Wait until the volume is there.  [default: wait]")
@timeout_option("How long to wait.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def restore(
    settings: Settings,
    snapshot: str,
    claim: str,
    size: Quantity | None,
    class_name: str | None,
    *,
    wait: bool,
    timeout: float,
) -> None:
    """Make a claim whose volume begins as a snapshot was.

    The claim that the snapshot was taken of stays as it is. Where the storage class waits for the first consumer, the
    volume is made when a pod uses the claim.
    """
    from volumehost.api.objects import VolumeSnapshot

    (name,) = names_of([snapshot])
    new = claim.removeprefix("pvc/")
    with existing_store(settings, f"snapshot {settings.namespace}/{name}") as store:
        source = store.get(VolumeSnapshot, name, settings.namespace)
        made = store.create(_claim(store, source, new, size, class_name))
        delayed = _is_delayed(store, made)
        if wait and not delayed:
            wish = Wish(
                f"claim {settings.namespace}/{new} to be bound",
                lambda: _current(store, made).status.phase == "Bound",
                lambda: [_current(store, made)],
            )
            bring_about(settings, store, wish, timeout)
        now = _current(store, made)
    outcome = "restored" if now.status.phase == "Bound" else "asked for"
    if delayed and outcome != "restored":
        outcome = "asked for; its volume is made when a pod uses it"
    echo_outcome(settings, f"persistentvolumeclaim/{new}", outcome, _data(now, name))


def _claim(
    store: ApiClient, snapshot: VolumeSnapshot, new: str, size: Quantity | None, class_name: str | None
) -> PersistentVolumeClaim:
    """The claim to be made, like the one that the snapshot was taken of."""
    from volumehost.api.objects import (
        SNAPSHOT_GROUP,
        ObjectMeta,
        PersistentVolumeClaim,
        TypedLocalObjectReference,
    )

    source = _source(store, snapshot)
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name=new, namespace=snapshot.metadata.namespace))
    spec = claim.spec
    spec.access_modes = list(source.spec.access_modes) if source is not None else ["ReadWriteOnce"]
    spec.storage_class_name = class_name or (source.spec.storage_class_name if source is not None else None)
    spec.volume_mode = _volume_mode(store, snapshot)
    spec.resources.requests = {"storage": _size(snapshot, source, size)}
    spec.data_source = TypedLocalObjectReference(
        api_group=SNAPSHOT_GROUP, kind="VolumeSnapshot", name=snapshot.metadata.name
    )
    return claim


def _source(store: ApiClient, snapshot: VolumeSnapshot) -> PersistentVolumeClaim | None:
    """The claim that it was taken of, when there still is one of that name."""
    from volumehost.api.objects import PersistentVolumeClaim
    from volumehost.control.writes import get_or_none

    name = snapshot.spec.source.persistent_volume_claim_name
    return get_or_none(store, PersistentVolumeClaim, name, snapshot.metadata.namespace) if name else None


def _volume_mode(store: ApiClient, snapshot: VolumeSnapshot) -> str | None:
    from volumehost.api.objects import VolumeSnapshotContent
    from volumehost.control.writes import get_or_none

    name = snapshot.status.bound_volume_snapshot_content_name
    content = get_or_none(store, VolumeSnapshotContent, name) if name else None
    return content.spec.source_volume_mode if content is not None else None


def _size(snapshot: VolumeSnapshot, source: PersistentVolumeClaim | None, size: Quantity | None) -> str:
    """What the claim asks for.

    :raises FailedPreconditionError: it is too small, or nothing tells how large it must be.
    """
    from volumehost.sdk.quantity import parse_quantity

    name = snapshot.metadata.name
    needed = snapshot.status.restore_size or (source.status.capacity.get("storage", "") if source is not None else "")
    if size is None:
        if not needed:
            raise FailedPreconditionError(
                "nothing tells how large the volume must be",
                action=f"restoring snapshot {name}",
                subject=name,
                hint="give a --size, or wait until the snapshot is ready",
            )
        return needed
    if snapshot.status.restore_size and size < parse_quantity(snapshot.status.restore_size):
        raise FailedPreconditionError(
            f"{size} is too small: the snapshot needs {snapshot.status.restore_size}",
            action=f"restoring snapshot {name}",
            subject=name,
        )
    return str(size)


def _is_delayed(store: ApiClient, claim: PersistentVolumeClaim) -> bool:
    from volumehost.api.objects import StorageClass
    from volumehost.control.provisioning.classes import class_of_claim, default_class, is_delayed
    from volumehost.control.writes import get_or_none

    name = class_of_claim(claim)
    return is_delayed(get_or_none(store, StorageClass, name) if name else default_class(store))


def _current(store: ApiClient, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    now = store.get(type(claim), claim.metadata.name, claim.metadata.namespace)
    if now.metadata.uid != claim.metadata.uid:
        raise ObjectNotFoundError("the claim was deleted meanwhile", subject=claim.metadata.name)
    return now


def _data(claim: PersistentVolumeClaim, snapshot: str) -> dict[str, Any]:
    return {
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "snapshot": snapshot,
        "phase": claim.status.phase,
        "volume": claim.spec.volume_name,
        "capacity": claim.status.capacity.get("storage", ""),
    }
