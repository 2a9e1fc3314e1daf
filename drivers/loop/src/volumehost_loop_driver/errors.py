"""What the driver's own rules refuse; the service answers each with the gRPC code that its class names.

Everything below the service raises from here or from ``volumehost.errors``, and knows nothing of gRPC.
"""

from __future__ import annotations

from typing import ClassVar

from volumehost.errors import VolumeHostError


class DriverError(VolumeHostError):
    """Base of these errors; ``code`` is the name of a gRPC status code (CSI-WIRE-19)."""

    code: ClassVar[str] = "INTERNAL"


class InvalidArgumentError(DriverError):
    """A field of the request can never be right, whatever the state of the volume."""

    code = "INVALID_ARGUMENT"


class NotFoundError(DriverError):
    """No such volume, snapshot, node or path."""

    code = "NOT_FOUND"


class AlreadyExistsError(DriverError):
    """It is there under this name, but differs from what is asked for."""

    code = "ALREADY_EXISTS"


class OutOfRangeError(DriverError):
    """No size satisfies the request."""

    code = "OUT_OF_RANGE"


class ResourceExhaustedError(DriverError):
    """No space is left: on the disk, or of the capacity that the driver was given."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(DriverError):
    """The volume is in a state that forbids it; another call has to come first."""

    code = "FAILED_PRECONDITION"


class AbortedError(DriverError):
    """Another call works on the same thing, or a paging token is not ours: start over."""

    code = "ABORTED"
