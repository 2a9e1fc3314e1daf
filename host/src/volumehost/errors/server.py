"""Errors about a Kubernetes API server: it cannot be found, reached or used. Whoever only wants to try again later
catches StoreError, which all of them are.
"""

from __future__ import annotations

from volumehost.errors.objects import StoreError


class ClusterConfigError(StoreError):
    """The configuration for a cluster cannot be used; names the file, the context and what to do, never a secret."""


class ServerUnreachableError(StoreError):
    """No connection to the API server, or it broke: whether a write arrived is not known."""


class ServerTimeoutError(ServerUnreachableError):
    """The API server, or what is behind it, did not answer in time: whether a write arrived is not known.

    ``retry_after`` in seconds, 0 where it does not say when to ask again.
    """

    retry_after = 0.0


class UnauthorizedError(StoreError):
    """The API server does not accept the credentials, also after they were fetched anew."""


class ForbiddenError(StoreError):
    """The caller may not do that: ``verb``, ``resource`` (``pods/status``) and, where the server tells it, ``user``."""

    verb = ""
    resource = ""
    user = ""


class KindNotServedError(StoreError):
    """The server has no such resource: its definition is not installed, or it has other versions, or is none."""


class ServerFailedError(StoreError):
    """The API server answered with an error of its own; ``status`` is the HTTP status."""

    status = 0


class TooManyRequestsError(ServerFailedError):
    """The API server asks for patience (429, 503); ``retry_after`` in seconds, 0 where it does not say how long."""

    retry_after = 0.0
