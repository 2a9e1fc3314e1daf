"""Failure: an answer that is an error, with the Status body that Kubernetes writes for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from volumehost.testing.api_server.resources import Resource

#: The reason that Kubernetes gives for a code when nothing more is known.
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class StatusError(Exception):
    """An error that the client is told, as a metav1.Status."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        token: str = "",
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS.get(code, "")
        self.details = dict(details or {})
        self.token = token
        self.retry_after = retry_after

    def status(self) -> dict[str, Any]:
        """The Status object."""
        details = self.details | ({} if self.retry_after is None else {"retryAfterSeconds": self.retry_after})
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.token} if self.token else {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": details} if details else {}),
            "code": self.code,
        }


def _about(resource: Resource, name: str, **more: Any) -> dict[str, Any]:
    group = {"group": resource.group} if resource.group else {}
    return ({"name": name} if name else {}) | group | {"kind": resource.plural} | more


def not_found(resource: Resource, name: str) -> StatusError:
    """There is no such object."""
    return StatusError(404, f'{resource.qualified} "{name}" not found', details=_about(resource, name))


def already_exists(resource: Resource, name: str) -> StatusError:
    """There is such an object."""
    return StatusError(
        409,
        f'{resource.qualified} "{name}" already exists',
        reason="AlreadyExists",
        details=_about(resource, name),
    )


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> StatusError:
    """The object is not as the request supposes."""
    return StatusError(
        409,
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}',
        details=_about(resource, name),
    )


def forbidden(resource: Resource, name: str, why: str) -> StatusError:
    """Somebody, or an admission check, does not allow it."""
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    return StatusError(403, f"{subject} is forbidden: {why}", details=_about(resource, name))


def invalid(resource: Resource, name: str, problems: Sequence[tuple[str, str]]) -> StatusError:
    """The object breaks rules; ``problems`` are field paths and messages that start with a kind of error."""
    causes = [{"reason": _cause(text), "message": text, "field": path} for path, text in problems]
    told = [f"{path}: {text}" for path, text in problems]
    shown = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return StatusError(
        422,
        f'{kind} "{name}" is invalid: {shown}',
        details=_about(resource, name, causes=causes) | {"kind": resource.kind},
    )


def bad_request(message: str) -> StatusError:
    """The request cannot be understood."""
    return StatusError(400, message)


def no_such_path() -> StatusError:
    """Nothing is served there."""
    return StatusError(404, "the server could not find the requested resource", details={})


def not_allowed() -> StatusError:
    """The verb is none of the resource's."""
    return StatusError(405, "the server does not allow this method on the requested resource")


def expired(message: str, *, token: str = "") -> StatusError:
    """The version asked for is no longer known."""
    return StatusError(410, message, token=token)


_CAUSES = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
    "Too long": "FieldValueTooLong",
}


def _cause(text: str) -> str:
    return next((reason for start, reason in _CAUSES.items() if text.startswith(start)), "FieldValueInvalid")
