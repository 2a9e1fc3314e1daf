"""Kubeconfig files, as clients read them."""

from __future__ import annotations

import base64
import os

import msgspec

from volumehost.sdk import replace_file

CONTEXT = "test"


def write_kubeconfig(
    path: str | os.PathLike[str], *, url: str, user: str, token: str, namespace: str = "", authority: bytes = b""
) -> str:
    """Write a file with one context, for one user with a token; returns its path.

    :param authority: certificates in PEM by which the server is known.
    """
    cluster: dict[str, str] = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    context = {"cluster": CONTEXT, "user": user, **({"namespace": namespace} if namespace else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": context}],
        "current-context": CONTEXT,
    }
    replace_file(os.fspath(path), msgspec.yaml.encode(document), mode=0o600)
    return os.fspath(path)
