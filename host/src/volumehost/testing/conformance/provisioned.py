"""Volumes that the plugin itself makes during a check: for all that would be too dear to try on somebody's volumes."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from volumehost.errors import OperationNotSupportedError
from volumehost.hookspecs import DeletableVolumePlugin, PersistentVolumePlugin, ProvisionableVolumePlugin
from volumehost.spec import Spec
from volumehost.testing.conformance.check import not_applicable, require
from volumehost.volumes import VolumeOptions

if TYPE_CHECKING:
    from types import TracebackType

    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
    from volumehost.testing.conformance.trial import Trial

_SIZE = "64Mi"


class ProvisionedVolumes:
    """Makes volumes with the plugin's provisioner, and deletes them at the end as far as the plugin can."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._made: list[PersistentVolume] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._trial.close_volumes()
        if self._trial.plugin.supports(DeletableVolumePlugin):
            for volume in self._made:
                with suppress(Exception):  # a deleter that fails has failed in its own check
                    self._trial.plugin.new_deleter(spec_of(volume)).delete()

    def options(self, volume_mode: str = "Filesystem") -> VolumeOptions:
        """What the provisioner is asked for: the claim and class of the files, else a plain claim."""
        samples = self._trial.samples
        storage_class = samples.storage_class
        policy = storage_class.reclaim_policy if storage_class is not None else None
        return VolumeOptions(
            pv_name=f"pvc-{uuid.uuid4()}",
            pvc=self._claim(volume_mode),
            persistent_volume_reclaim_policy=policy or "Delete",
            mount_options=tuple(storage_class.mount_options) if storage_class is not None else (),
            parameters=dict(storage_class.parameters) if storage_class is not None else {},
        )

    def make(self, options: VolumeOptions | None = None) -> PersistentVolume:
        """One volume; the check does not apply when the plugin says that it cannot make any."""
        plugin = self._trial.plugin
        if not plugin.supports(ProvisionableVolumePlugin):
            not_applicable("it is no ProvisionableVolumePlugin, and a volume that it made itself is needed")
        try:
            made: object = plugin.new_provisioner(options or self.options()).provision()
        except OperationNotSupportedError as error:
            not_applicable(f"provisioning: {error}; see the fixture volumehost_volume_config")
        from volumehost.api.objects import PersistentVolume

        require(isinstance(made, PersistentVolume), f"provision returned {made!r}, not a PersistentVolume")
        assert isinstance(made, PersistentVolume)
        self._made.append(made)
        return made

    def keep(self, volume: PersistentVolume) -> None:
        """Delete this one too at the end."""
        self._made.append(volume)

    def _claim(self, volume_mode: str) -> PersistentVolumeClaim:
        from volumehost.api.convert import to_object
        from volumehost.api.objects import PersistentVolumeClaim

        plugin, given = self._trial.plugin, self._trial.samples.claim
        modes = list(plugin.get_access_modes())[:1] if plugin.supports(PersistentVolumePlugin) else ["ReadWriteOnce"]
        spec = {
            "accessModes": given.spec.access_modes if given is not None else modes,
            "resources": {"requests": dict(given.spec.resources.requests) if given is not None else {"storage": _SIZE}},
            "volumeMode": volume_mode,
        }
        metadata = {"name": "claim", "namespace": "default", "uid": str(uuid.uuid4())}
        return to_object(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


def spec_of(volume: PersistentVolume) -> Spec:
    """The spec of a provisioned volume."""
    return Spec.from_persistent_volume(volume, read_only=False)
