"""What making a volume for a claim would take: who would make it, and what it would be told; for plans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.control.binding.bind_writes import bind
from volumehost.control.binding.scheduling import why_not_here
from volumehost.errors import PluginLookupError
from volumehost.node.explaining import sequence
from volumehost.node.explaining.planned import PlannedStep

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, StorageClass
    from volumehost.control.binding.matching import NodeView
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


class ProvisioningTrial:
    """Tries to have volumes made on the planner's copy of the store, without calling anybody.

    :param statuses: the storage drivers of this host.
    """

    def __init__(self, api: ApiClient, plugins: VolumePluginManager, statuses: Sequence[DriverStatus]) -> None:
        self._api = api
        self._plugins = plugins
        self._drivers = {status.name: status for status in statuses}

    def knows(self, driver: str) -> bool:
        """Whether this host has the driver."""
        return driver in self._drivers

    def provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: NodeView | None, trial: Trial
    ) -> None:
        """Add to the trial what making a volume takes, and bind the claim to one that is made up.

        :raises VolumeHostError: claim or class ask for what cannot be.
        """
        provisioner = storage_class.provisioner
        if node is not None:
            problem = why_not_here(self._api, claim, storage_class, node, external_drivers=False)
            if problem:
                trial.problems.append(problem)
        driver = self._drivers.get(provisioner)
        if driver is not None:
            self._by_driver(driver, claim, storage_class, node, trial)
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

    def _by_driver(
        self,
        status: DriverStatus,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        node: NodeView | None,
        trial: Trial,
    ) -> None:
        from volumehost.api.convert import to_object
        from volumehost.api.objects import PersistentVolume
        from volumehost.control.provisioning.create_request import plan_volume
        from volumehost.control.provisioning.data_sources import data_source
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
