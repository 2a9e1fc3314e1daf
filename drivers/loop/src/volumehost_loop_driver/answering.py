"""From the driver's own errors to those of the kit, which carry gRPC codes; and how long a call may wait."""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from volumehost.errors import MountError, MountTimeoutError, UnmountTimeoutError, VolumeHostError
from volumehost_csi_kit import server
from volumehost_loop_driver.errors import DriverError
from volumehost_loop_driver.state import WAIT_SECONDS

if TYPE_CHECKING:
    import grpc

#: Kept from the caller's deadline, in seconds, so that the answer still reaches it.
_MARGIN_SECONDS: Final = 0.2
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_BY_CODE: Final = {
    kind.code.name: kind
    for kind in (
        server.AbortedError,
        server.AlreadyExistsError,
        server.FailedPreconditionError,
        server.InternalError,
        server.NotFoundError,
        server.OutOfRangeError,
        server.ResourceExhaustedError,
    )
} | {"INVALID_ARGUMENT": server.InvalidArgumentError}

Q = TypeVar("Q")
A = TypeVar("A")


def answering(method: Callable[[Any, Q, grpc.ServicerContext], A]) -> Callable[[Any, Q, grpc.ServicerContext], A]:
    """Let a method of a service raise the driver's own errors."""

    @functools.wraps(method)
    def answered(service: Any, request: Q, context: grpc.ServicerContext) -> A:
        try:
            return method(service, request, context)
        except (VolumeHostError, OSError) as error:
            raise translated(error) from error

    return answered


def translated(error: VolumeHostError | OSError) -> server.CsiError:
    """The error as the caller gets it (CSI-WIRE-19)."""
    if isinstance(error, DriverError):
        return _BY_CODE[error.code](str(error))
    number = error.errno if isinstance(error, (MountError, OSError)) else None
    if number in _NO_SPACE:
        return server.ResourceExhaustedError(f"no space is left on the disk: {error}")
    if number == errno.EFBIG:
        return server.OutOfRangeError(f"no file can be that large on the disk: {error}")
    if isinstance(error, (MountTimeoutError, UnmountTimeoutError)):
        return server.DeadlineExceededError(str(error))
    return server.InternalError(str(error))


def time_left(context: grpc.ServicerContext) -> float:
    """Seconds that the call may wait for another one."""
    remaining = context.time_remaining()
    if remaining is None:  # the caller has set no deadline
        return WAIT_SECONDS
    return max(0.0, min(WAIT_SECONDS, remaining - _MARGIN_SECONDS))
