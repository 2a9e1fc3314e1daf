"""Why a request got no answer, in words, from what urllib3 and the system raise. Used by ``transport``."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.errors import ServerTimeoutError, ServerUnreachableError, VolumeHostError


def connection_error(error: Exception, config: ClusterConfig, action: str = "") -> VolumeHostError:
    """The error to raise in its place; those of this project stay as they are."""
    if isinstance(error, VolumeHostError):
        return error
    causes = list(_causes(error))
    action = f"{action or 'ask'} at {config.server}"
    names = {type(cause).__name__ for cause in causes}
    if any(isinstance(cause, TimeoutError) for cause in causes) or names & {"ReadTimeoutError", "ConnectTimeoutError"}:
        what = "it did not answer in time" if "ConnectTimeoutError" not in names else "no connection in time"
        return ServerTimeoutError(what, action=action, subject=config.server, hint=_hint(config))
    certificate = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        return ServerUnreachableError(
            f"its certificate is not accepted: {certificate.verify_message}",
            action=action,
            subject=config.server,
            hint=f"check certificate-authority and tls-server-name of {config.origin}, and the clock",
        )
    return ServerUnreachableError(_reason(causes), action=action, subject=config.server, hint=_hint(config))


def _reason(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"its name cannot be resolved ({cause.strerror})"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason or 'the connection broke'})"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    names = {type(cause).__name__ for cause in causes}
    if names & {"IncompleteRead", "ProtocolError", "RemoteDisconnected", "BadStatusLine", "InvalidChunkLength"}:
        return "the connection broke"
    return f"the connection failed ({type(causes[0]).__name__})"


def _hint(config: ClusterConfig) -> str:
    return f"configured by {config.origin}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        one = pending.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [each for each in (*one.args, one.__cause__, one.__context__) if isinstance(each, BaseException)]
        reason = getattr(one, "reason", None)
        if isinstance(reason, BaseException):
            pending.append(reason)
