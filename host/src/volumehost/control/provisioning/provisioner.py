"""Who makes the volume of a claim: a storage driver, a volume plugin, or somebody outside of this host (PVC-50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.binding.intent import has_intent
from volumehost.control.binding.matching import NodeView
from volumehost.control.binding.scheduling import node_view, why_not_here
from volumehost.control.drivers import unknown_driver
from volumehost.control.machinery.counting import CountedOperation, csi_label
from volumehost.control.provisioning.csi_provisioner import CsiProvisioner, is_final
from volumehost.control.provisioning.plugin_provisioner import PluginProvisioner
from volumehost.control.well_known import (
    BETA_STORAGE_PROVISIONER,
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from volumehost.control.writes import update
from volumehost.errors import ConflictError, FailedPreconditionError, PluginLookupError

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
    from volumehost.control.machinery.controller import ControlContext
    from volumehost.loader.loaded import LoadedPlugin


class Provisioner:
    """Has volumes made; reports as events what fails."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._api = context.api
        self._drivers = CsiProvisioner(context)
        self._plugins = PluginProvisioner(context)
        self._counted = CountedOperation(context.metrics, "volume_provision", "provision")

    def provision(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass | None,
        node: NodeView | None,
        reasons: str = "",
    ) -> PersistentVolume | None:
        """The volume that was made for the claim; None when it has to be waited for.

        :param storage_class: None when there is none of the name that the claim gives.
        :param node: the node that will use it, where the class waits for that.
        :param reasons: why no existing volume suits.
        :raises Exception: it failed; an event tells the user (PVC-51).
        """
        try:
            return self._provision(claim, storage_class, node, reasons)
        except ConflictError:
            raise
        except Exception as error:
            self._context.event(claim, "Warning", "ProvisioningFailed", f"failed to provision volume: {error}")
            if node is not None and self._context.external_drivers and is_final(error):
                self._let_scheduler_choose_again(claim)
            raise

    def abandon(self, claim: PersistentVolumeClaim) -> None:
        """The claim is being deleted: delete what may have been made for it and nobody knows of."""
        self._counted.forget(claim.metadata.uid)
        self._drivers.abandon(claim)

    def _provision(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass | None,
        node: NodeView | None,
        reasons: str,
    ) -> PersistentVolume | None:
        if has_intent(claim):
            return self._made_by_driver(claim, storage_class, node)
        where = f"provisioning for {claim.metadata.namespace}/{claim.metadata.name}"
        if storage_class is None:
            name = claim.spec.storage_class_name
            raise FailedPreconditionError(
                f"there is no storageclass {name}",
                action=where,
                hint="volumehost get storageclasses lists those there are",
            )
        provisioner = storage_class.provisioner
        if provisioner == NO_PROVISIONER:
            self._context.progress(claim, f"waiting for a volume: {reasons or 'there is none of its class'}")
            return None
        is_driver = self._context.knows_driver(provisioner)
        if is_driver:
            self._context.progress(claim, f"waiting for the driver {provisioner}")
            self._context.driver(provisioner)  # its registration labels the node
            self._context.progress(claim, f"preparing what to ask of the driver {provisioner}")
        if node is not None:
            node = node_view(self._api, node.name, self._context.node_name)
            external = self._context.external_drivers
            problem = why_not_here(self._api, claim, storage_class, node, external_drivers=external)
            if problem:
                raise FailedPreconditionError(problem, action=where)
        if is_driver:
            return self._made_by_driver(self._announce(claim, provisioner, node), storage_class, node)
        plugin = self._plugin(provisioner)
        if plugin is not None:
            claim = self._announce(claim, provisioner, node)
            with self._counted.attempt(claim.metadata.uid, plugin.name):
                volume = self._plugins.provision(plugin, claim, storage_class, node)
            return self._made(claim, volume)
        if not self._context.external_drivers:
            raise unknown_driver(provisioner, where)
        self._announce(claim, provisioner, node)
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._context.event(claim, "Normal", "ExternalProvisioning", text)
        self._context.progress(claim, f"waiting for the external provisioner {provisioner}")
        return None

    def _made_by_driver(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass | None, node: NodeView | None
    ) -> PersistentVolume:
        known = storage_class.provisioner if storage_class is not None else "N/A"
        driver = claim.metadata.annotations.get(STORAGE_PROVISIONER, known)
        with self._counted.attempt(claim.metadata.uid, csi_label(driver)):
            volume = self._drivers.provision(claim, storage_class, node)
        return self._made(claim, volume)

    def _plugin(self, name: str) -> LoadedPlugin | None:
        """The plugin that provisions under this name, None when there is none.

        :raises PluginLookupError: the name is one of Kubernetes' own, so nobody outside of this host would know it.
        """
        try:
            return self._context.plugins.find_provisionable_plugin_by_name(name)
        except PluginLookupError:
            if name.startswith("kubernetes.io/"):
                raise
            return None

    def _announce(self, claim: PersistentVolumeClaim, provisioner: str, node: NodeView | None) -> PersistentVolumeClaim:
        """Write on the claim who provisions for it, and for which node."""
        marks = {STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner}
        if node is not None:
            marks[SELECTED_NODE] = node.name

        def change(fresh: PersistentVolumeClaim) -> None:
            fresh.metadata.annotations = {**fresh.metadata.annotations, **marks}

        if marks.items() <= claim.metadata.annotations.items():
            return claim
        return update(self._api, claim, change)

    def _let_scheduler_choose_again(self, claim: PersistentVolumeClaim) -> None:
        """PVC-51: in a cluster another node may do. Without one there is no other, and nobody to choose it."""

        def change(fresh: PersistentVolumeClaim) -> None:
            annotations = fresh.metadata.annotations
            fresh.metadata.annotations = {key: text for key, text in annotations.items() if key != SELECTED_NODE}

        update(self._api, claim, change)

    def _made(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolume:
        text = f"Successfully provisioned volume {volume.metadata.name}"
        self._context.event(claim, "Normal", "ProvisioningSucceeded", text)
        return volume
