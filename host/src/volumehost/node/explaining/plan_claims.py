"""What the controllers would do for the claims of a pod: tried out on the planner's copy of the store.

They bind by the same rules and build the same requests; only the volume that a driver would make is made up, so that
the rest of the plan can be read off it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from volumehost.control.binding.bind_writes import bind
from volumehost.control.binding.matching import find_match, refers_to, requested_volume_problem, why_none
from volumehost.control.binding.scheduling import selected_node
from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.provisioning.classes import class_of_claim, default_class, is_delayed
from volumehost.control.provisioning.ephemeral import EphemeralClaims
from volumehost.control.well_known import NO_PROVISIONER
from volumehost.control.writes import get_or_none, update
from volumehost.errors import VolumeHostError
from volumehost.node.explaining import sequence
from volumehost.node.explaining.claim_facts import no_class_advice
from volumehost.node.explaining.plan_provisioning import ProvisioningTrial, Trial
from volumehost.node.explaining.planned import PlannedStep
from volumehost.node.populating.claims import claim_name

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod, Volume
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.storage_driver import DriverStatus


class ClaimTrial:
    """Tries the claims of pods.

    :param api: the copy of the store; claims and volumes in it are bound.
    :param statuses: the storage drivers of this host.
    """

    def __init__(
        self, api: ApiClient, plugins: VolumePluginManager, statuses: Sequence[DriverStatus], node_name: str
    ) -> None:
        self._api = api
        self._plugins = plugins
        self._provisioning = ProvisioningTrial(api, plugins, statuses)
        self._node_name = node_name

    def of_volume(self, volume: Volume, pod: Pod) -> Trial:
        """Make the claim if the pod's volume brings its own, and bind it."""
        from volumehost.api.objects import PersistentVolumeClaim

        name = claim_name(volume, pod)
        trial = Trial()
        if name is None:
            return trial
        trial.claim = f"{pod.metadata.namespace}/{name}"
        try:
            claim = get_or_none(self._api, PersistentVolumeClaim, name, pod.metadata.namespace)
            if claim is None and volume.ephemeral is not None:
                claim = self._make(name, pod, trial)
            if claim is not None and claim.status.phase != "Bound" and claim.metadata.deletion_timestamp is None:
                self._bind(claim, trial)
        except VolumeHostError as error:
            trial.problems.append(str(error))
        return trial

    # --- the claim --------------------------------------------------------------------------------------------------

    def _make(self, name: str, pod: Pod, trial: Trial) -> PersistentVolumeClaim | None:
        from volumehost.api.objects import PersistentVolumeClaim

        EphemeralClaims(self._context()).reconcile(Key.of(pod))
        claim = get_or_none(self._api, PersistentVolumeClaim, name, pod.metadata.namespace)
        trial.steps.append(PlannedStep(sequence.CLAIM, f"make claim {trial.claim} for the pod"))
        return claim

    def _bind(self, claim: PersistentVolumeClaim, trial: Trial) -> None:
        from volumehost.api.objects import PersistentVolume, StorageClass

        if class_of_claim(claim) is None and (default := default_class(self._api)) is not None:
            claim = update(self._api, claim, lambda fresh: _set_class(fresh, default.metadata.name))
        name = class_of_claim(claim) or ""
        storage_class = get_or_none(self._api, StorageClass, name) if name else None
        delayed = is_delayed(storage_class)
        node = selected_node(self._api, claim, self._node_name, has_scheduler=False) if delayed else None
        if claim.spec.volume_name:
            self._take_named(claim, trial)
            return
        volumes = self._api.list(PersistentVolume).items
        match = find_match(claim, volumes, node=node, delayed=delayed)
        if match is not None:
            bind(self._api, match, claim)
            trial.steps.append(_bind_step(match.metadata.name))
            return
        candidates = [each for each in volumes if each.spec.claim_ref is None or refers_to(each, claim)]
        reasons = why_none(claim, candidates, node=node, delayed=delayed)
        why = f" ({reasons})" if reasons else ""
        if not name:
            problem = f"no persistent volume suits claim {trial.claim}{why}, and it has no storage class"
            trial.problems.append(f"{problem}: {no_class_advice(self._api)}")
        elif storage_class is None:
            trial.problems.append(f"no persistent volume suits claim {trial.claim}{why}, and there is no "
                                  f"storageclass {name}")  # fmt: skip
        elif storage_class.provisioner == NO_PROVISIONER:
            trial.problems.append(f"no persistent volume suits claim {trial.claim}{why}, and its class makes none")
        else:
            self._provisioning.provision(claim, storage_class, node, trial)

    def _take_named(self, claim: PersistentVolumeClaim, trial: Trial) -> None:
        from volumehost.api.objects import PersistentVolume

        name = claim.spec.volume_name
        volume = get_or_none(self._api, PersistentVolume, name)
        if volume is None:
            problem = f"persistentvolume {name}, which claim {trial.claim} names, is not there"
        elif volume.spec.claim_ref is None:
            problem = requested_volume_problem(volume, claim)
        else:
            problem = "" if refers_to(volume, claim) else f"persistentvolume {name} belongs to another claim"
        if problem:
            trial.problems.append(problem)
        elif volume is not None:
            bind(self._api, volume, claim)
            trial.steps.append(_bind_step(name))

    def _context(self) -> ControlContext:
        return ControlContext(
            api=self._api,
            plugins=self._plugins,
            driver=_no_driver,
            knows_driver=self._provisioning.knows,
            node_name=self._node_name,
            event=lambda *_: None,
            progress=lambda *_: None,
            wall_clock=time.time,
        )


def _bind_step(volume: str) -> PlannedStep:
    return PlannedStep(sequence.BIND, f"bind it to persistent volume {volume}")


def _set_class(claim: PersistentVolumeClaim, name: str) -> None:
    claim.spec.storage_class_name = name


def _no_driver(name: str) -> NoReturn:
    raise VolumeHostError(f"a plan calls no driver, not even {name}")
