"""The one tree of errors of this project; every room raises from here and every caller branches on it.

::

    VolumeHostError
    |-- SpecError                       a volume spec cannot be used (absent, no source, wrong kind)
    |-- PluginError                     carries plugin, distribution, version
    |   |-- InvalidPluginNameError      the name breaks the rule for plugin names
    |   |-- DuplicatePluginError        a second plugin with a name that is taken
    |   |-- PluginDeniedError           the trust policy or an environment switch excludes it
    |   |-- PluginIncompatibleError     it declares that it needs another host or Python
    |   |-- PluginImportError           importing or creating it failed
    |   |-- PluginContractError         half an interface, an unknown hook, a wrong signature
    |   |-- PluginInitError             its init() refused or did not come back
    |   |-- PluginCallError             a hook raised, hung, or returned the wrong type
    |   `-- HookNotImplementedError     a hook of an interface that the plugin does not have was called
    |-- PluginLookupError               a find_* call has no answer
    |   |-- NoPluginMatchedError        by spec: nobody supports it (MGR-FIND-02, the sentinel)
    |   |-- PluginNotFoundError         by name: nobody has it (MGR-FIND-04, not the sentinel)
    |   |-- MultiplePluginsMatchedError by spec or by name: more than one (MGR-FIND-03, -05)
    |   `-- CapabilityMissingError      found, but it lacks the interface asked for (MGR-FIND-06)
    |-- NotAvailableOnHostError         this kind of host does not offer that (ADHOST-02)
    |-- MissingPrivilegeError           the process may not do it; says which privilege is missing
    |-- UnsafePathError                 a path from outside leads where it must not
    |-- RemovalError                    a directory cannot be removed; names what is left in it
    |-- SELinuxLabelError               an SELinux label cannot be made, or conflicts with another
    |-- OwnershipError                  group and permissions of a volume could not be applied
    |-- PayloadError                    files of a volume could not be written
    |-- MountError                      the kernel or a mount helper refused
    |   |-- MountTimeoutError           it may still come about
    |   |-- UnmountError, UnmountTimeoutError, StillMountedError, CorruptedMountError
    |   |-- InconsistentMountTableError the table changed while it was read: retry (MOUNT-34)
    |   `-- FormatError                 formatting or checking a device (MOUNT-69 kinds)
    |-- QuantityError                   a text is not a quantity; a ValueError too
    |-- ApiError
    |   |-- ManifestError               a file or document cannot be read as an object
    |   |-- InvalidObjectError          validation; lists every field that is wrong
    |   |-- UnknownKindError, ObjectNotFoundError, AlreadyExistsError, ConflictError
    |   |-- GoneError                   a watch cannot go on from there: list again
    |   `-- StoreError                  the store itself cannot be used
    |-- OperationError
    |   |-- TransientOperationError     certainly nothing happened: keep the state (ERR-01)
    |   |-- UncertainProgressError      it may still be going on (ERR-02)
    |   |   `-- OperationStoppedError   the host ended it on the way, since nobody wants it any more, or the host stops
    |   |-- FailedPreconditionError, InfeasibleError, OperationNotSupportedError (ERR-06)
    |   |-- DeletedVolumeInUseError     delete refused for now: record and retry (VOL-09)
    |   |-- StorageDriverError          a call of a storage driver failed; carries driver, call, code
    |   |   |-- StorageDriverUncertainError    the driver may still be at it (CSI-ERR-04)
    |   |   |-- StorageDriverUnavailableError  not registered, not started: nothing was called (CSI-ERR-12)
    |   |   |-- StorageDriverPreconditionError, StorageDriverInfeasibleError, StorageDriverUnsupportedError
    |   `-- AlreadyRunningError, BackoffError   an operation may not start now (NPO-11, BACKOFF-02)
    |-- MetricsError                    NotSupportedMetricsError, NoPathMetricsError, FsInfoMetricsError
    |-- RootDirectoryError              the root directory cannot be used
    |   `-- RootDirectoryLockedError    another manager works on it
    |-- AgentGoneError                  the agent that was asked does not run, or does not answer
    |-- ContainerRuntimeError           a container runtime cannot do what a volume mount asks for
    |-- WaitTimeoutError                a wait ended; says what it waited for and the last error of each
    `-- VolumesFailedError              volumes of a pod cannot be mounted; says which and why

Anything that is neither transient nor uncertain is *final*: known not to be in progress (ERR-03).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path

    from volumehost.volumes import VolumeMetrics


class VolumeHostError(Exception):
    """Base of every error that the host raises on purpose.

    The text has four parts, each also an attribute: ``action`` (what was being done, to what), ``reason``
    (why it failed), ``subject`` (the object's name alone, for programs) and ``hint`` (what to do next).
    """

    def __init__(self, reason: str, *, action: str = "", subject: str = "", hint: str = "") -> None:
        super().__init__(reason, action, subject, hint)
        self.reason = reason
        self.action = action
        self.subject = subject
        self.hint = hint

    def __str__(self) -> str:
        """One line: ``action: reason (hint)``."""
        text = f"{self.action}: {self.reason}" if self.action else self.reason
        return f"{text} ({self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild without calling the subclass's own constructor, so that every error can be pickled."""
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[VolumeHostError], args: tuple[object, ...], state: dict[str, object]) -> VolumeHostError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class SpecError(VolumeHostError):
    """A volume spec is absent, has no source, or is not for the plugin that got it."""


# --- plugins ----------------------------------------------------------------------------------------------


class PluginError(VolumeHostError):
    """Something about one plugin; the others are not affected.

    ``plugin`` is its name (or the entry point's name when it never told one), ``distribution`` and ``version``
    are those of the installed distribution that it came from, empty when it was handed over as an object.
    """

    def __init__(
        self,
        reason: str,
        *,
        plugin: str = "",
        distribution: str = "",
        version: str = "",
        action: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(reason, action=action, subject=plugin, hint=hint)
        self.plugin = plugin
        self.distribution = distribution
        self.version = version


class InvalidPluginNameError(PluginError):
    """The name breaks MGR-NAME-01 to -07."""


class DuplicatePluginError(PluginError):
    """Two plugins with one name: the first stays, this names both distributions (MGR-INIT-06, BR-09)."""


class PluginDeniedError(PluginError):
    """The trust policy or an environment switch excludes the plugin; it was not imported."""


class PluginIncompatibleError(PluginError):
    """The distribution declares that it needs another host version or Python (BR-82); it was not imported."""


class PluginImportError(PluginError):
    """Importing the module or creating the plugin object failed; the cause is chained (BR-03, BR-04)."""


class PluginContractError(PluginError):
    """The plugin does not keep the contract: missing hooks, unknown hooks, wrong signatures (BR-17)."""


class PluginInitError(PluginError):
    """The plugin's ``init`` raised or did not come back within its deadline (MGR-INIT-07)."""


class PluginCallError(PluginError):
    """A hook raised, hung past its deadline, or returned a value of the wrong type."""


class HookNotImplementedError(PluginError):
    """A hook was called that belongs to an interface which this plugin does not have."""


class PluginLookupError(VolumeHostError):
    """A ``find_*`` call has no answer."""


class NoPluginMatchedError(PluginLookupError):
    """No plugin supports the spec: the sentinel of MGR-FIND-02. Never means that a volume is unwanted."""


class PluginNotFoundError(PluginLookupError):
    """No plugin has that name (MGR-FIND-04). Not the sentinel."""


class MultiplePluginsMatchedError(PluginLookupError):
    """More than one plugin matched; ``names`` lists them, sorted."""

    def __init__(
        self, reason: str, *, names: Sequence[str], action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.names = tuple(names)


class CapabilityMissingError(PluginLookupError):
    """The plugin was found but does not have the interface asked for."""


# --- host and machine -------------------------------------------------------------------------------------


class NotAvailableOnHostError(VolumeHostError):
    """This kind of host (standalone node, controller) does not offer what was asked (HOST-03, ADHOST-02)."""


class MissingPrivilegeError(VolumeHostError):
    """The process lacks a privilege or the machine a facility; raised before anything was changed."""


class UnsafePathError(VolumeHostError):
    """A path from a manifest, a driver or the disk would lead outside of where it belongs."""


class SELinuxLabelError(VolumeHostError):
    """An SELinux label cannot be made of what a pod says, or does not go with another that a volume has."""


class OwnershipError(VolumeHostError):
    """A volume's group and permissions could not be applied: a directory could not be read (FSGRP-08)."""


class PayloadError(VolumeHostError):
    """The files of a volume (a secret's keys, say) are invalid or could not be written (ATOMIC-04)."""


class RemovalError(VolumeHostError):
    """A path could not be removed; ``paths`` lists what is left and why it was kept stands in the reason (BR-70)."""

    def __init__(
        self, reason: str, *, paths: Sequence[str] = (), action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.paths = tuple(paths)


class RootDirectoryError(VolumeHostError):
    """The root directory cannot be used: not a directory, read-only, full, not canonical (LAYOUT-06)."""


class RootDirectoryLockedError(RootDirectoryError):
    """Another volume manager works on the root directory; ``pid`` is its process when known."""

    def __init__(
        self, reason: str, *, pid: int | None = None, action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.pid = pid


class AgentGoneError(VolumeHostError):
    """No agent answers on the control socket of the root directory: it does not run, or ended meanwhile."""


class ContainerRuntimeError(VolumeHostError):
    """A container runtime cannot do, or cannot be told, what a mount of a container asks for; ``subject`` is the path.

    Nothing was changed; another runtime may be able to.
    """


class MountError(VolumeHostError):
    """A mount failed; ``errno`` is the kernel's when there was one. Options marked sensitive are masked."""

    def __init__(
        self, reason: str, *, action: str = "", subject: str = "", hint: str = "", errno: int | None = None
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.errno = errno


class MountTimeoutError(MountError):
    """A mount did not end within its deadline; it may still come about, so it is uncertain (ERR-02)."""


class UnmountError(MountError):
    """An unmount failed; busy mounts name the processes that hold them where that can be known."""


class UnmountTimeoutError(UnmountError):
    """An unmount did not end within its deadline; it may still be going on."""


class StillMountedError(UnmountError):
    """A removal met a live mount and stopped in front of it (RMALL-02, BR-62)."""


class CorruptedMountError(MountError):
    """The mount is there but answers ENOTCONN, ESTALE and the like (MOUNT-41, BR-64)."""


class InconsistentMountTableError(MountError):
    """The mount table changed in every one of the reads; retry (MOUNT-25, MOUNT-34)."""


class FormatError(MountError):
    """Formatting, checking or mounting a device failed; ``kind`` is one of MOUNT-69.

    Kinds: ``FilesystemMismatch``, ``HasFilesystemErrors``, ``UnformattedReadOnly``, ``FormatFailed``,
    ``GetDiskFormatFailed``, ``UnknownMountError``.
    """

    def __init__(self, reason: str, *, kind: str, action: str = "", subject: str = "", hint: str = "") -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.kind = kind


# --- API objects ------------------------------------------------------------------------------------------


class QuantityError(VolumeHostError, ValueError):
    """A text is not a Kubernetes quantity; ``text`` is the text."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 64 else f"{text[:61]}..."
        super().__init__(f"{shown!r} is not a quantity: {reason}", subject=shown)
        self.text = text


class ApiError(VolumeHostError):
    """Something about an API object or the store that holds it."""


class ManifestError(ApiError):
    """A manifest cannot be read: bad YAML or JSON, a wrong type; ``source`` names the file and document.

    ``problems`` has one line for each thing that is wrong with an object, where that is known.
    """

    def __init__(
        self, reason: str, *, source: str | Path = "", action: str = "", hint: str = "", problems: Sequence[str] = ()
    ) -> None:
        super().__init__(reason, action=action, subject=str(source), hint=hint)
        self.source = str(source)
        self.problems = tuple(problems)


class InvalidObjectError(ApiError):
    """An object breaks the API's rules; ``problems`` lists ``(field path, message)`` for each."""

    def __init__(self, *, subject: str, problems: Sequence[tuple[str, str]], action: str = "") -> None:
        reason = "; ".join(f"{field}: {message}" for field, message in problems)
        super().__init__(reason, action=action or f"{subject} is invalid", subject=subject)
        self.problems = tuple(problems)


class UnknownKindError(ApiError):
    """The kind (with its apiVersion) is not one that this host knows."""


class ObjectNotFoundError(ApiError):
    """No such object."""


class AlreadyExistsError(ApiError):
    """An object of that kind, namespace and name exists."""


class ConflictError(ApiError):
    """The object changed since it was read (resource version): read it again and retry."""


class GoneError(ApiError):
    """The changes after that resource version are no longer known: list again and watch from there."""


class StoreError(ApiError):
    """The store cannot be opened, read or written."""


# --- operations -------------------------------------------------------------------------------------------


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


# --- metrics ----------------------------------------------------------------------------------------------


class MetricsError(VolumeHostError):
    """Volume metrics cannot be had; ``code`` is the reference's number (METRICS-01).

    ``partial`` holds what was found out before the failure (METRICS-03).
    """

    code: ClassVar[int] = 0
    partial: VolumeMetrics | None = None


class NotSupportedMetricsError(MetricsError):
    """The volume has no metrics."""

    code = 1


class NoPathMetricsError(MetricsError):
    """No path is defined to measure."""

    code = 2


class FsInfoMetricsError(MetricsError):
    """The filesystem did not answer."""

    code = 3


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
