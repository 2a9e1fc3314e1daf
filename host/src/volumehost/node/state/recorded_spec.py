"""Specs in the journal: what a device's unmount and a detach need when the pod and the claim are gone."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from volumehost.errors import VolumeHostError
from volumehost.node.journal.records import decode_text
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.node.journal.journal import Journal

logger = logging.getLogger(__name__)

#: What nobody needs for taking a volume down.
_BOOKKEEPING = ("resourceVersion", "generation", "creationTimestamp", "finalizers", "managedFields")


def wire_spec(spec: Spec) -> dict[str, Any]:
    """The fields that record the spec."""
    from volumehost.api.convert import to_wire

    if spec.persistent_volume is not None:
        volume = to_wire(spec.persistent_volume)
        volume.pop("status", None)
        for name in _BOOKKEEPING:
            volume.get("metadata", {}).pop(name, None)
        record = {"pv": volume, "ro": spec.read_only}
        if spec.migrated:  # that a translator made it (CSI-MIG-01)
            record |= {"mig": True, "inl": spec.inline_volume_spec_for_csi_migration}
        return record
    return {"vol": to_wire(spec.volume)} if spec.volume is not None else {}


def read_spec(journal: Journal, volume: str) -> Spec | None:
    """The spec that the journal has of the volume of that unique name, None when it has none that can be read."""
    text = journal.text(volume)
    if text is None:
        return None
    try:
        record = _decoder().decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return spec_from_record(decode_text(text) or {})  # which says what is wrong with it
    if record.pv is not None:
        return Spec(
            persistent_volume=record.pv,
            read_only=record.ro,
            migrated=record.mig,
            inline_volume_spec_for_csi_migration=record.inl,
        )
    return Spec.from_volume(record.vol) if record.vol is not None else None


@functools.cache
def _decoder() -> msgspec.json.Decoder[Any]:
    from volumehost.api.objects import PersistentVolume, Volume

    flags = [(name, bool, False) for name in ("ro", "mig", "inl")]
    volumes = [("pv", PersistentVolume | None, None), ("vol", Volume | None, None)]
    return msgspec.json.Decoder(msgspec.defstruct("RecordedSpec", [*volumes, *flags]))


def spec_from_record(record: Mapping[str, Any]) -> Spec | None:
    """The spec that was recorded, None when there is none or it cannot be read."""
    if "pv" not in record and "vol" not in record:
        return None
    from volumehost.api.convert import to_object
    from volumehost.api.objects import PersistentVolume, Volume

    try:
        if "pv" in record:
            return Spec(
                persistent_volume=to_object(PersistentVolume, record["pv"]),
                read_only=bool(record.get("ro")),
                migrated=bool(record.get("mig")),
                inline_volume_spec_for_csi_migration=bool(record.get("inl")),
            )
        return Spec.from_volume(to_object(Volume, record["vol"]))
    except VolumeHostError as error:
        logger.warning("the recorded spec of volume %s cannot be read: %s", record.get("v"), error)
        return None
