"""Creates volumes through volume plugins of this process (PVC-51, PVC-52)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.provisioning.create_request import volume_name
from volumehost.control.well_known import BOUND_BY_CONTROLLER, IN_TREE_FINALIZER, PROVISIONED_BY
from volumehost.control.writes import get_or_none
from volumehost.errors import AlreadyExistsError, PluginCallError, SpecError, StoreError, VolumeHostError
from volumehost.hookspecs import DeletableVolumePlugin
from volumehost.spec import Spec
from volumehost.volumes import VolumeOptions

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
    from volumehost.control.binding.matching import NodeView
    from volumehost.control.machinery.controller import ControlContext
    from volumehost.loader.loaded import LoadedPlugin

#: How often saving a volume that was made is tried before it is deleted again (CONST-08).
_SAVE_ATTEMPTS = 5


class PluginProvisioner:
    """Creates volumes with the provisioner that a volume plugin brings."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._api = context.api

    def provision(
        self, plugin: LoadedPlugin, claim: PersistentVolumeClaim, storage_class: StorageClass, node: NodeView | None
    ) -> PersistentVolume:
        """Create the volume for the claim and its PersistentVolume.

        :raises SpecError: claim or class ask for what the plugin cannot do.
        """
        from volumehost.api.objects import Node, PersistentVolume

        name = volume_name(claim)
        # A plugin makes another volume when it is asked again: what another controller has made counts (PVC-51).
        existing = get_or_none(self._context.uncached, PersistentVolume, name)
        if existing is not None:
            return existing
        if claim.spec.data_source_ref is not None or claim.spec.data_source is not None:
            raise SpecError("only storage drivers make volumes from a data source")
        if claim.spec.selector is not None:
            raise SpecError("a claim with a selector takes an existing volume; none is made for it")
        if storage_class.mount_options and not plugin.supports_mount_option():
            raise SpecError(f"volume plugin {plugin.name} takes no mount options, and the storage class has some")
        options = VolumeOptions(
            pv_name=name,
            pvc=claim,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            mount_options=tuple(storage_class.mount_options),
            parameters=dict(storage_class.parameters),
        )
        self._context.progress(claim, f"creating the volume (volume plugin {plugin.name})")
        selected = get_or_none(self._api, Node, node.name) if node is not None else None
        with self._context.gate.entered(plugin.name):
            made: object = plugin.new_provisioner(options).provision(selected, storage_class.allowed_topologies)
        if not isinstance(made, PersistentVolume):
            raise PluginCallError(f"its provisioner returned a {type(made).__name__}", plugin=plugin.name)
        return self._save(plugin, claim, _completed(made, claim, storage_class))

    def _save(self, plugin: LoadedPlugin, claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolume:
        for attempt in range(_SAVE_ATTEMPTS):
            try:
                return self._api.create(volume)
            except AlreadyExistsError:
                return self._api.get(type(volume), volume.metadata.name)
            except StoreError as error:
                if attempt == _SAVE_ATTEMPTS - 1:
                    self._delete_again(plugin, claim, volume, error)
                    raise
            except VolumeHostError as error:
                self._delete_again(plugin, claim, volume, error)
                raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _delete_again(
        self, plugin: LoadedPlugin, claim: PersistentVolumeClaim, volume: PersistentVolume, cause: VolumeHostError
    ) -> None:
        try:
            if not plugin.supports(DeletableVolumePlugin):
                raise SpecError(f"volume plugin {plugin.name} cannot delete volumes")
            # Not through a lost term: what leads now may have made the same volume, and have it in use.
            with self._context.gate.entered(plugin.name):
                plugin.new_deleter(Spec.from_persistent_volume(volume, read_only=False)).delete()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            message = f"volume {volume.metadata.name} cannot be saved ({cause}) and could not be deleted again: {error}"
            self._context.event(claim, "Warning", "ProvisioningCleanupFailed", message)


def _completed(volume: PersistentVolume, claim: PersistentVolumeClaim, storage_class: StorageClass) -> PersistentVolume:
    from volumehost.api.objects import ObjectReference

    metadata = volume.metadata
    metadata.name = volume_name(claim)
    marks = {BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: storage_class.provisioner}
    metadata.annotations = {**metadata.annotations, **marks}
    if volume.spec.persistent_volume_reclaim_policy == "Delete":
        metadata.finalizers = [*metadata.finalizers, IN_TREE_FINALIZER]
    volume.spec.storage_class_name = storage_class.metadata.name
    volume.spec.mount_options = list(storage_class.mount_options)
    volume.spec.claim_ref = ObjectReference(
        api_version=claim.api_version,
        kind=claim.kind,
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
    )
    return volume
