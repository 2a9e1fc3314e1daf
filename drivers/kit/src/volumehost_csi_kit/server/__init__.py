"""The kit to write a CSI driver with: plain objects with a method for each call, and ``serve(driver)``.

Everything else comes with it: checked requests, declared capabilities, one call at a time for each volume, errors as
gRPC codes, a log without secrets, health while all workers are busy, registration, an orderly end.
"""

from __future__ import annotations

from volumehost_csi_kit.server.capabilities import DriverDefinitionError
from volumehost_csi_kit.server.driver import Driver
from volumehost_csi_kit.server.errors import (
    AbortedError,
    AlreadyExistsError,
    CsiError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from volumehost_csi_kit.server.idempotency import chosen_size, fingerprint, fits
from volumehost_csi_kit.server.main import Options, serve
from volumehost_csi_kit.server.registration import RegistrationServer
from volumehost_csi_kit.server.serving import CsiServer
from volumehost_csi_kit.server.volume_locks import VolumeLocks

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CsiError",
    "CsiServer",
    "DeadlineExceededError",
    "Driver",
    "DriverDefinitionError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "Options",
    "OutOfRangeError",
    "PermissionDeniedError",
    "RegistrationServer",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "VolumeLocks",
    "chosen_size",
    "fingerprint",
    "fits",
    "serve",
]
