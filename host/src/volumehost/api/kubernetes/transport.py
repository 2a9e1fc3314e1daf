"""HTTP to the API server over the ``kubernetes`` client's REST layer. The one module that imports it.

Its generated models and its retries are left alone: bytes go in and out, and each call here is one request.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from volumehost._version import __version__
from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.api.kubernetes.connection_errors import connection_error
from volumehost.api.kubernetes.material import Material, MaterialFile
from volumehost.errors import ClusterConfigError

if TYPE_CHECKING:
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
    """What came back, whatever the status; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


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
        self._files: tuple[MaterialFile, ...] = ()
        self._version: tuple[object, ...] = ()
        _check_materials(config)

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
        return Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, body)

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
        from urllib3 import Timeout

        headers = {
            "Accept": "application/json",
            "User-Agent": f"volumehost/{__version__}",
            **self.config.headers,
            **credentials,
        }
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
                self._files = tuple(MaterialFile(material) for material in (config.authority, certificate, key))
                self._rest = _rest_client(config, self._files)
                self._version = version
            return self._rest


def _rest_client(config: ClusterConfig, files: tuple[MaterialFile, ...]) -> RESTClientObject:
    from kubernetes.client import Configuration
    from kubernetes.client.rest import RESTClientObject

    authority, certificate, key = (file.name or None for file in files)
    settings: dict[str, Any] = {"proxy": config.proxy_url} if config.proxy_url else {}
    configuration = Configuration(
        host=config.server,
        ssl_ca_cert=authority,
        cert_file=certificate,
        key_file=key,
        verify_ssl=config.verify,
        tls_server_name=config.server_name or None,
        connection_pool_maxsize=_POOL_SIZE,
        **settings,
    )
    configuration.keep_alive = True
    proxy = configuration.proxy
    if proxy and (user := urlsplit(proxy)).username:
        from urllib3.util import make_headers

        configuration.proxy_headers = make_headers(proxy_basic_auth=f"{user.username}:{user.password or ''}")
    try:
        rest = RESTClientObject(configuration)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a proxy's URL
        raise ClusterConfigError(
            f"the proxy cannot be used ({type(error).__name__})",
            action=f"use {config.origin}",
            hint="check proxy-url, and HTTPS_PROXY in the environment; socks needs PySocks",
        ) from None
    if not config.verify:
        # Whoever wrote insecure-skip-tls-verify knows; a warning with each request helps nobody.
        _silence_insecure_warnings()
    return rest


def _silence_insecure_warnings() -> None:
    import urllib3

    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


def _check_materials(config: ClusterConfig) -> None:
    """Say what is wrong with certificates before the first request does so in OpenSSL's words."""
    if not config.encrypted:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.authority:
        file = MaterialFile(config.authority)
        try:
            context.load_verify_locations(cafile=file.name)
        except (OSError, ssl.SSLError) as error:
            raise _unusable(config, "certificate authority", config.authority, error) from None
    if config.certificate:
        certificate, key = MaterialFile(config.certificate), MaterialFile(config.key)
        try:
            context.load_cert_chain(certificate.name, key.name, password=lambda: "")
        except (OSError, ssl.SSLError) as error:
            raise _unusable(config, "client certificate and key", config.certificate, error) from None


def _unusable(config: ClusterConfig, what: str, material: Material, error: OSError) -> ClusterConfigError:
    where = material.path or "given inline"
    reason = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or type(error).__name__)
    if isinstance(error, ssl.SSLError):
        reason = f"not usable PEM ({error.reason or 'no certificate in it'})"
    return ClusterConfigError(
        f"the {what} ({where}): {reason}",
        action=f"use {config.origin}",
        subject=config.origin,
        hint="the key must not be encrypted and must belong to the certificate" if "client" in what else "",
    )
