"""Credential plugins (``users[].user.exec``): programs that print an ExecCredential. Kept until it expires.

The ``kubernetes`` client's own way with them drops errors, waits for ever and runs the program anew for each request.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from volumehost.api.kubernetes.cluster_config import beside
from volumehost.api.kubernetes.credentials import bearer
from volumehost.api.kubernetes.kubeconfig_file import Cluster, ExecConfig
from volumehost.api.kubernetes.material import Material
from volumehost.errors import ClusterConfigError

#: How long a plugin may take, in seconds: it may have to ask somebody far away.
PLUGIN_SECONDS = 60.0
#: The same where it may talk with somebody at a terminal.
_INTERACTIVE_SECONDS = 300.0
#: Credentials are renewed so long before they expire, and used at least so long, whatever the clocks say (seconds).
_EARLY_SECONDS, _AT_LEAST_SECONDS = 10.0, 30.0
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXTENSION = "client.authentication.k8s.io/exec"
_LONG_WORD = re.compile(r"[A-Za-z0-9+/_.=-]{32,}")


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecCredentials:
    """Runs the plugin when credentials are needed, and again when they expire or the server refuses them.

    :param cluster: is told to the plugin where it wants that.
    :param file: the kubeconfig; a command with a slash is relative to it.
    :param cluster_file: the one that the cluster is from, where that is another.
    """

    def __init__(
        self,
        config: ExecConfig,
        cluster: Cluster,
        file: str,
        origin: str,
        *,
        cluster_file: str = "",
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._file = file
        self._cluster_file = cluster_file or file
        self._origin = origin
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._headers: dict[str, str] | None = None
        self._certificate: tuple[Material, Material] | None = None
        self._until: float | None = None
        self._check()

    def headers(self) -> dict[str, str]:
        """The token that the plugin gave, nothing where it gave a certificate. The same object for one run of it."""
        with self._lock:
            if self._headers is None or (self._until is not None and self._clock() >= self._until):
                self._headers = self._run()
            return self._headers

    def refresh(self, refused: dict[str, str]) -> bool:
        """Run the plugin again, unless another thread has done so meanwhile."""
        with self._lock:
            # Not whether they are equal: where the plugin gives certificates all are.
            if self._headers is None or self._headers is refused:
                self._headers = self._run()
            return True

    def certificate(self) -> tuple[Material, Material] | None:
        """The client certificate that the plugin gave last."""
        self.headers()
        return self._certificate

    # --- the plugin ---------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        config = self._config
        if not config.command:
            raise self._wrong("no command is given", "set users[].user.exec.command")
        if config.api_version not in _VERSIONS:
            raise self._wrong(f"apiVersion {config.api_version!r} is not known", f"known: {', '.join(_VERSIONS)}")
        if config.interactive_mode == "Always" and not self._interactive:
            raise self._wrong("it wants to ask somebody, and there is no terminal", "use credentials for programs")

    @property
    def _interactive(self) -> bool:
        return self._config.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()

    def _run(self) -> dict[str, str]:
        status = self._parse(self._output())
        if not status.token and not status.client_certificate_data:
            raise self._wrong("it gave neither a token nor a certificate", "")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._wrong("it gave a certificate without a key, or a key without a certificate", "")
        headers = bearer(status.token, self._origin) if status.token else {}
        until = None
        if status.expiration_timestamp:
            left = self._seconds_left(status.expiration_timestamp)
            until = self._clock() + max(left - _EARLY_SECONDS, _AT_LEAST_SECONDS)
        self._certificate = None
        if status.client_certificate_data and status.client_key_data:
            self._certificate = (
                Material(data=status.client_certificate_data.encode()),
                Material(data=status.client_key_data.encode()),
            )
        self._until = until
        return headers

    def _seconds_left(self, text: str) -> float:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self._wrong(f"its expirationTimestamp {text[:40]!r} is no time", "") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp() - self._wall_clock()

    def _output(self) -> bytes:
        config = self._config
        command = beside(self._file, config.command) if os.sep in config.command else config.command
        environment = os.environ | {item.name: item.value for item in config.env}
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(self._info()).decode()
        interactive = self._interactive
        seconds = _INTERACTIVE_SECONDS if interactive else PLUGIN_SECONDS
        try:
            done = subprocess.run(
                [command, *config.args],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,  # it asks and tells there
                env=environment,
                timeout=seconds,
                check=False,
            )
        except OSError as error:
            raise self._wrong(error.strerror or "cannot be started", config.install_hint or "install it") from None
        except subprocess.TimeoutExpired:
            raise self._wrong(f"it did not end within {seconds:.0f} s", "run it by hand") from None
        if done.returncode:
            raise self._wrong(f"it ended with {done.returncode}{_last_words(done.stderr)}", "run it by hand")
        return done.stdout

    def _info(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": self._interactive}
        if self._config.provide_cluster_info:
            cluster = self._cluster
            told = {
                "server": cluster.server,
                "tls-server-name": cluster.tls_server_name,
                "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
                "certificate-authority-data": self._authority(),
                "proxy-url": cluster.proxy_url,
                "config": next((item.extension for item in cluster.extensions if item.name == _EXTENSION), None),
            }
            spec["cluster"] = {name: value for name, value in told.items() if value}
        return {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}

    def _authority(self) -> str:
        """In base64, also where the kubeconfig names a file: a plugin gets no file's name."""
        cluster = self._cluster
        if cluster.certificate_authority_data or not cluster.certificate_authority:
            return cluster.certificate_authority_data
        path = beside(self._cluster_file, cluster.certificate_authority)
        try:
            with open(path, "rb") as file:
                return base64.b64encode(file.read()).decode()
        except OSError as error:
            raise self._wrong(f"the cluster's authority {path}: {error.strerror}", "") from None

    def _parse(self, output: bytes) -> _Status:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # Not the decoder's text, which may quote what it found.
            raise self._wrong("it printed no ExecCredential", "run it by hand") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._config.api_version or answer.status is None:
            raise self._wrong(f"it printed no ExecCredential of {self._config.api_version} with a status", "")
        return answer.status

    def _wrong(self, reason: str, hint: str) -> ClusterConfigError:
        name = os.path.basename(self._config.command)
        return ClusterConfigError(
            reason, action=f"run the credential plugin {name!r} of {self._origin}", subject=self._origin, hint=hint
        )


def _last_words(stderr: bytes | None) -> str:
    """What the plugin said at the end, without what might be a token."""
    lines = [line.strip() for line in (stderr or b"").decode(errors="replace").splitlines() if line.strip()]
    return f": {_LONG_WORD.sub('...', lines[-1])[:200]}" if lines else ""
