"""What an inspection tells: pods with their volumes, devices, and findings; plain records that commands print.

Made by :func:`volumehost.inspection.inspect.inspect_root`; a repair plan is made of one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class RootKind(StrEnum):
    """Whose directory it is."""

    OWN = "volumehost"
    KUBELET = "kubelet"


class Severity(StrEnum):
    """``info``: worth knowing. ``warning``: something is left over. ``error``: data or a pod's volume is in danger."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class PodState(StrEnum):
    """What is known of the pod that a directory or a record is of.

    ``known``: a source of pods has it. ``ending``: its workload has ended, by a positive word. ``gone``: records tell
    of it, and a complete source of pods has it no more. ``orphaned``: nothing but its directory tells of it, and all
    sources that could know it are complete. ``unknown``: no complete source was there to ask, so nothing is concluded.
    """

    KNOWN = "known"
    ENDING = "ending"
    GONE = "gone"
    ORPHANED = "orphaned"
    UNKNOWN = "unknown"

    @property
    def abandoned(self) -> bool:
        """Whether certainly nobody wants anything of it any more."""
        return self in (PodState.GONE, PodState.ORPHANED)


@dataclass(frozen=True, slots=True)
class MountFacts:
    """One mount as the kernel shows it. ``root`` is the part of the filesystem; ``device`` is ``major:minor``.

    Values of options that look like secrets are masked.
    """

    path: str
    source: str
    fs_type: str
    options: tuple[str, ...]
    root: str
    device: str
    mount_id: int


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What each witness says of a volume, "" for one that says nothing.

    ``journal``: the recorded state. ``boot``: ``this`` or ``earlier``, of the journal. ``mount_table``: ``mounted``,
    ``stacked`` or ``not mounted``. ``directory``: what is at the volume's path. ``record``: ``whole``, ``missing`` or
    what is wrong with ``vol_data.json``. ``loop_device``: the device behind it. ``disagreements`` has a line for
    each contradiction.
    """

    journal: str = ""
    boot: str = ""
    mount_table: str = ""
    directory: str = ""
    record: str = ""
    loop_device: str = ""
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeReport:
    """One volume of one pod.

    ``state``: ``mounted``; ``corrupted`` or ``hung`` when what is mounted does not serve; ``directory`` for a volume
    that is a plain directory; ``bare`` when a mount is promised and there is none; ``leftover`` when what is there is
    no volume any more; ``recorded`` when only records tell of it; ``changing`` while an operation is at it.
    ``mounts`` are those at ``mount_path``, the lowest first.
    """

    pod_uid: str
    name: str
    plugin: str
    mode: str
    path: str
    mount_path: str
    state: str
    mounts: tuple[MountFacts, ...] = ()
    driver: str = ""
    handle: str = ""
    witnesses: Witnesses = Witnesses()


@dataclass(frozen=True, slots=True)
class PodReport:
    """A pod. ``named_by``: which source told its name."""

    uid: str
    state: PodState
    namespace: str = ""
    name: str = ""
    named_by: str = ""
    volumes: tuple[VolumeReport, ...] = ()

    @property
    def label(self) -> str:
        """``namespace/name``, or the uid where nobody knows the name."""
        return f"{self.namespace}/{self.name}" if self.name else self.uid


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """A volume as it is mounted or mapped for the whole node. ``used_by``: UIDs of the pods that have it.

    ``state``: as of a volume, and ``unused`` when it is mounted and no pod has it.
    """

    plugin: str
    path: str
    mode: str
    state: str
    mounts: tuple[MountFacts, ...] = ()
    driver: str = ""
    handle: str = ""
    used_by: tuple[str, ...] = ()
    witnesses: Witnesses = Witnesses()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    :param kind: one of :data:`volumehost.inspection.kinds.KINDS`.
    :param subject: what it is about: a path, a device, the uid of a pod, a unique volume name.
    :param pod_uid: the pod that it concerns, "" for none.
    :param evidence: what was seen, one line each.
    :param advice: what only a person can do about it, "" where repair does it.
    """

    kind: str
    severity: Severity
    subject: str
    pod_uid: str = ""
    evidence: tuple[str, ...] = ()
    advice: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What two looks at one thing have in common."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class Inspection:
    """One root directory. ``at_work`` says who works on it now, "" for nobody; ``sources``: where pods are known from.

    ``notes``: what should be known before the rest is believed.
    """

    root_dir: str
    kind: RootKind
    boot_id: str
    at_work: str
    sources: tuple[str, ...]
    pods: tuple[PodReport, ...]
    devices: tuple[DeviceReport, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = field(default=())

    def pod(self, uid: str) -> PodReport | None:
        """The pod of that uid."""
        return next((pod for pod in self.pods if pod.uid == uid), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return asdict(self)
