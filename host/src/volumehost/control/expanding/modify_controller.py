"""Changes the attributes of volumes whose claims name another VolumeAttributesClass (ControllerModifyVolume)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.attaching.attach_source import csi_source
from volumehost.control.expanding.modify_status import (
    IN_PROGRESS,
    INFEASIBLE,
    ModifyStatus,
    may_be_under_way,
    state_of,
    target_of,
)
from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.messages import message_of, without_secrets
from volumehost.control.secrets import read_secret
from volumehost.control.writes import get_or_none, update
from volumehost.errors import (
    ConflictError,
    OperationNotSupportedError,
    StorageDriverError,
    StorageDriverUnsupportedError,
    StoreError,
    TransientOperationError,
    VolumeHostError,
    error_chain,
)

if TYPE_CHECKING:
    from volumehost.api.objects import (
        KubeObject,
        PersistentVolume,
        PersistentVolumeClaim,
        SecretReference,
        VolumeAttributesClass,
    )
    from volumehost.storage_driver import StorageDriver

MODIFY = "MODIFY_VOLUME"
#: How long a change that cannot work is left alone, unless another class is asked for, in seconds.
INFEASIBLE_SECONDS = 600.0

#: On a volume: the secret that modifying it needs; by default it is the one for its expansion.
MODIFY_SECRET_NAME = "volume.kubernetes.io/controller-modify-secret-name"  # noqa: S105 - a name, no secret
MODIFY_SECRET_NAMESPACE = "volume.kubernetes.io/controller-modify-secret-namespace"  # noqa: S105 - a name, no secret


class ModifyController:
    """Controller of claims; see :class:`volumehost.control.machinery.controller.Controller`."""

    name = "modifier"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext, *, clock: Callable[[], float] = time.monotonic) -> None:
        from volumehost.api.objects import PersistentVolumeClaim

        self.kind = PersistentVolumeClaim
        self._context = context
        self._api = context.api
        self._clock = clock
        #: Until when a class that a driver refused is left alone: claim uid to (class, when).
        self._slow: dict[str, tuple[str, float]] = {}

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Claims, and the classes that they wait for."""
        from volumehost.api.objects import PersistentVolumeClaim, VolumeAttributesClass

        return {PersistentVolumeClaim: lambda claim: [Key.of(claim)], VolumeAttributesClass: self._claims_of}

    def _claims_of(self, attributes: VolumeAttributesClass) -> Iterable[Key]:
        from volumehost.api.objects import PersistentVolumeClaim

        name = attributes.metadata.name
        claims = self._api.list(PersistentVolumeClaim).items
        return [Key.of(each) for each in claims if name in {each.spec.volume_attributes_class_name, target_of(each)}]

    def reconcile(self, key: Key) -> float | None:
        """Give the claim's volume the attributes of the class that the claim names."""
        from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

        claim = get_or_none(self._api, PersistentVolumeClaim, key.name, key.namespace)
        if claim is None or claim.status.phase != "Bound" or not claim.spec.volume_name:
            return None
        wanted = claim.spec.volume_attributes_class_name or ""
        if not state_of(claim) and wanted == (claim.status.current_volume_attributes_class_name or ""):
            return None
        volume = get_or_none(self._api, PersistentVolume, claim.spec.volume_name)
        if volume is None or volume.spec.csi is None:
            return None
        driver = volume.spec.csi.driver
        if self._context.external_drivers and not self._context.knows_driver(driver):
            return None
        try:
            return self._modify(claim, volume, wanted)
        finally:
            self._context.progress(claim, "")

    def _modify(self, claim: PersistentVolumeClaim, volume: PersistentVolume, wanted: str) -> float | None:
        left = self._left_alone(claim, wanted)
        if left > 0:
            return left
        status = ModifyStatus(self._api, self._context.wall_clock())
        under_way = may_be_under_way(claim)
        if not wanted and state_of(claim) != IN_PROGRESS:
            if status.rolled_back(claim):
                self._context.event(claim, "Normal", "VolumeModifyCancelled", "Cancelled modify.")
            return None
        # What may still be going on is ended before anything else is begun.
        target = target_of(claim) if under_way or not wanted else wanted
        attributes = self._class(claim, volume, target)
        if attributes is None:
            if not under_way:
                status.pending(claim, target)
            return None
        driver = self._context.driver(volume.spec.csi.driver if volume.spec.csi is not None else "")
        if not under_way:
            message = f"modifying volume {volume.metadata.name} with class {target}"
            self._context.event(claim, "Normal", "VolumeModify", message)
        claim = status.in_progress(claim, target)
        self._context.progress(claim, f"changing volume {volume.metadata.name} to {target} (ControllerModifyVolume)")
        try:
            self._call(driver, volume, attributes)
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            return self._failed(status, claim, target, error)
        update(self._api, volume, lambda fresh: _set_class(fresh, target))
        status.completed(claim)
        message = f"volume {volume.metadata.name} has the attributes of class {target}"
        self._context.event(claim, "Normal", "VolumeModifySuccessful", message)
        return None

    def _class(self, claim: PersistentVolumeClaim, volume: PersistentVolume, name: str) -> VolumeAttributesClass | None:
        """The class, when there is one and it is for the volume's driver; tells when not."""
        from volumehost.api.objects import VolumeAttributesClass

        attributes = get_or_none(self._api, VolumeAttributesClass, name)
        driver = volume.spec.csi.driver if volume.spec.csi is not None else ""
        if attributes is None:
            message = f'VolumeAttributesClass "{name}" does not exist'
        elif attributes.driver_name != driver:
            message = (
                f'VolumeAttributesClass "{name}" is for driver {attributes.driver_name}, the volume is of {driver}'
            )
        else:
            return attributes
        self._context.event(claim, "Warning", "VolumeModifyFailed", message)
        return None

    def _call(self, driver: StorageDriver, volume: PersistentVolume, attributes: VolumeAttributesClass) -> None:
        if not driver.capabilities().controls(MODIFY):
            raise StorageDriverUnsupportedError(
                f"driver {driver.name} cannot change the attributes of volumes",
                driver=driver.name,
                action=f"changing volume {volume.metadata.name}",
                hint="take volumeAttributesClassName of the claim back",
            )
        source = csi_source(volume, driver.name)
        secrets = read_secret(self._api, _secret_of(volume) or source.controller_expand_secret_ref)
        with without_secrets(secrets):
            driver.modify_volume(source.volume_handle, attributes.parameters, secrets)

    # --- when it does not work --------------------------------------------------------------------------------------

    def _failed(
        self, status: ModifyStatus, claim: PersistentVolumeClaim, target: str, error: VolumeHostError
    ) -> float | None:
        """By the kind of the error; only what the driver finds wrong with the class itself is infeasible."""
        self._context.event(claim, "Warning", "VolumeModifyFailed", message_of(error))
        chain = list(error_chain(error))
        if any(isinstance(link, TransientOperationError) for link in chain):
            raise error
        refused = any(isinstance(link, StorageDriverError) and link.code == "INVALID_ARGUMENT" for link in chain)
        if refused or any(isinstance(link, OperationNotSupportedError) for link in chain):
            status.failed(claim, error, INFEASIBLE)
            now = self._clock()
            self._slow = {uid: entry for uid, entry in self._slow.items() if entry[1] > now}
            self._slow[claim.metadata.uid] = (target, now + INFEASIBLE_SECONDS)
            return INFEASIBLE_SECONDS
        status.failed(claim, error, IN_PROGRESS)
        raise error

    def _left_alone(self, claim: PersistentVolumeClaim, wanted: str) -> float:
        """Seconds until a class that was refused is tried again; 0 for now."""
        refused, until = self._slow.get(claim.metadata.uid, ("", 0.0))
        if not wanted or refused != wanted or state_of(claim) != INFEASIBLE:
            return 0.0
        return max(0.0, until - self._clock())


def _secret_of(volume: PersistentVolume) -> SecretReference | None:
    from volumehost.api.objects import SecretReference

    annotations = volume.metadata.annotations
    name, namespace = annotations.get(MODIFY_SECRET_NAME, ""), annotations.get(MODIFY_SECRET_NAMESPACE, "")
    return SecretReference(name=name, namespace=namespace) if name and namespace else None


def _set_class(volume: PersistentVolume, name: str) -> None:
    volume.spec.volume_attributes_class_name = name
