"""ApiServer: starts, stops and steers a fake Kubernetes API server within the test's own process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from volumehost.testing.api_server.faults import Faults
from volumehost.testing.api_server.objects import Objects
from volumehost.testing.api_server.recording import Requests


class ApiServer:
    """A Kubernetes API server in memory, on a port of the loopback interface.

    :param port: 0 for a free one.
    :param rbac: enforce the Role, ClusterRole and binding objects that it holds; the group ``system:masters`` may do
        everything. Otherwise everybody who is known may do everything but what :meth:`deny` says.
    :param history: how many changes are remembered for watches and continued lists; older versions are gone (410).
    :param seed: of the order in which lists come and of generated names.
    :param bookmark_seconds: how often watches that ask for them get bookmarks.
    :param garbage_collector: delete objects whose owners do not exist (any more), as the garbage collector does.
    :param protection: let go of claims and volumes to be deleted that nothing uses, as the protection controllers do.
    :param service_accounts: as in a cluster, each namespace has the service account ``default`` and the configMap
        ``kube-root-ca.crt``, and a pod gets a volume with a token unless it says otherwise.
    :param clock: seconds since the epoch, as this server sees it.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        rbac: bool = False,
        history: int = 10_000,
        seed: int = 0,
        bookmark_seconds: float = 60.0,
        garbage_collector: bool = False,
        protection: bool = False,
        service_accounts: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.faults = Faults()
        self.requests = Requests()
        self.objects: Objects

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """``http://127.0.0.1:<port>``."""
        raise NotImplementedError

    def token(self, user: str = "admin", groups: Sequence[str] | None = None) -> str:
        """A bearer token by which requests are the user's; ``admin`` is in ``system:masters`` unless told otherwise."""
        raise NotImplementedError

    def revoke(self, user: str) -> None:
        """Every token of the user is refused from now on (401), as expired credentials are."""
        raise NotImplementedError

    def kubeconfig(
        self,
        path: str | os.PathLike[str],
        *,
        user: str = "admin",
        groups: Sequence[str] | None = None,
        namespace: str = "",
    ) -> str:
        """Write a kubeconfig file for the user, with one context called ``test``; returns its path."""
        raise NotImplementedError

    def deny(
        self, *, user: str = "*", verb: str = "*", resource: str = "*", namespace: str = "*"
    ) -> AbstractContextManager[None]:
        """Refuse such requests (403), for good or, as a context manager, until its end."""
        raise NotImplementedError

    def unreachable(self) -> AbstractContextManager[None]:
        """Connections are reset and new ones refused until the end of the block; then the same port serves again."""
        raise NotImplementedError

    def compact(self) -> None:
        """Forget all changes so far: watches and continued lists from before get 410."""
        raise NotImplementedError

    def close_watches(self, resource: str = "*") -> None:
        """End the watches of the resource in good order, as a server does when their time is over."""
        raise NotImplementedError

    def send_bookmarks(self) -> None:
        """Send a bookmark to every watch that asked for them, now."""
        raise NotImplementedError

    def send_error(self, resource: str = "*", code: int = 410) -> None:
        """Send an ERROR event to the watches of the resource and end them."""
        raise NotImplementedError

    def recreate(self, resource: str, name: str, namespace: str = "") -> dict[str, Any]:
        """Delete the object, finalizers or not, and make it again under a new uid; returns the new one."""
        raise NotImplementedError

    def collect_garbage(self) -> int:
        """Delete objects all of whose owners are gone, once; returns how many."""
        raise NotImplementedError
