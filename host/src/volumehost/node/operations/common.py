"""What all operations on volumes share: their services, their named steps, and how a failure is told.

An operation runs on a worker, at most one per volume (or per pod and volume). It is a sequence of named steps; the
process may be killed between any two, and the operation begins again from its first step after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from volumehost.errors import (
    OperationError,
    OperationStoppedError,
    RootDirectoryError,
    TransientOperationError,
    VolumeHostError,
    error_chain,
)
from volumehost.loader.guard import describe, shown

if TYPE_CHECKING:
    from volumehost.host_services import EventRecorder
    from volumehost.hosts.node_host import NodeHost
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.node.cluster.attachments import ControllerAttachments
    from volumehost.node.execution.pending import OperationKey, PendingOperation
    from volumehost.node.execution.timers import Timers
    from volumehost.node.journal.journal import Journal
    from volumehost.node.journal.records import Fields
    from volumehost.node.local_control import LocalControl
    from volumehost.node.state.actual import ActualState
    from volumehost.node.state.desired import DesiredState, VolumeUse
    from volumehost.spec import Spec

logger = logging.getLogger(__name__)

#: Longest wait for a device to appear after attaching, in seconds (CONST-03).
WAIT_FOR_ATTACH_SECONDS = 600.0

#: Names of the operations that stage and publish.
MOUNT_VOLUME, MAP_VOLUME = "volume_mount", "map_volume"

#: How long an outcome may wait before it is in the journal's file, for those who read status there, in seconds.
FLUSH_SECONDS = 0.1


class StepObserver(Protocol):
    """Is told of every step before it is taken. For tracing, and for tests that end the process at a step."""

    def __call__(self, operation: str, step: str, volume: str, pod_uid: str) -> None:
        """``operation`` and ``step`` are names such as ``volume_mount`` and ``set-up``."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """What operations work with."""

    plugins: VolumePluginManager
    host: NodeHost
    desired: DesiredState
    actual: ActualState
    journal: Journal
    timers: Timers
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    control: LocalControl
    #: Where a controller elsewhere attaches volumes; None where this manager does it.
    attachments: ControllerAttachments | None = None
    observer: StepObserver | None = None
    attach_timeout: float = WAIT_FOR_ATTACH_SECONDS

    def read_spec(self, volume: str) -> Spec | None:
        """The spec that is on record of the volume of that unique name."""
        from volumehost.node.state.recorded_spec import read_spec

        return read_spec(self.journal, volume)

    def note(self, *records: Fields, only_known: bool = False) -> None:
        """Record outcomes in the journal, lazily; they are in the file a moment later.

        :param only_known: leave out what nothing is recorded of.
        """
        if self.journal.note(*records, only_known=only_known):
            self.timers.call_later(FLUSH_SECONDS, self.journal.arranged_flush)

    def recorder(self) -> EventRecorder | None:
        """Where events go."""
        return self.host.get_event_recorder()


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run ended; ``retry_at`` is when the next may start, in seconds since the epoch."""

    error: BaseException
    attempts: int
    retry_at: float
    operation: str = ""
    step: str = ""

    def fields(self) -> dict[str, Any]:
        """What the journal says of it, for status and explanations when this process is gone."""
        from volumehost.node.explaining.error_words import advice_for, error_lines

        return {
            "err": str(self.error),
            "attempts": self.attempts,
            "retry_at": round(self.retry_at, 3),
            "failed_op": self.operation,
            "failed_step": self.step,
            "err_lines": error_lines(self.error),
            "advice": advice_for(self.error),
        }


#: What the journal says after a success.
NO_FAILURE: Final = {"err": "", "attempts": 0}


class Operation(Protocol):
    """One operation on a volume, made for one run."""

    #: Its name in metrics, status and backoff: ``volume_mount`` and so on (METRIC-02).
    name: str
    key: OperationKey
    #: The pod that it works for, "" for none.
    pod_uid: str
    #: The volume's plugin, and its spec where that is known: what metrics and explanations name it by.
    plugin_name: str
    spec: Spec | None
    #: When the wish was entered that a success fulfils, on the manager's clock; None where none is fulfilled by it.
    requested_at: float | None

    def intent(self) -> Sequence[Fields]:
        """What to write to the journal before the first step."""
        ...

    def run(self, steps: Steps) -> None:
        """Do it, step by step. Raises when it failed; the state has been marked then."""
        ...

    def failed(self, failure: Failure) -> None:
        """Record it, and tell the user by an event where the rules want one."""
        ...


def was_stopped(error: BaseException | None) -> bool:
    """Whether an operation was ended on the way, which is nothing to warn anybody of."""
    return any(isinstance(link, OperationStoppedError) for link in error_chain(error))


def driver_answered(error: BaseException, code: str) -> bool:
    """Whether an operation failed since a storage driver answered with this code of gRPC (``ALREADY_EXISTS``)."""
    return any(getattr(link, "code", "") == code for link in error_chain(error))


class Steps:
    """Where one run of an operation is; shown in status while it runs."""

    __slots__ = ("_count", "_entry", "_observer", "_refused", "_services", "_ticket")

    def __init__(
        self,
        services: Services,
        entry: PendingOperation,
        ticket: int,
        refused: TransientOperationError | None = None,
        count: Callable[[str, float, BaseException | None], None] | None = None,
    ) -> None:
        self._services = services
        self._count = count
        self._observer = services.observer
        self._entry = entry
        self._ticket = ticket
        self._refused = refused

    @property
    def together(self) -> int:
        """A number that it has in common with the operations that were started together with it, 0 for none."""
        return self._ticket

    def enter(self, step: str) -> None:
        """Begin the step of that name."""
        self._entry.step = step
        if self._observer is not None:
            self._observer(self._entry.name, step, self._entry.key.volume, self._entry.key.pod)

    def report(self, progress: str) -> None:
        """Tell how far the step is: ``ownership, 12,340 entries``."""
        self._entry.progress = progress

    @property
    def stopping(self) -> bool:
        """Whether the manager stops: what takes long is to end where it can."""
        return self._entry.stopping

    def count(self, operation: str, seconds: float, error: BaseException | None) -> None:
        """Count a part of this run as an operation of its own (METRIC-02)."""
        if self._count is not None:
            self._count(operation, seconds, error)

    def make_intent_durable(self, *, required: bool) -> None:
        """Return when the journal's record of the intent is on disk; call before the first step that reaches outside.

        :param required: False for a teardown, which must work on a full disk too. Nothing is lost then: without the
            record a restart finds the volume as it was before, uncertain, and tears it down again.
        :raises TransientOperationError: it cannot be made durable; nothing has happened yet.
        """
        self.enter("journal")
        refused = self._refused
        if refused is None:
            try:
                self._services.journal.sync(self._ticket)
            except RootDirectoryError as error:
                refused = intent_refused(error, self._entry.key.volume)
                refused.__cause__ = error
        if refused is not None:
            if required:
                raise refused
            logger.warning("going on without a durable record: %s", refused)


def intent_refused(error: RootDirectoryError, volume: str) -> TransientOperationError:
    """The error of an operation that could not begin because its intent cannot be recorded."""
    return TransientOperationError(
        error.reason, action=f"recording what is about to be done to volume {volume}", subject=volume, hint=error.hint
    )


def use_fields(use: VolumeUse) -> dict[str, Any]:
    """What the journal says of a pod's use of a volume: enough to tear it down, should nothing else be left."""
    plugin, metadata = use.plugin, use.pod.metadata
    return {
        "v": use.volume,
        "p": use.pod_uid,
        "plugin": plugin.name,
        "dist": plugin.origin.distribution,
        "ver": plugin.origin.version,
        "inner": use.inner_name,
        "outer": use.outer_names,
        "ns": metadata.namespace,
        "pod": metadata.name,
        "mode": use.spec.volume_mode(),
    }


class OperationFailedError(OperationError):
    """A step failed; the cause is chained and decides whether this is final, transient or uncertain.

    The text is the detailed form of EXEC-03; ``event_message`` the simple one, without details of the host.
    """

    def __init__(self, prefix: str, volume_name: str, details: str, cause: BaseException) -> None:
        reason = _words(cause)
        super().__init__(reason, action=f'{prefix} for volume "{volume_name}" {details}', subject=volume_name)
        self.event_message = f'{prefix} for volume "{volume_name}" : {reason}'
        self.__cause__ = cause


def _words(cause: BaseException) -> str:
    """The cause's own words; with its kind, where a plugin raises what says nothing or is no ordinary exception."""
    if isinstance(cause, VolumeHostError):
        return str(cause)
    return (shown(cause, str) if isinstance(cause, Exception) else "") or describe(cause)


def event_message(error: BaseException) -> str:
    """What an event says about the failure (EVENT-03)."""
    return error.event_message if isinstance(error, OperationFailedError) else str(error)


def pod_details(unique_name: str, namespace: str, name: str, uid: str) -> str:
    """Details of mount and unmount in messages (EXEC-03)."""
    return f'(UniqueName: "{unique_name}") pod "{namespace}/{name}" (UID: "{uid}")'


class PluginUser(NamedTuple):
    """Who holds a plugin; there are as many as volumes, so the text is made when somebody reads it."""

    volume: str
    pod_uid: str

    def __str__(self) -> str:
        return f"{self.volume} of pod {self.pod_uid}" if self.pod_uid else f"device of {self.volume}"


def plugin_user(volume: str, pod_uid: str) -> PluginUser | str:
    """Who holds a plugin: the volume and the pod, or the volume's device when the pod is empty."""
    # The name of a volume that is this pod's alone has the pod's UID in it.
    return volume if pod_uid and pod_uid in volume else PluginUser(volume, pod_uid)
