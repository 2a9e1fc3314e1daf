"""ApiServer: starts, stops and steers a fake Kubernetes API server within the test's own process."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from volumehost.testing.api_server.access import Access, Denial
from volumehost.testing.api_server.api import Api
from volumehost.testing.api_server.certificates import Certificates
from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.connections import Listener
from volumehost.testing.api_server.failures import StatusError
from volumehost.testing.api_server.faults import Faults
from volumehost.testing.api_server.housekeeping import (
    Housekeeping,
    collect_garbage,
    end_namespaces,
    keep_accounts,
    protect_storage,
)
from volumehost.testing.api_server.kubeconfig import write_kubeconfig
from volumehost.testing.api_server.objects import Objects
from volumehost.testing.api_server.ownership import Ownership
from volumehost.testing.api_server.recording import Requests
from volumehost.testing.api_server.users import Users, user_of
from volumehost.testing.api_server.watching import Watches

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class ApiServer:
    """A Kubernetes API server in memory, on a port of the loopback interface.

    ``objects`` is what it holds, ``requests`` what it was asked, ``faults`` what goes wrong.

    :param port: 0 for a free one.
    :param rbac: enforce the Role, ClusterRole and binding objects that it holds; the group ``system:masters`` may do
        everything. Otherwise everybody who is known may do everything but what :meth:`deny` says.
    :param tls: serve HTTPS, with an authority made for the run (needs the program ``openssl``).
    :param history: how many changes are remembered for watches and continued lists; older versions are gone (410).
    :param seed: of the order in which lists come and of generated names.
    :param bookmark_seconds: how often watches that ask for them get bookmarks.
    :param patience: how long a read waits for a version that is not there yet, in seconds.
    :param garbage_collector: delete objects whose owners do not exist (any more), and what is in namespaces that are to
        go, as the garbage collector and the namespace controller do.
    :param protection: let go of claims and volumes to be deleted that nothing uses, as the protection controllers do.
    :param service_accounts: as in a cluster, each namespace has the service account ``default`` and the configMap
        ``kube-root-ca.crt``, and a pod gets a volume with a token unless it says otherwise.
    :param managed_fields: objects show who owns which of their fields, as a real server's do; whether they do or not,
        server-side apply knows it.
    :param clock: seconds since the epoch, as this server sees it.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        rbac: bool = False,
        tls: bool = False,
        history: int = 10_000,
        seed: int = 0,
        bookmark_seconds: float = 60.0,
        patience: float = 3.0,
        garbage_collector: bool = False,
        protection: bool = False,
        service_accounts: bool = False,
        managed_fields: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = Cluster(
            history=history, seed=seed, clock=clock, patience=patience, service_accounts=service_accounts
        )
        self._users = Users(self._cluster)
        self._access = Access(self._cluster, rbac=rbac)
        self._watches = Watches(self._cluster, bookmark_seconds)
        self.faults = Faults()
        self.requests = Requests()
        self.objects = Objects(self._cluster)
        self._api = Api(
            self._cluster,
            self._users,
            self._access,
            self._watches,
            self.faults,
            self.requests,
            Ownership(shown=managed_fields),
        )
        self._listener = Listener(port, self._api.answer, self._cluster.storage.wake)
        self._tls = tls
        self._certificates: Certificates | None = None
        self._resources = contextlib.ExitStack()
        for name in _NAMESPACES:
            self._cluster.make_namespace(name)
        jobs = (
            (garbage_collector, collect_garbage),
            (garbage_collector, end_namespaces),
            (protection, protect_storage),
            (service_accounts, keep_accounts),
        )
        wanted = [job for is_wanted, job in jobs if is_wanted]
        if service_accounts:
            keep_accounts(self._cluster)
        self._housekeeping = Housekeeping(self._cluster, wanted)

    def __enter__(self) -> Self:
        if self._tls:
            self._certificates = Certificates(self._resources.enter_context(tempfile.TemporaryDirectory()))
            self._cluster.authority = self._certificates.authority.decode()
            self._listener.context = self._certificates.server_context()
        self._listener.start()
        self._housekeeping.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.stopping.set()
        self._cluster.storage.wake()
        self._listener.stop()
        self._housekeeping.join()
        self._resources.close()

    def __repr__(self) -> str:
        return f"<ApiServer {self.url}>"

    @property
    def url(self) -> str:
        """``http://127.0.0.1:<port>``, with ``https`` where TLS is wanted."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.port}"

    @property
    def authority(self) -> bytes:
        """The certificate in PEM by which a server with TLS is known; empty without."""
        return b"" if self._certificates is None else self._certificates.authority

    # --- users --------------------------------------------------------------------------------------------------

    def token(self, user: str = "admin", groups: Sequence[str] | None = None) -> str:
        """A bearer token by which requests are the user's; ``admin`` is in ``system:masters`` unless told otherwise."""
        return self._users.token(user, groups)

    def revoke(self, user: str) -> None:
        """Every token of the user is refused from now on (401), as expired credentials are."""
        self._users.revoke(user)

    def kubeconfig(
        self,
        path: str | os.PathLike[str],
        *,
        user: str = "admin",
        groups: Sequence[str] | None = None,
        namespace: str = "",
        certificate: bool = False,
    ) -> str:
        """Write a kubeconfig file for the user, with one context called ``test``; returns its path.

        :param certificate: the user shows a certificate, not a token; for a running server with TLS.
        """
        write = functools.partial(
            write_kubeconfig, path, url=self.url, user=user, namespace=namespace, authority=self.authority
        )
        if not certificate:
            return write(token=self.token(user, groups))
        if self._certificates is None:
            raise ValueError("certificates are for a running server with tls=True")
        known = user_of(user, groups)
        return write(certificate=self._certificates.user(known.name, known.groups))

    def deny(
        self, *, user: str = "*", verb: str = "*", resource: str = "*", namespace: str = "*"
    ) -> AbstractContextManager[object]:
        """Refuse such requests (403), for good or, as a context manager, until its end."""
        denial = Denial(user, verb, resource, namespace)
        self._access.deny(denial)
        undone = contextlib.ExitStack()
        undone.callback(self._access.permit, denial)
        return undone

    # --- the network --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Connections are reset and new ones refused until the end of the block; then the same port serves again."""
        self._listener.pause()
        try:
            yield
        finally:
            self._listener.start()

    def reset_connections(self) -> None:
        """Reset every connection that there is; new ones are taken."""
        self._listener.reset_connections()

    @contextlib.contextmanager
    def lagging(self) -> Iterator[None]:
        """Caches stay behind until the end of the block, as those of a busy server do.

        Watches tell nothing new, reads of version "0" give what was there, reads of a version that came since time out.
        Other reads and writes go on.
        """
        self._cluster.lag = self._cluster.storage.revision
        try:
            yield
        finally:
            self._cluster.lag = None
            self._cluster.storage.wake()

    # --- watches ------------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Forget all changes so far: watches and continued lists from before get 410."""
        self._cluster.storage.compact()

    def open_watches(self, resource: str = "*") -> int:
        """How many watches of the resource there are now."""
        return self._watches.count(resource)

    def close_watches(self, resource: str = "*") -> None:
        """End the watches of the resource in good order, as a server does when their time is over."""
        self._watches.order(resource, "close")

    def send_bookmarks(self) -> None:
        """Send a bookmark to every watch that asked for them, now."""
        self._watches.order("*", "bookmark")

    def send_error(self, resource: str = "*", code: int = 410) -> None:
        """Send an ERROR event to the watches of the resource and end them."""
        self._watches.order(resource, StatusError(code, "scripted"))

    # --- what happens in a cluster ------------------------------------------------------------------------------

    def recreate(self, resource: str, name: str, namespace: str = "") -> dict[str, Any]:
        """Delete the object, finalizers or not, and make it again under a new uid; returns the new one."""
        document = self.objects.delete(resource, name, namespace)
        for field in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation"):
            document["metadata"].pop(field, None)
        return self.objects.put(document)

    def collect_garbage(self) -> int:
        """Delete objects all of whose owners are gone, once; returns how many."""
        return collect_garbage(self._cluster)
