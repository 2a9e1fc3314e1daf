"""Creates volumes through storage drivers: plan, note, call, check, tell; each step can be the last before a crash.

The order of calls is the external-provisioner's. The note on the claim (:mod:`volumehost.control.binding.intent`) is
ours.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.control.binding.intent import Intent, clear_intent, has_intent, read_intent, write_intent
from volumehost.control.messages import without_secrets
from volumehost.control.provisioning.create_request import plan_volume, volume_name
from volumehost.control.provisioning.data_sources import data_source
from volumehost.control.provisioning.topology import node_affinity
from volumehost.control.secrets import read_secret
from volumehost.control.well_known import CLONING_FINALIZER, PROVISIONING_FINALIZER
from volumehost.control.writes import add_finalizer, get_or_none
from volumehost.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidObjectError,
    StorageDriverError,
    StorageDriverUnavailableError,
    is_operation_finished_error,
)
from volumehost.sdk.quantity import Quantity

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
    from volumehost.control.binding.matching import NodeView
    from volumehost.control.machinery.controller import ControlContext
    from volumehost.storage_driver import CreatedVolume, StorageDriver

logger = logging.getLogger(__name__)

#: A handle that is longer than any is not noted: creating the volume again tells it again.
_LONGEST_HANDLE = 64 * 1024


class CsiProvisioner:
    """Creates and, where a claim does not want it any more, removes what it created."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._api = context.api

    def provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass | None, node: NodeView | None
    ) -> PersistentVolume:
        """Create the volume for the claim, or find the one that was created, and its PersistentVolume.

        :param storage_class: None when it is gone, which matters only where no note of an earlier attempt is left.
        :raises StorageDriverError: the driver failed; what is uncertain stays noted on the claim.
        :raises SpecError: claim or class ask for what cannot be.
        :raises FailedPreconditionError: something that they name is not there yet.
        """
        existing = self._existing(claim)
        if existing is not None:
            clear_intent(self._api, claim)
            return existing
        intent = read_intent(claim)
        if intent is not None and intent.handle:
            claim, intent = self._remove(self._driver(claim, intent.driver), claim, intent), None
        is_new = intent is None
        if intent is None:
            if storage_class is None:
                raise FailedPreconditionError(f"there is no storageclass {claim.spec.storage_class_name}")
            driver = self._driver(claim, storage_class.provisioner)
            intent = self._plan(driver, claim, storage_class, node)
        else:
            driver = self._driver(claim, intent.driver)
        secrets = read_secret(self._api, intent.secret())
        if is_new:
            claim = write_intent(self._api, claim, intent)
        self._context.progress(claim, f"creating the volume (CreateVolume of driver {driver.name})")
        try:
            created = _create(driver, intent, secrets)
        except StorageDriverError as error:
            if is_final(error) or (is_new and isinstance(error, StorageDriverUnavailableError)):
                clear_intent(self._api, claim)
            raise
        problem = _problem(created, intent)
        if problem:
            self._remove(driver, claim, replace(intent, handle=created.handle))
            raise StorageDriverError(
                f"{problem}; the volume was deleted again",
                driver=driver.name,
                call="CreateVolume",
                action=f"creating the volume {intent.request.name}",
                subject=intent.request.name,
            )
        volume = self._store(driver, claim, intent, created)
        clear_intent(self._api, claim)
        return volume

    def abandon(self, claim: PersistentVolumeClaim) -> None:
        """The claim is being deleted: find out what an earlier attempt may have created, and delete it.

        :raises StorageDriverError: the driver failed; the claim stays until it is known.
        """
        if not has_intent(claim):
            return
        if self._existing(claim) is not None:
            clear_intent(self._api, claim)  # the PersistentVolume tells of it, and is reclaimed as any other
            return
        intent = read_intent(claim)
        if intent is None:
            raise FailedPreconditionError(
                "a volume may have been created for it, and the note that says which is spoilt",
                action=f"deleting persistentvolumeclaim {claim.metadata.namespace}/{claim.metadata.name}",
                hint=f"look for the volume {volume_name(claim)}, then remove the finalizer {PROVISIONING_FINALIZER}",
            )
        driver = self._driver(claim, intent.driver)
        if not intent.handle:
            self._context.progress(claim, "asking for the volume that may have been created (CreateVolume)")
            secrets = read_secret(self._api, intent.secret())
            try:
                created = _create(driver, intent, secrets)
            except StorageDriverError as error:
                if not is_final(error):
                    raise
                clear_intent(self._api, claim)
                return
            intent = replace(intent, handle=created.handle)
        self._remove(driver, claim, intent)

    # --- steps ------------------------------------------------------------------------------------------------------

    def _driver(self, claim: PersistentVolumeClaim, name: str) -> StorageDriver:
        self._context.progress(claim, f"waiting for the driver {name}")
        driver = self._context.driver(name)
        self._context.progress(claim, f"preparing what to ask of the driver {name}")
        return driver

    def _existing(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that was made for it; what is not there for certain may be deleted again."""
        from volumehost.api.objects import PersistentVolume

        return get_or_none(self._context.uncached, PersistentVolume, volume_name(claim))

    def _plan(
        self,
        driver: StorageDriver,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        node: NodeView | None,
    ) -> Intent:
        source = data_source(self._api, claim, driver.name, driver.capabilities().controls)
        intent = plan_volume(self._api, driver, claim, storage_class, source=source, node=node)
        if source.claim is not None:
            add_finalizer(self._api, source.claim, CLONING_FINALIZER)
        return intent

    def _store(
        self, driver: StorageDriver, claim: PersistentVolumeClaim, intent: Intent, created: CreatedVolume
    ) -> PersistentVolume:
        """Make the PersistentVolume; one that is there already is that of an earlier attempt (PVC-52)."""
        from volumehost.api.objects import PersistentVolume

        volume = _volume(intent, created)
        try:
            return self._api.create(volume)
        except AlreadyExistsError:
            return self._api.get(PersistentVolume, volume.metadata.name)
        except InvalidObjectError:
            # What the driver answered can be told to nobody, at no later attempt either.
            self._remove(driver, claim, replace(intent, handle=created.handle))
            raise

    def _remove(self, driver: StorageDriver, claim: PersistentVolumeClaim, intent: Intent) -> PersistentVolumeClaim:
        """Delete a volume that nobody is to have; noted first, so that the deletion goes on after a crash."""
        if len(intent.handle) <= _LONGEST_HANDLE:
            claim = write_intent(self._api, claim, intent)
        if intent.handle:
            self._context.progress(claim, f"deleting the volume again (DeleteVolume of driver {driver.name})")
            secrets = read_secret(self._api, intent.secret())
            with without_secrets(secrets):
                driver.delete_volume(intent.handle, secrets)
        return clear_intent(self._api, claim)


def _create(driver: StorageDriver, intent: Intent, secrets: Mapping[str, str]) -> CreatedVolume:
    with without_secrets(secrets):
        return driver.create_volume(replace(intent.request, secrets=secrets))


def is_final(error: Exception) -> bool:
    """Whether a failed CreateVolume surely created nothing; RESOURCE_EXHAUSTED means that there is no room."""
    return getattr(error, "code", "") == "RESOURCE_EXHAUSTED" or is_operation_finished_error(error)


def _problem(created: CreatedVolume, intent: Intent) -> str:
    """What is wrong with the driver's answer; "" when it is what was asked for."""
    request = intent.request
    if not created.handle:
        return "the driver answered without a volume id"
    if created.capacity_bytes < 0:
        return f"the driver answered with a capacity of {created.capacity_bytes} bytes"
    if created.capacity_bytes and created.capacity_bytes < request.required_bytes:
        return f"the driver made {created.capacity_bytes} bytes where {request.required_bytes} were asked for"
    if request.limit_bytes and created.capacity_bytes > request.limit_bytes:
        return f"the driver made {created.capacity_bytes} bytes where at most {request.limit_bytes} were allowed"
    if (created.source_snapshot, created.source_volume) != (request.source_snapshot, request.source_volume):
        return "the driver does not say that the volume was made from its source"
    return ""


def _volume(intent: Intent, created: CreatedVolume) -> PersistentVolume:
    from volumehost.api.convert import to_object
    from volumehost.api.objects import PersistentVolume

    volume = to_object(PersistentVolume, intent.volume)
    size = created.capacity_bytes or intent.request.required_bytes
    volume.spec.capacity = {"storage": str(Quantity.of(size))}
    if intent.topology:
        volume.spec.node_affinity = node_affinity(created.accessible_topology)
    source = volume.spec.csi
    assert source is not None
    source.volume_handle = created.handle
    source.volume_attributes = dict(created.context)
    return volume
