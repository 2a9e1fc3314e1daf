"""From what an API server answers to the error to raise: HTTP status and Status object to ``volumehost.errors``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from volumehost.api.kubernetes.asking import Asked
from volumehost.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidObjectError,
    KindNotServedError,
    ObjectNotFoundError,
    ServerFailedError,
    ServerTimeoutError,
    TooManyRequestsError,
    UnauthorizedError,
)

_USER = re.compile(r'User "([^"]*)" cannot')
_LONGEST_MESSAGE = 1000
#: Of a Status within a watch the reason counts more than the code.
_CODES = {"Expired": 410, "Gone": 410}


class Cause(msgspec.Struct):
    """One reason; of an invalid object the field and what is wrong with it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, rename="camel"):
    """What it is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct):
    """What the API answers where it has no object to give."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


_DECODER = msgspec.json.Decoder(Status)


def read_status(body: bytes | msgspec.Raw) -> Status | None:
    """The Status that a body is, None when it is something else."""
    try:
        status = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


def error_of(
    asked: Asked, server: str, code: int, body: bytes | msgspec.Raw, headers: Mapping[str, str] | None = None
) -> ApiError:
    """The error for an answer that is none of success. ``code`` 0: only the Status tells (within a watch)."""
    status = read_status(body) or Status()
    code = code or _CODES.get(status.reason) or status.code or 500
    if code == 500 and status.reason == "ServerTimeout":
        code = 504  # so Kubernetes says that its database did not answer
    action, subject = f"{asked.action} at {server}", asked.subject
    message = status.message[:_LONGEST_MESSAGE] or f"HTTP {code} without a word of explanation"
    match code:
        case 400 | 413 | 422:
            return InvalidObjectError(subject=subject, problems=_problems(status, message), action=action)
        case 401:
            return UnauthorizedError(
                "the server does not accept the credentials",
                action=action,
                subject=server,
                hint="they may have expired: check the kubeconfig's user, and this machine's clock",
            )
        case 403:
            return _forbidden(asked, action, message)
        case 404:
            return _not_found(asked, action, status)
        case 409:
            return _conflict(asked, action, status, message)
        case 410:
            return GoneError(message, action=action, subject=subject, hint="list again and watch from there")
        case 429 | 503:
            busy = TooManyRequestsError(message, action=action, subject=server, hint="it is asked again later")
            busy.status, busy.retry_after = code, _retry_after(status, headers or {})
            return busy
        case 504:
            late = ServerTimeoutError(message, action=action, subject=server)
            late.retry_after = _retry_after(status, headers or {})
            return late
        case _:
            failed = ServerFailedError(message, action=action, subject=server)
            failed.status = code
            return failed


def _problems(status: Status, message: str) -> list[tuple[str, str]]:
    causes = (status.details.causes if status.details is not None else None) or []
    return [(cause.field or "$", cause.message) for cause in causes if cause.message] or [("$", message)]


def _forbidden(asked: Asked, action: str, message: str) -> ApiError:
    user = _USER.search(message)
    # Without the pattern it is not a missing permission: a quota, or a namespace that is going.
    error = ForbiddenError(
        message,
        action=action,
        subject=asked.subject,
        hint="'volumehost rbac' prints the permissions that are needed" if user else "",
    )
    error.verb, error.resource, error.user = asked.verb, asked.resource, user[1] if user else ""
    return error


def _not_found(asked: Asked, action: str, status: Status) -> ApiError:
    details = status.details
    if status.reason == "NotFound" and details is not None and details.name:
        # A namespace that is not there is told in the same way.
        other = details.kind and details.kind not in {asked.kind.plural, asked.kind.kind, asked.kind.singular}
        subject = f"{details.kind} {details.name}" if other else asked.subject
        return ObjectNotFoundError(f"there is no {subject}", action=action if other else "", subject=subject)
    # No word of an object: to take it for "there is none" would unmount what is in use.
    return KindNotServedError(
        f"the server has no {asked.kind.plural} in {asked.kind.api_version}",
        action=action,
        subject=asked.kind.kind,
        hint="its definition may not be installed, or the server is another version, or no API server at all",
    )


def _conflict(asked: Asked, action: str, status: Status, message: str) -> ApiError:
    if status.reason == "AlreadyExists":
        return AlreadyExistsError(f"{asked.subject} exists already", action=action, subject=asked.subject)
    return ConflictError(message, action=action, subject=asked.subject, hint="read it again and retry")


def _retry_after(status: Status, headers: Mapping[str, str]) -> float:
    # In seconds: a date, which proxies may write, would be as wrong as one of the two clocks.
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:6])
    return float(status.details.retry_after_seconds) if status.details is not None else 0.0
