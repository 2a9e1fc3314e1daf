"""Snapshots as text and as plain data: what the ``snapshot`` commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, VolumeSnapshot
    from volumehost.cli.options import Settings


def current(store: ApiClient, snapshot: VolumeSnapshot) -> VolumeSnapshot:
    """The snapshot as it is now.

    :raises ObjectNotFoundError: it is gone.
    """
    now = store.get(type(snapshot), snapshot.metadata.name, snapshot.metadata.namespace)
    if now.metadata.uid != snapshot.metadata.uid:
        raise ObjectNotFoundError("the snapshot was deleted meanwhile", subject=snapshot.metadata.name)
    return now


def with_content(store: ApiClient, snapshot: VolumeSnapshot) -> list[KubeObject]:
    """The snapshot and its content, as far as they are there: what the controllers work on for it."""
    from volumehost.api.objects import VolumeSnapshot, VolumeSnapshotContent
    from volumehost.control.snapshots.snapshot_names import content_name
    from volumehost.control.writes import get_or_none

    metadata = snapshot.metadata
    name = snapshot.spec.source.volume_snapshot_content_name or content_name(snapshot)
    found = (
        get_or_none(store, VolumeSnapshot, metadata.name, metadata.namespace),
        get_or_none(store, VolumeSnapshotContent, name),
    )
    return [each for each in found if each is not None]


def snapshot_data(snapshot: VolumeSnapshot) -> dict[str, Any]:
    """The documented shape of a snapshot in JSON and YAML."""
    status = snapshot.status
    return {
        "namespace": snapshot.metadata.namespace,
        "name": snapshot.metadata.name,
        "claim": snapshot.spec.source.persistent_volume_claim_name or "",
        "class": snapshot.spec.volume_snapshot_class_name or "",
        "ready": bool(status.ready_to_use),
        "restoreSize": status.restore_size or "",
        "createdAt": status.creation_time or "",
        "content": status.bound_volume_snapshot_content_name or "",
        "error": (status.error.message or "") if status.error is not None else "",
    }


def state_of(snapshot: VolumeSnapshot) -> str:
    """One word, and why, where it is not ready."""
    if snapshot.metadata.deletion_timestamp:
        word = "deleting"
    elif snapshot.status.ready_to_use:
        return "ready"
    else:
        word = "not ready"
    error = snapshot.status.error
    return f"{word}: {error.message}" if error is not None and error.message else word


def echo_outcome(settings: Settings, name: str, outcome: str, data: dict[str, Any]) -> None:
    """What was done to one object, ``kind/name``."""
    if settings.output == "table":
        click.echo(f"{name} {outcome}")
    elif settings.output == "name":
        click.echo(name)
    else:
        from volumehost.cli.output import echo_data

        echo_data(data, settings.output)


def names_of(words: Sequence[str]) -> list[str]:
    """Names of snapshots, with or without their kind."""
    return [word.removeprefix("volumesnapshot/").removeprefix("vs/") for word in words]
