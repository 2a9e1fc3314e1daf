"""From a claim and its class to the volume that a driver is asked for, as the external-provisioner would ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.binding.intent import Intent
from volumehost.control.binding.matching import NodeView, storage_of
from volumehost.control.provisioning.capabilities import provisioning_capabilities
from volumehost.control.provisioning.class_parameters import class_secrets, driver_parameters, fs_type
from volumehost.control.provisioning.topology import accessibility_requirement
from volumehost.control.well_known import (
    BOUND_BY_CONTROLLER,
    DELETION_SECRET_NAME,
    DELETION_SECRET_NAMESPACE,
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
)
from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError, SpecError
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE
from volumehost.storage_driver import CreateVolumeRequest

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, StorageClass
    from volumehost.control.provisioning.class_parameters import ClassSecrets
    from volumehost.control.provisioning.data_sources import DataSource
    from volumehost.storage_driver import StorageDriver

#: On a storage class: its driver wants to be told the names of claim and volume.
EXTRA_METADATA = "volumehost.io/extra-create-metadata"


def volume_name(claim: PersistentVolumeClaim) -> str:
    """The name of the volume that is made for a claim, on the driver and in the API; the same at every attempt."""
    return f"pvc-{claim.metadata.uid}"


def plan_volume(
    api: ApiClient,
    driver: StorageDriver,
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    *,
    source: DataSource,
    node: NodeView | None,
) -> Intent:
    """Everything that is asked of the driver, and the PersistentVolume that will tell of it.

    :raises SpecError: claim or class ask for what cannot be.
    :raises FailedPreconditionError: something that they name is not there yet.
    """
    capabilities = driver.capabilities()
    if not capabilities.controls("CREATE_DELETE_VOLUME"):
        raise SpecError(f"driver {driver.name} cannot create volumes", hint="it does not declare CREATE_DELETE_VOLUME")
    if claim.spec.selector is not None:
        raise SpecError("a claim with a selector takes an existing volume; none is made for it")
    name, parameters = volume_name(claim), storage_class.parameters
    secrets = class_secrets(parameters, name, claim)
    filesystem = "" if claim.spec.volume_mode == BLOCK_MODE else fs_type(parameters)
    has_topology = "VOLUME_ACCESSIBILITY_CONSTRAINTS" in capabilities.plugin
    requisite, preferred = (
        accessibility_requirement(api, driver.name, storage_class.allowed_topologies, node)
        if has_topology
        else ([], [])
    )
    request = CreateVolumeRequest(
        name=name,
        capabilities=provisioning_capabilities(
            claim.spec.access_modes,
            capabilities,
            volume_mode=claim.spec.volume_mode,
            fs_type=filesystem,
            mount_flags=storage_class.mount_options,
        ),
        required_bytes=storage_of(claim.spec.resources.requests),
        limit_bytes=storage_of(claim.spec.resources.limits),
        parameters={**driver_parameters(parameters), **_extra_metadata(claim, storage_class)},
        mutable_parameters=_mutable_parameters(api, driver, claim),
        source_snapshot=source.snapshot,
        source_volume=source.volume,
        requisite=requisite,
        preferred=preferred,
    )
    secret = secrets.provisioner
    return Intent(
        driver=driver.name,
        request=request,
        volume=_volume(claim, storage_class, driver.name, filesystem, secrets),
        secret_name=secret.name if secret is not None else "",
        secret_namespace=secret.namespace if secret is not None else "",
        topology=has_topology,
    )


def _extra_metadata(claim: PersistentVolumeClaim, storage_class: StorageClass) -> dict[str, str]:
    if storage_class.metadata.annotations.get(EXTRA_METADATA) != "true":
        return {}
    prefix, metadata = "csi.storage.k8s.io", claim.metadata
    return {
        f"{prefix}/pvc/name": metadata.name,
        f"{prefix}/pvc/namespace": metadata.namespace,
        f"{prefix}/pv/name": volume_name(claim),
    }


def _mutable_parameters(api: ApiClient, driver: StorageDriver, claim: PersistentVolumeClaim) -> Mapping[str, str]:
    from volumehost.api.objects import VolumeAttributesClass

    name = claim.spec.volume_attributes_class_name
    if not name:
        return {}
    if not driver.capabilities().controls("MODIFY_VOLUME"):
        raise SpecError(f"driver {driver.name} has no volume attributes", hint="it does not declare MODIFY_VOLUME")
    attributes = get_or_none(api, VolumeAttributesClass, name)
    if attributes is None:
        raise FailedPreconditionError(f"there is no volumeattributesclass {name}", subject=name)
    if attributes.driver_name != driver.name:
        raise SpecError(f"volumeattributesclass {name} is for driver {attributes.driver_name}")
    return attributes.parameters


def _volume(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    driver: str,
    filesystem: str,
    secrets: ClassSecrets,
) -> dict[str, Any]:
    """The PersistentVolume without handle, attributes, capacity and affinity."""
    from volumehost.api.convert import to_wire
    from volumehost.api.objects import (
        CSIPersistentVolumeSource,
        ObjectMeta,
        ObjectReference,
        PersistentVolume,
        PersistentVolumeSpec,
    )

    metadata, policy = claim.metadata, storage_class.reclaim_policy or "Delete"
    secret = secrets.provisioner
    annotations = {
        PROVISIONED_BY: driver,
        BOUND_BY_CONTROLLER: "yes",
        DELETION_SECRET_NAME: secret.name if secret is not None else "",
        DELETION_SECRET_NAMESPACE: secret.namespace if secret is not None else "",
    }
    return to_wire(
        PersistentVolume(
            metadata=ObjectMeta(
                name=volume_name(claim),
                annotations=annotations,
                finalizers=[PROVISIONER_FINALIZER] if policy == "Delete" else [],
            ),
            spec=PersistentVolumeSpec(
                access_modes=list(claim.spec.access_modes),
                persistent_volume_reclaim_policy=policy,
                storage_class_name=storage_class.metadata.name,
                mount_options=list(storage_class.mount_options),
                volume_mode=claim.spec.volume_mode or FILESYSTEM_MODE,
                volume_attributes_class_name=claim.spec.volume_attributes_class_name or None,
                claim_ref=ObjectReference(
                    api_version=claim.api_version,
                    kind=claim.kind,
                    namespace=metadata.namespace,
                    name=metadata.name,
                    uid=metadata.uid,
                ),
                csi=CSIPersistentVolumeSource(
                    driver=driver,
                    fs_type=filesystem,
                    controller_publish_secret_ref=secrets.controller_publish,
                    node_stage_secret_ref=secrets.node_stage,
                    node_publish_secret_ref=secrets.node_publish,
                    controller_expand_secret_ref=secrets.controller_expand,
                    node_expand_secret_ref=secrets.node_expand,
                ),
            ),
        )
    )
