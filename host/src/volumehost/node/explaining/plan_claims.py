"""What the controllers would do for the claims of a pod: tried out on the planner's copy of the store.

They bind by the same rules and build the same requests; only the volume that a driver would make is made up, so that
the rest of the plan can be read off it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from volumehost.control.bind_writes import bind
from volumehost.control.classes import class_of_claim, default_class, is_delayed
from volumehost.control.controller import ControlContext, Key
from volumehost.control.ephemeral import EphemeralClaims
from volumehost.control.matching import find_match, refers_to, requested_volume_problem, why_none
from volumehost.control.scheduling import selected_node, why_not_here
from volumehost.control.well_known import NO_PROVISIONER
from volumehost.control.writes import get_or_none, update
from volumehost.errors import PluginLookupError, VolumeHostError
from volumehost.node.claims import claim_name
from volumehost.node.explaining import sequence
from volumehost.node.explaining.claim_facts import no_class_advice
from volumehost.node.explaining.planned import PlannedStep

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod, StorageClass, Volume
    from volumehost.control.matching import NodeView
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.storage_driver import DriverStatus

#: Handle of a volume that a driver would make: only the driver knows it.
HANDLE = "made-by-the-driver"

_SECRET_WORDS = re.compile(r"pass|secret|token|credential|api.?key|private", re.IGNORECASE)


@dataclass(slots=True)
class Trial:
    """What would come of a volume's claim. ``made_up``: the PersistentVolume would have to be made first.

    ``plugin`` is the volume plugin that would make it, where that is not a driver: what it makes nobody can know.
    """

    claim: str = ""
    steps: list[PlannedStep] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    made_up: bool = False
    plugin: LoadedPlugin | None = None


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
        self._drivers = {status.name: status for status in statuses}
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
            self._provision(claim, storage_class, node, trial)

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

    # --- the volume -------------------------------------------------------------------------------------------------

    def _provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: NodeView | None, trial: Trial
    ) -> None:
        provisioner = storage_class.provisioner
        if node is not None:
            problem = why_not_here(self._api, claim, storage_class, node, external_drivers=False)
            if problem:
                trial.problems.append(problem)
        driver = self._drivers.get(provisioner)
        if driver is not None:
            self._provision_by_driver(driver, claim, storage_class, node, trial)
            return
        try:
            trial.plugin = self._plugins.find_provisionable_plugin_by_name(provisioner)
        except PluginLookupError:
            trial.problems.append(
                f"storage class {storage_class.metadata.name} wants {provisioner}, and this host has neither a driver "
                "nor a plugin of that name (pip installs them; volumehost drivers register takes one that runs)"
            )
            return
        text = f"provision a volume for it, by volume plugin {provisioner}"
        trial.steps += [
            PlannedStep(sequence.PROVISION, text, details=_details(claim, storage_class, storage_class.parameters)),
            PlannedStep(sequence.BIND, "bind it to the volume that was made"),
        ]
        trial.made_up = True

    def _provision_by_driver(
        self,
        status: DriverStatus,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        node: NodeView | None,
        trial: Trial,
    ) -> None:
        from volumehost.api.convert import to_object
        from volumehost.api.objects import PersistentVolume
        from volumehost.control.create_request import plan_volume
        from volumehost.control.data_sources import data_source
        from volumehost.control.secrets import read_secret
        from volumehost.node.explaining.plan_driver import PlannedDriver

        driver = PlannedDriver(status)
        source = data_source(self._api, claim, status.name, driver.capabilities().controls)
        intent = plan_volume(self._api, driver, claim, storage_class, source=source, node=node)
        read_secret(self._api, intent.secret())
        details = _details(claim, storage_class, intent.request.parameters)
        if intent.secret_name:
            details["secret"] = f"{intent.secret_namespace}/{intent.secret_name}"
        if source.snapshot or source.volume:
            reference = claim.spec.data_source_ref
            details["made from"] = f"{reference.kind} {reference.name}" if reference is not None else ""
        trial.steps += [
            PlannedStep(sequence.PROVISION, f"provision a volume for it, by driver {status.name}", details=details),
            PlannedStep(sequence.BIND, "bind it to the volume that was made"),
        ]
        trial.made_up = True
        document = dict(intent.volume)
        spec = {**document["spec"], "capacity": {"storage": details["size"]}}
        spec["csi"] = {**spec["csi"], "volumeHandle": HANDLE}
        made = self._api.create(to_object(PersistentVolume, {**document, "spec": spec}))
        bind(self._api, made, claim)

    def _context(self) -> ControlContext:
        return ControlContext(
            api=self._api,
            plugins=self._plugins,
            driver=_no_driver,
            knows_driver=lambda name: name in self._drivers,
            node_name=self._node_name,
            event=lambda *_: None,
            progress=lambda *_: None,
            wall_clock=time.time,
        )


def shown_parameters(parameters: Mapping[str, str]) -> str:
    """Parameters for people; what may be a secret is not shown."""
    pairs = [f"{key}={'***' if _SECRET_WORDS.search(key) else value}" for key, value in sorted(parameters.items())]
    return ", ".join(pairs)


def _details(
    claim: PersistentVolumeClaim, storage_class: StorageClass, parameters: Mapping[str, str]
) -> dict[str, str]:
    details = {
        "storage class": storage_class.metadata.name,
        "size": claim.spec.resources.requests.get("storage", ""),
        "access modes": ", ".join(claim.spec.access_modes),
    }
    return {**details, "parameters": shown_parameters(parameters)} if parameters else details


def _bind_step(volume: str) -> PlannedStep:
    return PlannedStep(sequence.BIND, f"bind it to persistent volume {volume}")


def _set_class(claim: PersistentVolumeClaim, name: str) -> None:
    claim.spec.storage_class_name = name


def _no_driver(name: str) -> NoReturn:
    raise VolumeHostError(f"a plan calls no driver, not even {name}")
