"""Which pods there are, from every source that tells; and what that means for a directory or a record.

Nothing is concluded from a source that may be incomplete: a pod is called orphaned only if each source that would know
it was there to ask, and is newer than the pod's directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from volumehost.inspection.report import PodState

#: The uid of a pod of a manifest file, a kubelet's or an agent's: a digest. That of a pod of the API has hyphens.
_STATIC_UID: Final = re.compile(r"[0-9a-f]{32}")

STORE, JOURNAL, GIVEN, STATIC, LOGS = "store", "journal", "pods given", "static manifests", "pod logs"


@dataclass(frozen=True, slots=True)
class KnownPod:
    """A pod that a source tells of. ``uids``: every uid that its directory may have; ``claims``: how many of its
    volumes are backed by claims.
    """

    namespace: str
    name: str
    source: str
    uids: tuple[str, ...]
    ended: bool = False
    claims: int = 0


@dataclass(frozen=True, slots=True)
class PodName:
    """A name that something tells for a uid, which does not prove that there is such a pod."""

    namespace: str
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class KnownAttachment:
    """A VolumeAttachment of the store."""

    name: str
    volume: str
    attacher: str
    node: str


@dataclass(slots=True)
class KnownPods:
    """All that the sources tell.

    :param complete: a source has told all pods of this node that the API has.
    :param static_complete: every pod of a manifest file is known by its uid, or there are none.
    :param told_at: when the API's pods were told, in seconds since the epoch; what changed later is not judged.
    """

    complete: bool = False
    static_complete: bool = False
    told_at: float = float("inf")
    sources: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    by_uid: dict[str, KnownPod] = field(default_factory=dict)
    attachments: list[KnownAttachment] = field(default_factory=list)
    names: dict[str, PodName] = field(default_factory=dict)
    #: Namespaces of the pods of a list, which should be all; empty where the source is no list.
    listed_namespaces: set[str] = field(default_factory=set)

    def add(self, pods: Iterable[KnownPod]) -> None:
        """Enter pods; the first source of a uid stays."""
        for pod in pods:
            for uid in pod.uids:
                self.by_uid.setdefault(uid, pod)

    def name_of(self, uid: str) -> PodName | None:
        """The best name for the uid."""
        pod = self.by_uid.get(uid)
        if pod is not None and pod.name:
            return PodName(pod.namespace, pod.name, pod.source)
        return self.names.get(uid)

    def state_of(self, uid: str, *, changed_at: float = 0.0, recorded: bool = False) -> PodState:
        """What is known of the pod.

        :param changed_at: when its directory changed last.
        :param recorded: whether the journal tells of it.
        """
        pod = self.by_uid.get(uid)
        if pod is not None:
            return PodState.ENDING if pod.ended else PodState.KNOWN
        if self.why_unknown(uid, changed_at=changed_at):
            return PodState.UNKNOWN
        return PodState.GONE if recorded else PodState.ORPHANED

    def why_unknown(self, uid: str, *, changed_at: float = 0.0) -> str:
        """Why nothing can be concluded from the fact that no source has the pod; "" when something can."""
        if not self.complete:
            return "no source of pods was there to ask"
        if has_static_uid(uid) and not self.static_complete:
            return "it has the uid of a pod of a manifest file, and not all of those are known"
        if changed_at > self.told_at:
            return "its directory is newer than the list of pods"
        name = self.names.get(uid)
        if name is not None and self.listed_namespaces and name.namespace not in self.listed_namespaces:
            return (
                f"{name.source} call it {name.namespace}/{name.name}, and the list has no pod of that namespace: "
                "was it made for all namespaces?"
            )
        return ""


def has_static_uid(uid: str) -> bool:
    """Whether it is the uid of a pod of a manifest file."""
    return _STATIC_UID.fullmatch(uid) is not None
