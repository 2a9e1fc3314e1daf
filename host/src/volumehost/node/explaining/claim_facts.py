"""Where a claim is on its way to a volume, from the API and, where there is one, from the control plane at work on it.

For explanations of volumes that wait for their claim, and for what status says of them. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.control.provisioning.classes import class_of_claim, default_class, is_delayed
from volumehost.control.well_known import NO_PROVISIONER
from volumehost.control.writes import get_or_none
from volumehost.errors import ApiError
from volumehost.node.explaining import sequence
from volumehost.node.explaining.error_words import advice_for, error_lines
from volumehost.node.explaining.events import last_trouble

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
    from volumehost.control.plane import ControlPlane


#: How many storage classes are named.
_NAMES = 5


@dataclass(slots=True)
class ClaimFacts:
    """What is known of a claim; ``phase`` is the one of the sequence that it is in, "" once it is bound.

    ``step`` is what the controllers are doing for it, or wait for; ``told``: they have said so themselves.
    ``attempts``, ``retry_in`` (seconds) and ``error`` are those of their last failure.
    """

    name: str
    claim: PersistentVolumeClaim | None = None
    storage_class: StorageClass | None = None
    volume: PersistentVolume | None = None
    phase: str = ""
    step: str = ""
    told: bool = False
    attempts: int = 0
    retry_in: float | None = None
    error: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    @property
    def class_name(self) -> str:
        """The name of its storage class, "" for none."""
        return (class_of_claim(self.claim) or "") if self.claim is not None else ""

    @property
    def provisioner(self) -> str:
        """Who makes a volume for it where none is there, "" for nobody."""
        found = self.storage_class.provisioner if self.storage_class is not None else ""
        return "" if found == NO_PROVISIONER else found

    @property
    def size(self) -> str:
        """What it asks for, as it is written."""
        return self.claim.spec.resources.requests.get("storage", "") if self.claim is not None else ""


def claim_facts(
    api: ApiClient | None, namespace: str, name: str, *, plane: ControlPlane | None = None, made_for_pod: bool = False
) -> ClaimFacts:
    """The facts about the claim of that name.

    :param plane: the control plane that works on it in this process, if one does.
    :param made_for_pod: it belongs to an ephemeral volume, for which the controllers make it.
    """
    facts = ClaimFacts(f"{namespace}/{name}")
    if api is None:
        facts.phase = sequence.CLAIM
        return facts
    try:
        _read(facts, api, namespace, name, made_for_pod=made_for_pod)
        if facts.claim is not None and facts.phase:
            _ask(facts, api, facts.claim, plane)
    except ApiError as error:
        facts.phase = facts.phase or sequence.CLAIM
        facts.error, facts.advice = error_lines(error), advice_for(error)
    return facts


def no_class_advice(api: ApiClient) -> str:
    """What to do about a claim that no volume suits, and that has no storage class."""
    from volumehost.api.objects import StorageClass

    names = [each.metadata.name for each in api.list(StorageClass).items]
    shown = f"those there are: {', '.join(names[:_NAMES])}" if names else "there is none yet"
    return f"give the claim a storageClassName ({shown}), or apply a PersistentVolume that suits it"


def _read(facts: ClaimFacts, api: ApiClient, namespace: str, name: str, *, made_for_pod: bool) -> None:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass

    facts.claim = claim = get_or_none(api, PersistentVolumeClaim, name, namespace)
    if claim is None:
        facts.phase = sequence.CLAIM
        if made_for_pod:
            facts.step = "the controllers make it for the pod"
        else:
            facts.advice = [
                f"apply a PersistentVolumeClaim {name} in namespace {namespace}: 'volumehost apply -f FILE'"
            ]
        return
    class_name = class_of_claim(claim)
    if class_name:
        facts.storage_class = get_or_none(api, StorageClass, class_name)
    elif class_name is None and not claim.spec.volume_name:
        facts.storage_class = default_class(api)
    if claim.spec.volume_name:
        facts.volume = get_or_none(api, PersistentVolume, claim.spec.volume_name)
    if claim.status.phase == "Bound":
        return
    facts.phase = sequence.PROVISION if facts.provisioner and not claim.spec.volume_name else sequence.BIND


def _ask(facts: ClaimFacts, api: ApiClient, claim: PersistentVolumeClaim, plane: ControlPlane | None) -> None:
    """What the controllers say: those at work here, else what they have left in events."""
    record = plane.failure(claim) if plane is not None else None
    if plane is not None:
        facts.step = plane.step(claim)
    if plane is not None and record is not None:
        facts.attempts, facts.retry_in = record.attempts, plane.retry_in(record)
        facts.error, facts.advice = error_lines(record.error), advice_for(record.error)
        return
    event = last_trouble(api, claim)
    if event is not None and not facts.step:
        facts.step = "" if event.type == "Warning" else event.message
    if event is not None and event.type == "Warning":
        facts.attempts = event.count or 1
        facts.error = [
            f"{event.reason}: {line}" if not n else line for n, line in enumerate(event.message.splitlines())
        ]
    facts.told = bool(facts.step or facts.error)
    if not facts.told:
        facts.step = _expected(facts)
    if not facts.error and facts.phase == sequence.BIND and not facts.class_name and not facts.storage_class:
        facts.advice = [no_class_advice(api)]


def _expected(facts: ClaimFacts) -> str:
    if facts.class_name and facts.storage_class is None:
        return f"storage class {facts.class_name}, which is not there"
    if facts.phase == sequence.PROVISION:
        when = ", once a pod uses it" if is_delayed(facts.storage_class) else ""
        return f"a volume that {facts.provisioner} is to make{when}"
    return "a persistent volume that suits it"
