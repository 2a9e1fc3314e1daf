"""What is known of one volume of a pod, whoever told it, and the explanation that follows from that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from volumehost.errors import ApiError, PluginLookupError, error_chain
from volumehost.node.explaining import sequence
from volumehost.node.explaining.explanation import Point, VolumeExplanation

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume
    from volumehost.node.explaining.claim_facts import ClaimFacts
    from volumehost.node.explaining.sequence import VolumeKind
    from volumehost.node.status.records import VolumeStatus


#: How long an operation has run when it is more than slow, in seconds.
STUCK_SECONDS: Final = 10.0

#: What to do where neither the error nor its kind says it.
_MEND = "mend what the error names; it is tried again by itself for as long as somebody works on the root directory"


@dataclass(slots=True)
class VolumeFacts:
    """One volume. ``here`` is the phase that it is in; "" where that follows from the operation and its step.

    ``unmounting``: it is on its way back; ``gone``: nothing of it is left. ``claim``: where its claim is, of a volume
    that has one.
    """

    status: VolumeStatus
    kind: VolumeKind
    unmounting: bool = False
    gone: bool = False
    here: str = ""
    claim: ClaimFacts | None = None
    waits_for: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def explanation_of(facts: VolumeFacts) -> VolumeExplanation:
    """The volume's explanation; of one that is ready, or that nobody uses, only what it is.

    One that is ready and could not be refreshed or grown has the error of that, and no sequence.
    """
    status = facts.status
    plain = VolumeExplanation(
        volume=status.volume,
        state=status.state,
        ready=status.ready,
        plugin=status.plugin,
        distribution=status.distribution,
        version=status.version,
        path=status.path,
        unique_name=status.unique_name,
        source=_source(facts.kind),
        selinux=status.selinux,
    )
    if facts.gone or status.state == "unused":
        return plain
    retry_in, attempts, step = status.retry_in, status.attempts, status.step or status.failed_step
    waits_for, error, advice = list(facts.waits_for), list(facts.error), list(facts.advice)
    if facts.claim is not None and facts.claim.phase:
        attempts, retry_in, step = facts.claim.attempts, facts.claim.retry_in, ""
        error, advice = facts.claim.error or error, [*facts.claim.advice, *advice]
        waits_for = [*_claim_words(facts.claim), *waits_for]
    advice = [*advice, *_hang_advice(status, facts.kind.by)]
    if error and not advice:
        advice = [_MEND]
    if retry_in is not None:
        waits_for.append(f"the next attempt, in {retry_in:.1f} s" if retry_in else "the next attempt, which is due now")
    ready = status.ready and not facts.unmounting
    if ready and not error:
        return plain
    return _with(
        plain,
        operation=status.operation,
        step=step,
        age=status.age,
        attempts=attempts,
        retry_in=retry_in,
        direction="unmount" if facts.unmounting else "mount",
        sequence=() if ready else _points(facts),
        waits_for=tuple(dict.fromkeys(waits_for)),
        hangs=tuple(text for text in (status.progress, status.where) if text),
        error=tuple(error),
        advice=_once(advice),
    )


def _once(advice: list[str]) -> tuple[str, ...]:
    """Nothing twice, and nothing that another one says with more detail."""
    lines = dict.fromkeys(advice)
    return tuple(line for line in lines if not any(other != line and other.startswith(line) for other in lines))


def _hang_advice(status: VolumeStatus, by: str) -> list[str]:
    """What to do about an operation that has been in one place for long."""
    if (status.age or 0.0) < STUCK_SECONDS or not status.where:
        return []
    if by and f"of the CSI {by}" in status.where:
        name = by.removeprefix("driver ")
        return [f"{by} does not answer: see 'volumehost drivers show {name}'; its calls end in time and are repeated"]
    if " of the kernel (" in status.where or " the program " in status.where:
        return ["what serves the filesystem or the device does not answer: see to that; it goes on by itself then"]
    return []


def kind_of_claim(kind: VolumeKind, claim: ClaimFacts) -> VolumeKind:
    """The kind with what its claim tells of it."""
    bound = claim.volume.metadata.name if claim.volume is not None else ""
    return replace(
        kind,
        claim=claim.name,
        provisioner="" if bound and not claim.phase else claim.provisioner,
        storage_class=claim.class_name or (claim.storage_class.metadata.name if claim.storage_class else ""),
        size=claim.size,
        persistent_volume=kind.persistent_volume or bound,
    )


def driver_of(volume: PersistentVolume | None, inline_driver: str = "") -> str:
    """``driver csi.example.com`` for a volume that one serves, "" for any other."""
    name = volume.spec.csi.driver if volume is not None and volume.spec.csi is not None else inline_driver
    return f"driver {name}" if name else ""


def _points(facts: VolumeFacts) -> tuple[Point, ...]:
    phases = (sequence.unmount_sequence if facts.unmounting else sequence.mount_sequence)(facts.kind)
    here = sequence.index_of(phases, facts.here) if facts.here else None
    if here is None:
        status = facts.status
        here = sequence.phase_at(phases, status.operation, status.step or status.failed_step)
    if here is None:
        here = 0 if facts.unmounting else sequence.index_of(phases, sequence.CHECK)
    states = ["done"] * here + ["here"] + ["to-come"] * (len(phases) - here - 1)
    return tuple(Point(phase.name, state, phase.text) for phase, state in zip(phases, states, strict=True))


def _claim_words(claim: ClaimFacts) -> list[str]:
    words = f"its claim {claim.name}"
    if claim.claim is None:
        words += ", which is not there"
    elif claim.phase:
        words += f", which is {claim.claim.status.phase or 'Pending'}"
    return [f"{words}: {claim.step}" if claim.step else words]


def _source(kind: VolumeKind) -> str:
    parts = [f"claim {kind.claim}"] if kind.claim else []
    parts += [f"persistent volume {kind.persistent_volume}"] if kind.persistent_volume else []
    parts += [kind.by] if kind.by else []
    return ", ".join(parts)


def _with(explanation: VolumeExplanation, **changes: object) -> VolumeExplanation:
    import msgspec

    return msgspec.structs.replace(explanation, **changes)


def expected_of_driver(kind: VolumeKind, api: ApiClient | None, driver: str) -> VolumeKind:
    """What a volume of a CSI driver goes through, as long as its plugin was not asked; unchanged for any other."""
    from volumehost.api.objects import CSIDriver
    from volumehost.control.writes import get_or_none

    try:
        found = get_or_none(api, CSIDriver, driver) if api is not None else None
    except ApiError:
        found = None
    if found is None:
        return kind
    attaches = found.spec.attach_required is not False
    return replace(kind, by=kind.by or f"driver {driver}", mounts_device=True, attaches=kind.attaches or attaches)


def argument_of(label: str) -> str:
    """How a command line names the pod of that label."""
    namespace, _, name = label.rpartition("/")
    return name if namespace in {"", "default"} else f"-n {namespace} {name}"


def add_missing_plugin(facts: VolumeFacts) -> None:
    """The plugin that mounted the volume is not there any more: it is left alone until that is back."""
    status = facts.status
    facts.here = sequence.PLUGIN
    facts.waits_for.append(f"its volume plugin {status.plugin}{_origin_words(status)}, which is not there")
    facts.advice += _install_words(status)


def missing_plugin_advice(status: VolumeStatus, error: BaseException | None) -> list[str]:
    """What to do about an operation that failed since its plugin is not there any more."""
    missing = any(isinstance(link, PluginLookupError) for link in error_chain(error))
    return _install_words(status) if missing else []


def _origin_words(status: VolumeStatus) -> str:
    return f", of {status.distribution} {status.version}".rstrip() if status.distribution else ""


def _install_words(status: VolumeStatus) -> list[str]:
    if not status.distribution:
        return []
    version = f"=={status.version}" if status.version else ""
    return [f"install it again: pip install {status.distribution}{version}"]
