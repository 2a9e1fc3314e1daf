"""What is known of a cluster before anything is asked of it. Made by ``kubeconfig`` and ``in_cluster``, used by
``transport``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from volumehost.api.kubernetes.credentials import Credentials, NoCredentials
from volumehost.api.kubernetes.material import Material

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One server and how to talk to it.

    ``origin`` says in messages where this was written. ``server_name`` is the name that the server's certificate must
    have, "" for that of the URL. ``headers`` go with every request (impersonation); one name may come several times.
    """

    server: str
    origin: str
    credentials: Credentials = field(default_factory=NoCredentials)
    namespace: str = DEFAULT_NAMESPACE
    authority: Material = field(default_factory=Material)
    certificate: Material = field(default_factory=Material)
    key: Material = field(default_factory=Material, repr=False)
    verify: bool = True
    server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def encrypted(self) -> bool:
        """Whether the server is spoken to through TLS."""
        return self.server.lower().startswith("https:")


def beside(file: str, path: str) -> str:
    """A path as a kubeconfig holds it: relative ones are relative to the file in which they are written."""
    path = os.path.expanduser(path) if path.startswith("~") else path
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(file)), path)) if path else ""
