"""HTTP to the API server over the ``kubernetes`` client's REST layer. The one module that imports it.

Its generated models and its retries are left alone: bytes go in and out, and each call here is one request.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode, urlsplit

from volumehost._version import __version__
from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.api.kubernetes.connection_errors import connection_error
from volumehost.api.kubernetes.tls import tls_context
from volumehost.errors import ClusterConfigError

if TYPE_CHECKING:
    import ssl

    from kubernetes.client.rest import RESTClientObject
    from urllib3 import BaseHTTPResponse

#: Seconds: for a connection, and for the next bytes of an answer.
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
#: Idle connections that are kept.
_POOL_SIZE = 32


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``query`` values are text, ``action`` says in messages what it is for."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    action: str = ""

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever the status; header names in lower case. ``warnings`` are all headers of that name."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    warnings: tuple[str, ...] = ()


class Transport:
    """Connections to one server. Certificates that are replaced in their files are used from then on.

    :raises ClusterConfigError: certificates cannot be used.
    """

    def __init__(
        self, config: ClusterConfig, *, connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS
    ) -> None:
        self.config = config
        self.connect_seconds = connect_seconds
        self.read_seconds = read_seconds
        self._lock = threading.Lock()
        self._rest: RESTClientObject | None = None
        self._version: tuple[object, ...] = ()
        if config.encrypted:
            tls_context(config, config.certificate, config.key)

    @property
    def headers(self) -> dict[str, str]:
        """Those that every request has: who asks.

        :raises ClusterConfigError: there are no credentials to be had.
        """
        return self.config.credentials.headers()

    def send(self, request: Request, credentials: Mapping[str, str], *, read_seconds: float | None = None) -> Answer:
        """Send a request and read the whole answer.

        :raises ServerUnreachableError: no connection, or it broke; ServerTimeoutError: no answer in time.
        """
        try:
            response = self._open(request, credentials, read_seconds or self.read_seconds)
            try:
                body = response.read(decode_content=True)
            except BaseException:
                response.close()
                raise
            response.release_conn()
        except Exception as error:
            raise connection_error(error, self.config, request.action) from error
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, headers, body, tuple(response.headers.getlist("warning")))

    def stream(
        self, request: Request, credentials: Mapping[str, str], *, read_seconds: float | None = None
    ) -> BaseHTTPResponse:
        """Send a request; the answer's body is still to be read, by urllib3's rules.

        :raises ServerUnreachableError: as above.
        """
        try:
            return self._open(request, credentials, read_seconds or self.read_seconds)
        except Exception as error:
            raise connection_error(error, self.config, request.action) from error

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            if self._rest is not None:
                self._rest.close()
            self._rest, self._version = None, ()

    def _open(self, request: Request, credentials: Mapping[str, str], read_seconds: float) -> BaseHTTPResponse:
        from urllib3 import HTTPHeaderDict, Timeout

        headers = HTTPHeaderDict({"Accept": "application/json", "User-Agent": f"volumehost/{__version__}"})
        for name, value in (*self.config.headers, *credentials.items()):
            headers.add(name, value)
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return self._pools().pool_manager.urlopen(
            request.method,
            self.config.server + request.target,
            body=request.body,
            headers=headers,
            timeout=Timeout(connect=self.connect_seconds, read=read_seconds),
            preload_content=False,
            retries=False,
            redirect=False,
        )

    def _pools(self) -> RESTClientObject:
        config = self.config
        certificate, key = config.credentials.certificate() or (config.certificate, config.key)
        version = (config.authority.version, certificate.version, key.version)
        with self._lock:
            if self._rest is None or version != self._version:
                try:
                    context = tls_context(config, certificate, key) if config.encrypted else None
                except ClusterConfigError:
                    # Of files that are being replaced one may be new and the other not: the next request looks again.
                    if self._rest is None:
                        raise
                    return self._rest
                self._rest = _rest_client(config, context)
                self._version = version
            return self._rest


def _rest_client(config: ClusterConfig, context: ssl.SSLContext | None) -> RESTClientObject:
    from kubernetes.client import Configuration
    from kubernetes.client.rest import RESTClientObject

    # What stands in a kubeconfig counts, whatever the environment says. None: the environment decides.
    settings: dict[str, Any] = {"proxy": config.proxy_url, "no_proxy": ""} if config.proxy_url else {}
    configuration = Configuration(
        host=config.server,
        verify_ssl=config.verify,
        tls_server_name=config.server_name or None,
        connection_pool_maxsize=_POOL_SIZE,
        **settings,
    )
    configuration.keep_alive = True
    proxy = configuration.proxy
    if proxy and not config.proxy_url:
        proxy = None if _is_this_machine(config.server) else proxy if "://" in proxy else f"http://{proxy}"
        configuration.proxy = proxy
    if proxy and (user := urlsplit(proxy)).username:
        from urllib3.util import make_headers

        name, password = unquote(user.username), unquote(user.password or "")
        configuration.proxy_headers = make_headers(proxy_basic_auth=f"{name}:{password}")
    try:
        rest = RESTClientObject(configuration)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a proxy's URL
        raise ClusterConfigError(
            f"the proxy cannot be used ({type(error).__name__})",
            action=f"use {config.origin}",
            hint="check proxy-url, and HTTPS_PROXY in the environment; socks needs PySocks",
        ) from None
    if context is not None:
        rest.pool_manager.connection_pool_kw["ssl_context"] = context
    if not config.verify:
        # Whoever wrote insecure-skip-tls-verify knows; a warning with each request helps nobody.
        _silence_insecure_warnings()
    return rest


def _is_this_machine(server: str) -> bool:
    """Whether it is one that no proxy of the environment is asked for."""
    host = urlsplit(server).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _silence_insecure_warnings() -> None:
    import urllib3

    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
