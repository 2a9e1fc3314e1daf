"""Certificates made while the server runs, by the ``openssl`` program: an authority, the server, and its users."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Sequence

_LIMIT = 30.0
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """An authority that lasts a day, and what it signs.

    :param directory: where the files are, keys among them.
    :raises FileNotFoundError: there is no ``openssl``.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._count = 0
        self._run("req", "-x509", *_KEY, "-subj", "/CN=test-authority", "-days", "1", *self._out("authority"))

    @property
    def authority(self) -> bytes:
        """The authority's certificate in PEM."""
        return self._read("authority.crt")

    def server_context(self) -> ssl.SSLContext:
        """For a server on the loopback interface that asks for certificates without wanting one."""
        self._sign("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._path("server.crt"), self._path("server.key"))
        context.load_verify_locations(self._path("authority.crt"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def user(self, name: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        """Certificate and key of a user, in PEM."""
        self._count += 1
        stem = f"user-{self._count}"
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
        self._sign(stem, subject, "extendedKeyUsage=clientAuth")
        return self._read(f"{stem}.crt"), self._read(f"{stem}.key")

    def _sign(self, stem: str, subject: str, extension: str) -> None:
        signer = ("-CA", self._path("authority.crt"), "-CAkey", self._path("authority.key"))
        self._run(
            "req", "-x509", *_KEY, "-subj", subject, "-addext", extension, "-days", "1", *signer, *self._out(stem)
        )

    def _out(self, stem: str) -> tuple[str, ...]:
        return ("-keyout", self._path(f"{stem}.key"), "-out", self._path(f"{stem}.crt"))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _read(self, name: str) -> bytes:
        with open(self._path(name), "rb") as file:
            return file.read()

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=_LIMIT)
