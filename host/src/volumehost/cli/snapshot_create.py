"""``volumehost snapshot create``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import claim_names
from volumehost.cli.managing import timeout_option
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.snapshot_report import current, echo_outcome, snapshot_data, state_of, with_content
from volumehost.cli.wish import Wish, bring_about, existing_store

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import VolumeSnapshot


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost snapshot create monday --from data"),
        ("With another class", "volumehost snapshot create monday --from data --class nightly"),
        (
            "One that the driver has already",
            "volumehost snapshot create old --handle snap-17 --driver csi.example.com",
        ),
    ),
)
@click.argument("name", type=NameType())
@click.option(
    "--from", "claim", metavar="PVC", type=NameType(), shell_complete=claim_names, help="Claim to take it of."
)
@click.option("--handle", metavar="HANDLE", help="Take over a snapshot that the driver has already, by its handle.")
@click.option("--driver", metavar="DRIVER", help="Storage driver that has the snapshot of --handle.")
@click.option(
    "--class",
    "class_name",
    metavar="NAME",
    help="VolumeSnapshotClass.  [default: the default class of the volume's driver]",
)
@click.option("--wait/--no-wait", default=True, help="Wait until it is ready to be restored.  [default: wait]")
@timeout_option("How long to wait.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def create(
    settings: Settings,
    name: str,
    *,
    claim: str | None,
    handle: str | None,
    driver: str | None,
    class_name: str | None,
    wait: bool,
    timeout: float,
) -> None:
    """Take a snapshot of a claim's volume.

    The claim may be in use: the snapshot has what was written to the volume by then. A snapshot that the driver has
    already (see 'snapshot list --driver') is taken over with --handle; deleting it then leaves it on the driver.
    """
    if bool(claim) == bool(handle):
        raise click.UsageError("give either --from PVC, or --handle and --driver")
    if bool(handle) != bool(driver):
        raise click.UsageError("--handle and --driver belong together")
    what = f"claim {settings.namespace}/{claim}" if claim else f"snapshot {handle}"
    with existing_store(settings, what) as store:
        if claim:
            made = _of_claim(store, settings.namespace, name, claim, class_name)
        else:
            made = _of_handle(store, settings.namespace, name, (driver or "", handle or ""), class_name)
        if wait:
            wish = Wish(
                f"snapshot {settings.namespace}/{name} to be ready",
                lambda: bool(current(store, made).status.ready_to_use),
                lambda: with_content(store, made),
            )
            bring_about(settings, store, wish, timeout)
        now = current(store, made)
    echo_outcome(settings, f"volumesnapshot/{name}", state_of(now) if wait else "asked for", snapshot_data(now))


def _of_claim(store: ApiClient, namespace: str, name: str, claim: str, class_name: str | None) -> VolumeSnapshot:
    from volumehost.api.objects import ObjectMeta, PersistentVolumeClaim, VolumeSnapshot

    store.get(PersistentVolumeClaim, claim.removeprefix("pvc/"), namespace)
    wanted = VolumeSnapshot(metadata=ObjectMeta(name=name, namespace=namespace))
    wanted.spec.source.persistent_volume_claim_name = claim.removeprefix("pvc/")
    wanted.spec.volume_snapshot_class_name = class_name
    return store.create(wanted)


def _of_handle(
    store: ApiClient, namespace: str, name: str, source: tuple[str, str], class_name: str | None
) -> VolumeSnapshot:
    """The snapshot and the content by which the driver's own is known; the content first, as it is found by name."""
    from volumehost.api.objects import ObjectMeta, ObjectReference, VolumeSnapshot, VolumeSnapshotContent

    content = VolumeSnapshotContent(metadata=ObjectMeta(generate_name=f"{name}-"))
    content.spec.driver, content.spec.source.snapshot_handle = source
    content.spec.deletion_policy = "Retain"
    content.spec.volume_snapshot_class_name = class_name
    content.spec.volume_snapshot_ref = ObjectReference(name=name, namespace=namespace)
    wanted = VolumeSnapshot(metadata=ObjectMeta(name=name, namespace=namespace))
    wanted.spec.volume_snapshot_class_name = class_name
    kept = store.create(content)
    wanted.spec.source.volume_snapshot_content_name = kept.metadata.name
    try:
        return store.create(wanted)
    except BaseException:
        store.delete(VolumeSnapshotContent, kept.metadata.name, uid=kept.metadata.uid)
        raise
