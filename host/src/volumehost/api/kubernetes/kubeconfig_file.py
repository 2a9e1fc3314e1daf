"""The shape of kubeconfig files, and their merging into one as kubectl does it. Used by ``kubeconfig``."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import yaml

from volumehost.errors import ClusterConfigError


class _Kebab(msgspec.Struct, rename="kebab", kw_only=True):
    pass


class NamedExtension(msgspec.Struct):
    """Something that a tool keeps in the file."""

    name: str = ""
    extension: Any = None


class Cluster(_Kebab):
    """How to reach a server."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[NamedExtension] = msgspec.field(default_factory=list)


class EnvVar(msgspec.Struct):
    """A variable for a plugin."""

    name: str = ""
    value: str = ""


class ExecConfig(msgspec.Struct, rename="camel"):
    """A program that gives credentials."""

    command: str = ""
    api_version: str = ""
    args: list[str] = msgspec.field(default_factory=list)
    env: list[EnvVar] = msgspec.field(default_factory=list)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(_Kebab):
    """Who somebody is. No ``repr``: most of it is secret."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: dict[str, Any] | None = None
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = msgspec.field(default_factory=list)
    as_user_extra: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return "User(...)"


class Context(_Kebab):
    """A user of a cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str = ""
    cluster: Cluster = msgspec.field(default_factory=Cluster)


class _NamedUser(msgspec.Struct):
    name: str = ""
    user: User = msgspec.field(default_factory=User)


class _NamedContext(msgspec.Struct):
    name: str = ""
    context: Context = msgspec.field(default_factory=Context)


class _File(_Kebab):
    clusters: list[_NamedCluster] = msgspec.field(default_factory=list)
    users: list[_NamedUser] = msgspec.field(default_factory=list)
    contexts: list[_NamedContext] = msgspec.field(default_factory=list)
    current_context: str = ""


class KubeconfigFiles:
    """What several files say together: of entries with one name, and of current contexts, the first one counts.

    Each entry knows the file that it is from, since paths in it are relative to that.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.current_context = ""
        self.clusters: dict[str, tuple[str, Cluster]] = {}
        self.users: dict[str, tuple[str, User]] = {}
        self.contexts: dict[str, tuple[str, Context]] = {}

    @property
    def shown(self) -> str:
        """The files, for messages."""
        return os.pathsep.join(self.files)

    def add(self, path: str) -> None:
        """Read a file.

        :raises ClusterConfigError: it cannot be read, or is none.
        """
        content = _read(path)
        self.files.append(path)
        self.current_context = self.current_context or content.current_context
        for cluster in content.clusters:
            self.clusters.setdefault(cluster.name, (path, cluster.cluster))
        for user in content.users:
            self.users.setdefault(user.name, (path, user.user))
        for context in content.contexts:
            self.contexts.setdefault(context.name, (path, context.context))


def _read(path: str) -> _File:
    action = f"read the kubeconfig {path}"
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except OSError as error:
        raise ClusterConfigError(error.strerror or "cannot be read", action=action, subject=path) from None
    except UnicodeDecodeError:
        raise ClusterConfigError("is not text in UTF-8", action=action, subject=path) from None
    except yaml.YAMLError as error:
        # Not the parser's own text: it quotes lines of the file, and they may hold a token.
        raise ClusterConfigError(f"is not YAML{_place(error)}", action=action, subject=path) from None
    try:
        return msgspec.convert(_without_nulls(document) or {}, type=_File)
    except msgspec.ValidationError as error:
        raise ClusterConfigError(
            f"is no kubeconfig: {error}", action=action, subject=path, hint="kubectl config view shows what is in one"
        ) from None


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" from line {mark.line + 1} on" if mark is not None else ""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
