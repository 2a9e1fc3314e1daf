"""Deletes the storage behind a volume that nobody claims any more, by whoever made it (PVC-42)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from volumehost.control.attaching.stray_publications import release_strays
from volumehost.control.binding.bind_writes import set_volume_phase
from volumehost.control.binding.scheduling import claims_of
from volumehost.control.drivers import unique_csi_name, unknown_driver
from volumehost.control.machinery.counting import CountedOperation, csi_label
from volumehost.control.messages import without_secrets
from volumehost.control.secrets import read_secret
from volumehost.control.translation import translated
from volumehost.control.well_known import (
    DELETION_SECRET_NAME,
    DELETION_SECRET_NAMESPACE,
    FINISHED_PHASES,
    HELD_BY_NODE,
    PROVISIONED_BY,
)
from volumehost.errors import (
    DeletedVolumeInUseError,
    PluginLookupError,
    StorageDriverPreconditionError,
    is_operation_finished_error,
)
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, Pod, SecretReference
    from volumehost.control.machinery.controller import ControlContext
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.storage_driver import StorageDriver


class StorageDeletion:
    """Deletes through storage drivers and volume plugins; a volume that is attached or in use is left alone."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._api = context.api
        self._counted = CountedOperation(context.metrics, "volume_delete", "delete")

    def delete_storage(self, volume: PersistentVolume) -> bool:
        """Delete it; False when that is not this host's to do.

        :raises DeletedVolumeInUseError: it is attached, or the driver says that it is in use: later (BR-46).
        :raises Exception: it failed; a final failure makes the volume Failed, and is tried again all the same (PVC-43).
        """
        try:
            return self._delete(volume)
        except (DeletedVolumeInUseError, StorageDriverPreconditionError) as error:
            self._context.event(volume, "Normal", "VolumeDelete", str(error))
            raise
        except Exception as error:
            self._context.event(volume, "Warning", "VolumeFailedDelete", str(error))
            if is_operation_finished_error(error):
                set_volume_phase(self._api, volume, "Failed", str(error))
            raise

    def _delete(self, volume: PersistentVolume) -> bool:
        maker = volume.metadata.annotations.get(PROVISIONED_BY, "")
        seen = translated(self._context.plugins, volume)
        source = seen.spec.csi
        if source is None:
            return self._delete_by_plugin(volume, seen, maker)
        if not maker:
            # Somebody made it by hand; only who made it knows whether the data may go.
            self._context.progress(volume, "kept: it was not provisioned, so nobody deletes its storage")
            return False
        if not self._context.knows_driver(source.driver):
            if self._context.external_drivers:
                return False
            raise unknown_driver(source.driver, f"deleting the volume {volume.metadata.name}")
        self._check_unused(volume)
        driver = self._context.driver(source.driver)
        if not driver.capabilities().controls("CREATE_DELETE_VOLUME"):
            self._context.progress(volume, f"kept: driver {driver.name} cannot delete volumes")
            return False
        secrets = read_secret(self._api, _deletion_secret(volume))
        self._context.progress(volume, f"deleting the volume (DeleteVolume of driver {driver.name})")
        migrated = seen is not volume
        with self._counted.attempt(volume.metadata.uid, csi_label(driver.name), migrated=migrated):  # noqa: SIM117
            with without_secrets(secrets):
                self._delete_by_driver(driver, seen, source.volume_handle, secrets)
        return True

    def _delete_by_driver(
        self, driver: StorageDriver, volume: PersistentVolume, handle: str, secrets: Mapping[str, str]
    ) -> None:
        try:
            driver.delete_volume(handle, secrets)
        except (DeletedVolumeInUseError, StorageDriverPreconditionError):
            # By our word nothing uses it: it may be published all the same, by a call that was undone too early.
            if not release_strays(self._context, driver, volume):
                raise
            driver.delete_volume(handle, secrets)

    def _delete_by_plugin(self, volume: PersistentVolume, seen: PersistentVolume, maker: str) -> bool:
        plugin = self._plugin(seen, maker)
        if plugin is None:
            return False
        self._check_unused(volume)
        self._context.progress(volume, f"deleting the volume (volume plugin {plugin.name})")
        with self._context.gate.entered(plugin.name), self._counted.attempt(volume.metadata.uid, plugin.name):
            plugin.new_deleter(Spec.from_persistent_volume(seen, read_only=False)).delete()
        return True

    def _plugin(self, volume: PersistentVolume, maker: str) -> LoadedPlugin | None:
        """The plugin that deletes it, None when somebody outside of this host does.

        :raises PluginLookupError: it would have to be one of this host.
        """
        plugins = self._context.plugins
        if not maker:
            return plugins.find_deletable_plugin_by_spec(Spec.from_persistent_volume(volume, read_only=False))
        try:
            return plugins.find_deletable_plugin_by_name(maker)
        except PluginLookupError:
            if maker.startswith("kubernetes.io/") or not self._context.external_drivers:
                raise
            return None

    def _check_unused(self, volume: PersistentVolume) -> None:
        """BR-46, BR-48: what is attached, in whatever state, or still mounted may be written to."""
        from volumehost.api.objects import VolumeAttachment

        name = volume.metadata.name
        for attachment in self._api.list(VolumeAttachment).items:
            if attachment.spec.source.persistent_volume_name == name:
                raise _in_use(name, f"it is still attached to node {attachment.spec.node_name}")
        source, node = translated(self._context.plugins, volume).spec.csi, self._context.node_name
        if source and self._context.volume_in_use(node, unique_csi_name(source.driver, source.volume_handle)):
            raise _in_use(name, f"node {node} still has it staged or mounted")
        for pod in self._holding_pods(volume):
            raise _in_use(name, f"pod {pod.metadata.namespace}/{pod.metadata.name} has ended and is not unmounted yet")

    def _holding_pods(self, volume: PersistentVolume) -> Iterator[Pod]:
        """Pods that have ended, so that they no longer protect the claim, and whose volumes a node still holds."""
        from volumehost.api.objects import Pod

        reference = volume.spec.claim_ref
        if reference is None:
            return
        for pod in self._api.list(Pod, reference.namespace).items:
            is_held = HELD_BY_NODE in pod.metadata.finalizers and pod.status.phase in FINISHED_PHASES
            if is_held and reference.name in claims_of(pod):
                yield pod


def _in_use(name: str, reason: str) -> DeletedVolumeInUseError:
    hint = "it is deleted once that is no longer so"
    return DeletedVolumeInUseError(reason, action=f"deleting the volume {name}", subject=name, hint=hint)


def _deletion_secret(volume: PersistentVolume) -> SecretReference | None:
    from volumehost.api.objects import SecretReference

    annotations = volume.metadata.annotations
    name, namespace = annotations.get(DELETION_SECRET_NAME, ""), annotations.get(DELETION_SECRET_NAMESPACE, "")
    return SecretReference(name=name, namespace=namespace) if name else None
