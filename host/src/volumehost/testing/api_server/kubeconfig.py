"""Kubeconfig files, as clients read them."""

from __future__ import annotations

import base64
import os

import msgspec

from volumehost.sdk import replace_file

CONTEXT = "test"


def write_kubeconfig(
    path: str | os.PathLike[str],
    *,
    url: str,
    user: str,
    token: str = "",
    certificate: tuple[bytes, bytes] | None = None,
    namespace: str = "",
    authority: bytes = b"",
) -> str:
    """Write a file with one context, for one user with a token or a certificate and its key; returns its path.

    :param authority: certificates in PEM by which the server is known.
    """
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = _text(authority)
    credentials = {"token": token} if token else {}
    if certificate is not None:
        credentials = {
            "client-certificate-data": _text(certificate[0]),
            "client-key-data": _text(certificate[1]),
        }
    context = {"cluster": CONTEXT, "user": user, **({"namespace": namespace} if namespace else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": CONTEXT, "context": context}],
        "current-context": CONTEXT,
    }
    replace_file(os.fspath(path), msgspec.yaml.encode(document), mode=0o600)
    return os.fspath(path)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
