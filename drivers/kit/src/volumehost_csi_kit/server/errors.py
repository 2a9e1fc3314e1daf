"""What a driver's methods raise, each with the gRPC code that the caller gets.

::

    CsiError                    any code
    ├── InvalidArgumentError        a field is missing or wrong: the caller must change the request
    ├── NotFoundError               no such volume, snapshot or node
    ├── AlreadyExistsError          there already, but incompatible with the request
    ├── FailedPreconditionError     not in this state: still published elsewhere, not staged
    ├── OutOfRangeError             a size that cannot be had
    ├── ResourceExhaustedError      no space, or the node's limit of volumes is reached
    ├── AbortedError                another call for this volume is pending: try again
    ├── UnavailableError            a backend cannot be reached now: try again
    ├── DeadlineExceededError       the call's time is over
    ├── UnauthenticatedError        bad credentials
    ├── PermissionDeniedError       not with these credentials
    ├── UnimplementedError          never: this driver does not do that
    └── InternalError               everything else

The caller takes CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED and UNAVAILABLE as "may have happened": it
will repeat the call or undo it. With any other code nothing may be left behind (CSI-WIRE-19).
"""

from __future__ import annotations

from typing import ClassVar

import grpc


class CsiError(Exception):
    """A call failed with this gRPC code; the message goes to the caller, without the request's secrets."""

    code: ClassVar[grpc.StatusCode] = grpc.StatusCode.INTERNAL

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class InvalidArgumentError(CsiError):
    """A field is missing or wrong. ``field`` is its name in the request, as ``volume_capability.access_mode``."""

    code = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, message: str, field: str = "") -> None:
        self.field = field
        super().__init__(f"{field}: {message}" if field else message)


class NotFoundError(CsiError):
    """No such volume, snapshot or node."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExistsError(CsiError):
    """There already, but incompatible with the request."""

    code = grpc.StatusCode.ALREADY_EXISTS


class FailedPreconditionError(CsiError):
    """Not in this state: in use, published elsewhere, not staged."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class OutOfRangeError(CsiError):
    """A size that this driver or this volume cannot have."""

    code = grpc.StatusCode.OUT_OF_RANGE


class ResourceExhaustedError(CsiError):
    """No space left, or the node has as many volumes as it can."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class AbortedError(CsiError):
    """Another call for this volume is pending; the caller tries again."""

    code = grpc.StatusCode.ABORTED


class UnavailableError(CsiError):
    """Something that is needed cannot be reached now; the caller tries again."""

    code = grpc.StatusCode.UNAVAILABLE


class DeadlineExceededError(CsiError):
    """The time that the caller gave is over."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class UnauthenticatedError(CsiError):
    """The credentials are missing or wrong."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDeniedError(CsiError):
    """These credentials do not allow it."""

    code = grpc.StatusCode.PERMISSION_DENIED


class UnimplementedError(CsiError):
    """This driver does not do that."""

    code = grpc.StatusCode.UNIMPLEMENTED


class InternalError(CsiError):
    """Everything that has no better code."""
