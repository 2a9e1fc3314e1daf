"""What is written on a claim before a volume is created for it, so that the volume is never forgotten.

A CreateVolume whose outcome nobody heard of may have made a volume, and only the same call again tells its handle. So
the whole request stands on the claim, without its secrets, and a finalizer keeps the claim until the volume has a
PersistentVolume, is deleted again, or is known not to exist. The class may be changed or gone by then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from volumehost.control.well_known import PROVISIONING_FINALIZER, PROVISIONING_INTENT
from volumehost.control.writes import update
from volumehost.storage_driver import CreateVolumeRequest, VolumeCapability

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, SecretReference

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intent:
    """A volume that was, or is about to be, asked of a driver.

    ``request`` has no secrets: ``secret_name`` and ``secret_namespace`` say where they are. ``volume`` is the
    PersistentVolume in wire form, without what only the driver's answer tells. ``handle`` is set once the volume is
    known and is to be deleted again. ``topology``: the driver says from where the volume can be reached.
    """

    driver: str
    request: CreateVolumeRequest
    volume: Mapping[str, Any]
    secret_name: str = ""
    secret_namespace: str = ""
    handle: str = ""
    topology: bool = False

    def secret(self) -> SecretReference | None:
        """The secret for calls that create and delete the volume."""
        from volumehost.api.objects import SecretReference

        return SecretReference(name=self.secret_name, namespace=self.secret_namespace) if self.secret_name else None


def read_intent(claim: PersistentVolumeClaim) -> Intent | None:
    """What stands on the claim, None when nothing does that makes sense."""
    text = claim.metadata.annotations.get(PROVISIONING_INTENT)
    if text is None:
        return None
    try:
        data = json.loads(text)
        request = data.pop("request")
        capabilities = [
            VolumeCapability(**{**each, "mount_flags": tuple(each["mount_flags"])})
            for each in request.pop("capabilities")
        ]
        return Intent(request=CreateVolumeRequest(capabilities=capabilities, **request), **data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("claim %s: its annotation %s is spoilt: %r", claim.metadata.name, PROVISIONING_INTENT, error)
        return None


def write_intent(api: ApiClient, claim: PersistentVolumeClaim, intent: Intent) -> PersistentVolumeClaim:
    """Put it on the claim; it is durable when this returns."""
    data = asdict(replace(intent, request=replace(intent.request, secrets={})))
    del data["request"]["secrets"]
    text = json.dumps(data, sort_keys=True)

    def change(fresh: PersistentVolumeClaim) -> None:
        fresh.metadata.annotations = {**fresh.metadata.annotations, PROVISIONING_INTENT: text}
        if PROVISIONING_FINALIZER not in fresh.metadata.finalizers:
            fresh.metadata.finalizers = [*fresh.metadata.finalizers, PROVISIONING_FINALIZER]

    return update(api, claim, change)


def clear_intent(api: ApiClient, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Nothing is left to be remembered. Ends a claim that is being deleted, unless others keep it."""

    def change(fresh: PersistentVolumeClaim) -> None:
        metadata = fresh.metadata
        metadata.annotations = {k: v for k, v in metadata.annotations.items() if k != PROVISIONING_INTENT}
        metadata.finalizers = [name for name in metadata.finalizers if name != PROVISIONING_FINALIZER]

    return update(api, claim, change)


def has_intent(claim: PersistentVolumeClaim) -> bool:
    """Whether a volume may exist that no PersistentVolume tells of."""
    return PROVISIONING_FINALIZER in claim.metadata.finalizers
