"""What became of an operation on a volume (final, transient, uncertain), and how a chain of errors is read for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from volumehost.errors.base import VolumeHostError
from volumehost.errors.machine import MountTimeoutError, UnmountTimeoutError


class OperationError(VolumeHostError):
    """Base of the error kinds that decide what an operation's state becomes (ERR-01 to -06)."""


class TransientOperationError(OperationError):
    """Not finished, but certainly nothing happened that must be undone; the state stays (ERR-01)."""


class UncertainProgressError(OperationError):
    """The call may still be going on or have worked; the state becomes uncertain (ERR-02)."""


class OperationStoppedError(UncertainProgressError):
    """An operation that takes long was ended on the way: its pod goes, or the host stops. No failure of anybody's.

    What was done so far stays; the next run of the operation, or the teardown, deals with it.
    """


class FailedPreconditionError(OperationError):
    """Not possible in the volume's present state, for example expansion while published (ERR-06)."""


class InfeasibleError(OperationError):
    """A retry will not help (ERR-06)."""


class OperationNotSupportedError(OperationError):
    """The plugin or driver does not do this (ERR-06)."""


class DeletedVolumeInUseError(OperationError):
    """The volume to delete is still in use: record a Normal event and try again (VOL-09)."""


class StorageDriverError(OperationError):
    """A call of a storage driver failed; final unless it is also one of the kinds below (CSI-ERR-01 to -05).

    ``driver`` is its name, ``call`` the call (``NodeStageVolume``), ``code`` the gRPC code's name in upper case
    (``INTERNAL``), "" when there was none: arguments that were refused here, a reply that makes no sense.
    ``driver_message`` is what the driver said, secrets stripped.
    """

    def __init__(
        self,
        reason: str,
        *,
        driver: str = "",
        call: str = "",
        code: str = "",
        driver_message: str = "",
        action: str = "",
        subject: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(reason, action=action, subject=subject or driver, hint=hint)
        self.driver = driver
        self.call = call
        self.code = code
        self.driver_message = driver_message


class StorageDriverUncertainError(StorageDriverError, UncertainProgressError):
    """The driver may still be at it, or have done it: repeat the call or call the opposite (CSI-WIRE-13)."""


class StorageDriverUnavailableError(StorageDriverError, TransientOperationError):
    """The driver is not registered or does not run, so nothing was called (CSI-ERR-12, BR-27)."""


class StorageDriverPreconditionError(StorageDriverError, FailedPreconditionError):
    """FAILED_PRECONDITION: not possible in the volume's present state (CSI-EXP-09)."""


class StorageDriverInfeasibleError(StorageDriverError, InfeasibleError):
    """INVALID_ARGUMENT, OUT_OF_RANGE, NOT_FOUND: repeating the same call cannot help (CSI-ERR-16)."""


class StorageDriverUnsupportedError(StorageDriverError, OperationNotSupportedError):
    """UNIMPLEMENTED, or a capability that the driver does not declare."""


class AlreadyRunningError(OperationError):
    """An operation on the same volume is running (NPO-11)."""


class BackoffError(OperationError):
    """The operation failed a moment ago and may not be retried yet; ``retry_in`` is in seconds (BACKOFF-02)."""

    def __init__(self, reason: str, *, retry_in: float, action: str = "", subject: str = "") -> None:
        super().__init__(reason, action=action, subject=subject)
        self.retry_in = retry_in


class _DetailedError(VolumeHostError):
    """``details`` tells of each thing that is missing, in one line or more; they follow the text."""

    def __init__(
        self, reason: str, *, details: Sequence[str] = (), action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.details = tuple(details)

    def __str__(self) -> str:
        return "\n  ".join([super().__str__(), *(line for detail in self.details for line in detail.splitlines())])


class WaitTimeoutError(_DetailedError):
    """A wait ended without its condition (BR-83)."""


class VolumesFailedError(_DetailedError):
    """Volumes cannot be mounted or unmounted, and waiting longer would not help; the others are."""


# --- reading a chain --------------------------------------------------------------------------------------


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and everything that it was raised from or while handling, outermost first."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            pending.extend(reversed(current.exceptions))
        # An explicit "raise ... from None" says that the context is not part of the story.
        pending.append(current.__cause__ if current.__suppress_context__ else current.__cause__ or current.__context__)


def is_uncertain_progress_error(error: BaseException | None) -> bool:
    """Whether the operation may still be going on: any uncertain error in the chain decides (ERR-05, improved)."""
    return _in_chain(error, (UncertainProgressError, MountTimeoutError, UnmountTimeoutError))


def is_operation_finished_error(error: BaseException | None) -> bool:
    """Whether the error is final: neither transient nor uncertain anywhere in its chain (ERR-04)."""
    return not _in_chain(
        error, (TransientOperationError, UncertainProgressError, MountTimeoutError, UnmountTimeoutError)
    )


def is_infeasible_error(error: BaseException | None) -> bool:
    """Whether a retry cannot help (ERR-06)."""
    return _in_chain(error, (InfeasibleError,))


def _in_chain(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(link, kinds) for link in error_chain(error))
