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
    |   `-- StoreError                  the store or the API server cannot be used: nothing is known of the object
    |       |-- ClusterConfigError      kubeconfig, context or credentials; nothing was asked
    |       |-- ServerUnreachableError  no connection; ServerTimeoutError: no answer in time
    |       |-- UnauthorizedError, ForbiddenError, KindNotServedError
    |       `-- ServerFailedError       it answered with an error; TooManyRequestsError: it asks for patience
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

from volumehost.errors.base import (
    SpecError,
    VolumeHostError,
)
from volumehost.errors.machine import (
    AgentGoneError,
    ContainerRuntimeError,
    CorruptedMountError,
    FormatError,
    FsInfoMetricsError,
    InconsistentMountTableError,
    MetricsError,
    MissingPrivilegeError,
    MountError,
    MountTimeoutError,
    NoPathMetricsError,
    NotAvailableOnHostError,
    NotSupportedMetricsError,
    OwnershipError,
    PayloadError,
    RemovalError,
    RootDirectoryError,
    RootDirectoryLockedError,
    SELinuxLabelError,
    StillMountedError,
    UnmountError,
    UnmountTimeoutError,
    UnsafePathError,
)
from volumehost.errors.objects import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    GoneError,
    InvalidObjectError,
    ManifestError,
    ObjectNotFoundError,
    QuantityError,
    StoreError,
    UnknownKindError,
)
from volumehost.errors.operations import (
    AlreadyRunningError,
    BackoffError,
    DeletedVolumeInUseError,
    FailedPreconditionError,
    InfeasibleError,
    OperationError,
    OperationNotSupportedError,
    OperationStoppedError,
    StorageDriverError,
    StorageDriverInfeasibleError,
    StorageDriverPreconditionError,
    StorageDriverUnavailableError,
    StorageDriverUncertainError,
    StorageDriverUnsupportedError,
    TransientOperationError,
    UncertainProgressError,
    VolumesFailedError,
    WaitTimeoutError,
    error_chain,
    is_infeasible_error,
    is_operation_finished_error,
    is_uncertain_progress_error,
)
from volumehost.errors.plugins import (
    CapabilityMissingError,
    DuplicatePluginError,
    HookNotImplementedError,
    InvalidPluginNameError,
    MultiplePluginsMatchedError,
    NoPluginMatchedError,
    PluginCallError,
    PluginContractError,
    PluginDeniedError,
    PluginError,
    PluginImportError,
    PluginIncompatibleError,
    PluginInitError,
    PluginLookupError,
    PluginNotFoundError,
)
from volumehost.errors.server import (
    ClusterConfigError,
    ForbiddenError,
    KindNotServedError,
    ServerFailedError,
    ServerTimeoutError,
    ServerUnreachableError,
    TooManyRequestsError,
    UnauthorizedError,
)

__all__ = [  # noqa: RUF022 (in the order in which the reference tells them)
    "VolumeHostError",
    "SpecError",
    "PluginError",
    "InvalidPluginNameError",
    "DuplicatePluginError",
    "PluginDeniedError",
    "PluginIncompatibleError",
    "PluginImportError",
    "PluginContractError",
    "PluginInitError",
    "PluginCallError",
    "HookNotImplementedError",
    "PluginLookupError",
    "NoPluginMatchedError",
    "PluginNotFoundError",
    "MultiplePluginsMatchedError",
    "CapabilityMissingError",
    "NotAvailableOnHostError",
    "MissingPrivilegeError",
    "UnsafePathError",
    "SELinuxLabelError",
    "OwnershipError",
    "PayloadError",
    "RemovalError",
    "RootDirectoryError",
    "RootDirectoryLockedError",
    "AgentGoneError",
    "ContainerRuntimeError",
    "MountError",
    "MountTimeoutError",
    "UnmountError",
    "UnmountTimeoutError",
    "StillMountedError",
    "CorruptedMountError",
    "InconsistentMountTableError",
    "FormatError",
    "MetricsError",
    "NotSupportedMetricsError",
    "NoPathMetricsError",
    "FsInfoMetricsError",
    "QuantityError",
    "ApiError",
    "ManifestError",
    "InvalidObjectError",
    "UnknownKindError",
    "ObjectNotFoundError",
    "AlreadyExistsError",
    "ConflictError",
    "GoneError",
    "StoreError",
    "ClusterConfigError",
    "ServerUnreachableError",
    "ServerTimeoutError",
    "UnauthorizedError",
    "ForbiddenError",
    "KindNotServedError",
    "ServerFailedError",
    "TooManyRequestsError",
    "OperationError",
    "TransientOperationError",
    "UncertainProgressError",
    "OperationStoppedError",
    "FailedPreconditionError",
    "InfeasibleError",
    "OperationNotSupportedError",
    "DeletedVolumeInUseError",
    "StorageDriverError",
    "StorageDriverUncertainError",
    "StorageDriverUnavailableError",
    "StorageDriverPreconditionError",
    "StorageDriverInfeasibleError",
    "StorageDriverUnsupportedError",
    "AlreadyRunningError",
    "BackoffError",
    "WaitTimeoutError",
    "VolumesFailedError",
    "error_chain",
    "is_uncertain_progress_error",
    "is_operation_finished_error",
    "is_infeasible_error",
]

# They are one vocabulary: tracebacks, pickles and the reference name this module, wherever a class is written.
for _name in __all__:
    globals()[_name].__module__ = __name__
