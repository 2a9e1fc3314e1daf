"""What a failed CSI call means: every RPC of this distribution that fails is turned into an error here.

The kind of the error decides what becomes of a volume's state (CSI-ERR-01 to -05); code and message stay on it
(CSI-ERR-08, improved). What the driver said is shown without the secrets that were sent to it (BR-74).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from volumehost.errors import (
    StorageDriverError,
    StorageDriverInfeasibleError,
    StorageDriverPreconditionError,
    StorageDriverUncertainError,
    StorageDriverUnsupportedError,
)

#: Codes after which the driver may still be at it, or have done it (CSI-ERR-04).
UNCERTAIN_CODES: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"})

#: Codes with which a driver refuses an expansion or a modification for good (CSI-ERR-16).
INFEASIBLE_CODES: Final = frozenset({"INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND"})

#: What grpc says, with INTERNAL, of a reply that it could not read: the driver did answer, so the work may be done.
_UNREADABLE_REPLY: Final = "Exception deserializing response!"

_HINTS: Final = {
    "UNAVAILABLE": "see whether it runs: volumehost drivers show {driver}",
    "DEADLINE_EXCEEDED": "the driver may still be at it; the call is repeated or undone later",
    "ABORTED": "another call for the volume is pending in the driver; this one is repeated later",
    "RESOURCE_EXHAUSTED": "the driver or its storage is at a limit; the call is repeated later",
}


#: How many secret values are remembered of those that a driver was sent, and how long one has to be for that:
#: short ones would be found in many a text.
_REMEMBERED: Final = 256
_SHORTEST: Final = 6


class RecentSecrets:
    """The secret values that a driver was sent last. Safe for threads.

    A driver may repeat at unstaging what it was sent for staging, when nothing secret is sent along (BR-74).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}

    def remember(self, values: Iterable[str]) -> None:
        """These were sent just now."""
        with self._lock:
            for value in values:
                if len(value) >= _SHORTEST:
                    self._values.pop(value, None)
                    self._values[value] = None
            while len(self._values) > _REMEMBERED:
                del self._values[next(iter(self._values))]

    def values(self) -> list[str]:
        """All that are remembered."""
        with self._lock:
            return list(self._values)


def rpc_failure(
    error: BaseException,
    *,
    driver: str,
    call: str,
    action: str,
    subject: str = "",
    secrets: Iterable[str] = (),
    expansion: bool = False,
) -> StorageDriverError:
    """The error to raise instead of what a call raised; raise it ``from None``: what grpc says repeats the message.

    :param call: the RPC's name, ``NodeStageVolume``.
    :param action: what was being done, to what: ``staging volume vol-1 at /...``.
    :param secrets: values that were sent along and must not be shown if the driver repeats them.
    :param expansion: the call expands or modifies, so that refusals have kinds of their own (CSI-EXP-09, -10).
    """
    code = status_code(error)
    said = _details(error) if code else f"{type(error).__name__}: {error}"
    message = without_secrets(said, secrets)
    kind = _kind(code, said, expansion=expansion)
    shown = f"{code}: {message}" if code and message else code or message
    return kind(
        f"the CSI driver {driver} failed {call} with {shown}" if code else f"the call {call} failed: {shown}",
        driver=driver,
        call=call,
        code=code,
        driver_message=message,
        action=action,
        subject=subject,
        hint=_HINTS.get(code, "").format(driver=driver),
    )


def status_code(error: BaseException) -> str:
    """The gRPC code's name in upper case (``INTERNAL``), "" when the error carries none."""
    code = getattr(error, "code", None)
    name = getattr(code() if callable(code) else code, "name", "")
    return name if isinstance(name, str) else ""


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with every one of the values masked, and what looks like a password."""
    from volumehost_csi_kit import redaction

    return str(redaction.strip(text, secrets))


def _details(error: BaseException) -> str:
    details = getattr(error, "details", None)
    said = details() if callable(details) else details
    return str(said or "").strip()


def _kind(code: str, said: str, *, expansion: bool) -> type[StorageDriverError]:
    # Without a code nothing is known, not even about an earlier attempt (CSI-ERR-05).
    if not code or code in UNCERTAIN_CODES or (code == "INTERNAL" and said == _UNREADABLE_REPLY):
        return StorageDriverUncertainError
    if code == "UNIMPLEMENTED":
        return StorageDriverUnsupportedError
    if expansion and code == "FAILED_PRECONDITION":
        return StorageDriverPreconditionError
    if expansion and code in INFEASIBLE_CODES:
        return StorageDriverInfeasibleError
    return StorageDriverError
