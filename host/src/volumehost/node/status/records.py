"""What status shows: one plain record for each volume of each pod, made by the manager or read from its files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

#: States in which the volume can be used by containers.
READY_STATES = frozenset({"mounted"})


@dataclass(frozen=True, slots=True)
class VolumeStatus:
    """One volume of one pod. Times are in seconds.

    ``state``: ``mounted``; ``mounting`` or ``unmounting`` while that operation runs; ``failed`` when it failed and
    is tried again in ``retry_in``; ``pending`` when it cannot start yet, for the reason in ``error``; ``waiting``
    when its plugin or its storage driver is not there; ``uncertain`` when a restart or a failure left it open;
    ``lost`` when it was mounted and the kernel no longer shows it; ``not-mounted`` when it is wanted and not mounted;
    ``unused`` when no container uses it, so it is never mounted. ``age``: how long the operation has been running.
    ``mounted``: whether the kernel shows a mount there, None where none is expected. ``progress``: how far a long
    step is (``ownership, 12,340 entries``). ``where``: once the operation has run for more than a second, where its
    thread is (``in umount2() of the kernel (D, request_wait_answer), called by acme/nfs.py:88 tear_down``), or that
    it waits for a worker. ``failed_step``: the step at which the last attempt failed. ``selinux``: what is made of the
    SELinux options of the containers that mount it, "" where they have none.
    """

    volume: str
    state: str
    plugin: str = ""
    distribution: str = ""
    version: str = ""
    path: str = ""
    mounted: bool | None = None
    unique_name: str = ""
    operation: str = ""
    step: str = ""
    age: float | None = None
    attempts: int = 0
    error: str = ""
    retry_in: float | None = None
    progress: str = ""
    where: str = ""
    failed_step: str = ""
    selinux: str = ""

    @property
    def ready(self) -> bool:
        """Whether containers can use it."""
        return self.state in READY_STATES

    def explain(self) -> str:
        """Why it is not ready, in one line (BR-83)."""
        origin = f", {self.distribution} {self.version}".rstrip() if self.distribution else ""
        plugin = f" ({self.plugin}{origin})" if self.plugin else ""
        parts = [f"volume {self.volume}{plugin}: {self.state}"]
        if self.operation:
            step = f" at step {self.step}" if self.step else ""
            age = f" for {self.age:.1f} s" if self.age is not None else ""
            parts.append(f"operation {self.operation}{step}{age}")
        parts += [text for text in (self.progress, self.where) if text]
        if self.attempts:
            step = f" at step {self.failed_step}" if self.failed_step else ""
            parts.append(f"{self.attempts} attempt{'s' if self.attempts > 1 else ''} failed{step}")
        if self.error:
            parts.append(f"last error: {self.error}")
        if self.retry_in is not None:
            parts.append(f"next retry in {self.retry_in:.1f} s")
        if len(parts) == 1 and self.state in _MEANINGS:
            parts.append(_MEANINGS[self.state])
        return ", ".join(parts)


#: What a state means of a volume that nothing is done about and nothing else is known of.
_MEANINGS = {
    "lost": "it was mounted, and the kernel no longer shows it",
    "not-mounted": "it is wanted, and not mounted at present",
    "uncertain": "a restart or a failure has left open whether it is mounted",
}


@dataclass(frozen=True, slots=True)
class PodStatus:
    """A pod and its volumes. ``state`` is ``mounted``, ``mounting``, ``unmounting``, ``failed`` or ``not-mounted``."""

    namespace: str
    name: str
    uid: str
    state: str
    volumes: tuple[VolumeStatus, ...]
    note: str = ""

    @property
    def ready(self) -> bool:
        """Whether every volume that a container uses is mounted."""
        return all(volume.ready for volume in self.volumes if volume.state != "unused")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """The reverse of :meth:`to_dict`; fields that are not known are passed over.

        :raises msgspec.ValidationError: it is no status.
        """
        import msgspec

        return msgspec.convert(data, cls)


def pod_state(volumes: tuple[VolumeStatus, ...], *, ending: bool) -> str:
    """The one word for the pod as a whole."""
    states = {volume.state for volume in volumes if volume.state != "unused"}
    if ending:
        return "unmounting"
    if states <= {"mounted"}:
        return "mounted"
    if states & {"failed", "lost", "waiting"}:
        return "failed"
    if states & {"mounting", "pending", "uncertain", "mounted"}:
        return "mounting"
    return "not-mounted" if states == {"not-mounted"} else "unmounting"


#: How the end of a cluster's pod is told to the agent of its node.
CLUSTER_WORDS = (
    "the status of its containers, the annotation volumehost.io/workload-ended=true on it, or the end of its object"
)


def waits_for_word(pod: Pod, *, in_use: bool, in_cluster: bool = False) -> str:
    """The note on a pod that is deleted and stays mounted: nobody has said that its workload has ended (BR-51)."""
    from volumehost.api.mirrors import is_mirror

    metadata = pod.metadata
    if metadata.deletion_timestamp is None or not in_use or is_mirror(pod):
        return ""
    if in_cluster:
        return f"it is deleted, and stays mounted until the word that its workload has ended: {CLUSTER_WORDS}"
    namespace = "" if metadata.namespace == "default" else f"-n {metadata.namespace} "
    return (
        "it is deleted, and stays mounted until the word that its workload has ended: "
        f"'volumehost unmount {namespace}{metadata.name}' gives it"
    )
