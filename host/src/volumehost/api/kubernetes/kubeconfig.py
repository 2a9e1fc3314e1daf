"""From kubeconfig files to the configuration of one cluster. Called by ``connecting``."""

from __future__ import annotations

import base64
import binascii
import difflib
import os
from collections.abc import Iterable
from urllib.parse import quote

from volumehost.api.kubernetes.cluster_config import DEFAULT_NAMESPACE, ClusterConfig, beside
from volumehost.api.kubernetes.credentials import Credentials, FixedHeaders, NoCredentials, TokenFile, basic, bearer
from volumehost.api.kubernetes.kubeconfig_file import Cluster, Context, KubeconfigFiles, User
from volumehost.api.kubernetes.material import Material
from volumehost.errors import ClusterConfigError

#: What may stand in the name of a header, besides letters and digits.
_HEADER_SAFE = "!#$&'*+-.^_`|~"
_SCHEMES = ("http://", "https://")


def kubeconfig_paths(text: str) -> list[str]:
    """The files that a value of ``KUBECONFIG`` names; those that are not there are left out, as kubectl does."""
    paths = [os.path.expanduser(path) for path in text.split(os.pathsep) if path]
    return [path for path in paths if os.path.exists(path)]


def load_kubeconfig(paths: Iterable[str], context: str | None = None) -> ClusterConfig:
    """The configuration of a context, the current one for None.

    :raises ClusterConfigError: a file cannot be read, or the context or what it names is missing or wrong.
    """
    files = KubeconfigFiles()
    for path in paths:
        files.add(path)
    name = context or files.current_context
    if not name:
        raise _problem(files, "names no current context", f"give --context: {_known(files.contexts)}")
    found = files.contexts.get(name)
    if found is None:
        raise _problem(files, f"has no context {name!r}", f"{_near(name, files.contexts)}{_known(files.contexts)}")
    chosen = found[1]
    return _Chosen(files, name, chosen).config()


class _Chosen:
    """One context of the files, on its way to a configuration."""

    def __init__(self, files: KubeconfigFiles, name: str, context: Context) -> None:
        self._files = files
        self._context = context
        self._origin = f"context {name} of {files.shown}"

    def config(self) -> ClusterConfig:
        path, cluster = self._cluster()
        user_path, user = self._user()
        certificate, key = self._client_certificate(user_path, user)
        return ClusterConfig(
            server=cluster.server.rstrip("/"),
            origin=self._origin,
            credentials=self._credentials(user_path, user, path, cluster),
            namespace=self._context.namespace or DEFAULT_NAMESPACE,
            authority=self._material(
                path, cluster.certificate_authority, cluster.certificate_authority_data, "cluster"
            ),
            certificate=certificate,
            key=key,
            verify=not cluster.insecure_skip_tls_verify,
            server_name=cluster.tls_server_name,
            proxy_url=cluster.proxy_url,
            headers=self._impersonation(user),
        )

    def _cluster(self) -> tuple[str, Cluster]:
        name = self._context.cluster
        found = self._files.clusters.get(name)
        if found is None:
            what = f"names the cluster {name!r}, which is not there" if name else "names no cluster"
            raise self._wrong(what, _known(self._files.clusters))
        server = found[1].server
        if not server.lower().startswith(_SCHEMES) or not server.partition("://")[2]:
            shown = "no server" if not server else "a server that is no URL with http:// or https://"
            raise self._wrong(f"has a cluster {name!r} with {shown}", "set clusters[].cluster.server")
        if "@" in server.partition("://")[2].partition("/")[0]:
            raise self._wrong(f"has a cluster {name!r} with a password in its URL", "put credentials under users")
        return found

    def _user(self) -> tuple[str, User]:
        name = self._context.user
        if not name:
            return "", User()
        found = self._files.users.get(name)
        if found is None:
            raise self._wrong(f"names the user {name!r}, who is not there", _known(self._files.users))
        return found

    def _credentials(self, path: str, user: User, cluster_path: str, cluster: Cluster) -> Credentials:
        """In kubectl's order: the file with a token before the token, both before a name with a password."""
        if user.token_file:
            source = TokenFile(beside(path, user.token_file), self._origin)
            source.headers()
            return source
        if user.token:
            return FixedHeaders(bearer(user.token, self._origin))
        if user.username or user.password:
            return FixedHeaders(basic(user.username, user.password))
        if user.exec is not None:
            from volumehost.api.kubernetes.exec_plugin import ExecCredentials

            return ExecCredentials(user.exec, cluster, path, self._origin, cluster_file=cluster_path)
        if user.auth_provider is not None:
            name = user.auth_provider.get("name")
            raise self._wrong(
                f"has a user with the auth provider {name!r}, which is not supported",
                "use a credential plugin (users[].user.exec)",
            )
        return NoCredentials()

    def _client_certificate(self, path: str, user: User) -> tuple[Material, Material]:
        certificate = self._material(path, user.client_certificate, user.client_certificate_data, "client certificate")
        key = self._material(path, user.client_key, user.client_key_data, "client key")
        if bool(certificate) != bool(key):
            missing = "client key" if certificate else "client certificate"
            raise self._wrong(f"has a user without a {missing}", "certificate and key go together")
        return certificate, key

    def _material(self, file: str, path: str, data: str, what: str) -> Material:
        if not data:
            return Material(path=beside(file, path))
        try:
            return Material(data=base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError):
            raise self._wrong(
                f"has a {what} whose data is not base64", "kubectl config set ... --embed-certs"
            ) from None

    def _impersonation(self, user: User) -> tuple[tuple[str, str], ...]:
        """As the Go client writes them: a header for each group and for each value of an extra."""
        found = [("Impersonate-User", user.as_user)] if user.as_user else []
        found += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
        found += [("Impersonate-Group", group) for group in user.as_groups]
        for key, values in user.as_user_extra.items():
            name = f"Impersonate-Extra-{quote(key.lower(), safe=_HEADER_SAFE)}"
            found += [(name, value) for value in values]
        if found and not user.as_user:
            raise self._wrong("has a user who acts with the uid, groups or extras of nobody", "set users[].user.as")
        if not all(value.isascii() and value.isprintable() for _name, value in found):
            raise self._wrong("has a user who acts as one whose name no header can hold", "check users[].user.as")
        return tuple(found)

    def _wrong(self, reason: str, hint: str) -> ClusterConfigError:
        return ClusterConfigError(f"it {reason}", action=f"use {self._origin}", subject=self._origin, hint=hint)


def _problem(files: KubeconfigFiles, reason: str, hint: str) -> ClusterConfigError:
    return ClusterConfigError(
        f"it {reason}", action=f"use the kubeconfig {files.shown}", subject=files.shown, hint=hint
    )


def _known(names: Iterable[str]) -> str:
    return f"there are: {', '.join(sorted(names))}" if names else "there are none"


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]}? " if near else ""
