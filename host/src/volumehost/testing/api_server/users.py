"""Who makes a request: bearer tokens of users, and tokens of service accounts as TokenRequest gives them."""

from __future__ import annotations

import base64
import secrets
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.failures import StatusError, bad_request, conflict, invalid, not_found
from volumehost.testing.api_server.resources import Resource, find
from volumehost.testing.api_server.storage import Document

MASTERS = "system:masters"
_AUTHENTICATED = "system:authenticated"
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_AUDIENCE = "https://kubernetes.default.svc"
_SHORTEST, _LONGEST, _USUAL = 600, 2**32, 3600


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a request."""

    name: str
    groups: tuple[str, ...] = ()


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class _Issued:
    user: User
    claims: Mapping[str, Any] | None = None


class Users:
    """The tokens that are good. Safe for threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._issued: dict[str, _Issued] = {}

    def token(self, name: str, groups: Sequence[str] | None) -> str:
        """A new token of a user; ``admin`` is in ``system:masters`` unless told otherwise."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._issued[token] = _Issued(user_of(name, groups))
        return token

    def revoke(self, name: str) -> None:
        """Forget every token of a user."""
        with self._lock:
            self._issued = {token: issued for token, issued in self._issued.items() if issued.user.name != name}

    def identify(self, authorization: str) -> User:
        """Whose the token in the header of a request is; nobody's when there is none.

        :raises StatusError: it is no good (401).
        """
        if not authorization:
            return ANONYMOUS
        scheme, _space, token = authorization.partition(" ")
        user = self.holder(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise StatusError(401, "Unauthorized")
        return user

    def holder(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """Whose a token is, None when it is no good (any more), or not for any of the audiences (none: the server)."""
        with self._lock:
            issued = self._issued.get(token)
        if issued is None:
            return None
        if issued.claims is not None and not self._holds(issued.claims, audiences or (_AUDIENCE,)):
            return None
        return issued.user

    def _holds(self, claims: Mapping[str, Any], audiences: Sequence[str]) -> bool:
        if claims["exp"] <= self._cluster.clock() or not set(audiences) & set(claims["aud"]):
            return False
        bound = claims["kubernetes.io"]
        namespace = bound["namespace"]
        for entry, plural in (("serviceaccount", "serviceaccounts"), ("pod", "pods"), ("secret", "secrets")):
            if entry in bound:
                stored = self._cluster.storage.get(find(plural), (namespace, bound[entry]["name"]))
                if stored is None or stored.document["metadata"]["uid"] != bound[entry]["uid"]:
                    return False
        return True

    def request_token(self, namespace: str, name: str, request: Document) -> Document:
        """Answer a TokenRequest for a service account.

        :raises StatusError: the account or what it is to be bound to is not there, or it asks for too little time.
        """
        accounts = find("serviceaccounts")
        account = self._cluster.existing(accounts, (namespace, name)).document
        spec = dict(request.get("spec") or {})
        seconds = spec.setdefault("expirationSeconds", _USUAL)
        _check_seconds(accounts, name, seconds)
        spec["audiences"] = spec.get("audiences") or [_AUDIENCE]
        metadata = account["metadata"]
        private: Document = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": metadata["uid"]},
        }
        reference = spec.get("boundObjectRef")
        if reference:
            private |= self._bound(namespace, name, reference)
        now = int(self._cluster.clock())
        claims = {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "iss": _ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        token = _web_token(claims)
        with self._lock:
            self._issued[token] = _Issued(user_of(claims["sub"], None), claims)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": self._cluster.now()},
            "spec": spec,
            "status": {
                "token": token,
                "expirationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + seconds)),
            },
        }

    def _bound(self, namespace: str, account: str, reference: Mapping[str, Any]) -> Document:
        kind = str(reference.get("kind", ""))
        plural = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}.get(kind)
        if plural is None:
            raise bad_request(f"cannot bind token to object of kind {kind}")
        resource = find(plural)
        name = str(reference.get("name", ""))
        stored = self._cluster.storage.get(resource, (namespace if resource.namespaced else "", name))
        if stored is None:
            raise not_found(resource, name)
        uid = stored.document["metadata"]["uid"]
        wanted = reference.get("uid")
        if wanted and wanted != uid:
            raise conflict(
                resource,
                name,
                f"the UID in the bound object reference ({wanted}) does not match the UID in record. The object might "
                "have been deleted and then recreated",
            )
        if kind == "Pod" and stored.document["spec"].get("serviceAccountName", "default") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            )
        return {kind.lower(): {"name": name, "uid": uid}}


def user_of(name: str, groups: Sequence[str] | None) -> User:
    """The user of that name with its groups."""
    found = list(groups) if groups is not None else ([MASTERS] if name == "admin" else [])
    if name.startswith("system:serviceaccount:"):
        found += ["system:serviceaccounts", f"system:serviceaccounts:{name.split(':')[2]}"]
    return User(name, (*(group for group in found if group != _AUTHENTICATED), _AUTHENTICATED))


def _check_seconds(resource: Resource, name: str, seconds: Any) -> None:
    field = "spec.expirationSeconds"
    if not isinstance(seconds, int) or seconds < _SHORTEST:
        problem = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        problem = f"Invalid value: {seconds}: may not specify a duration larger than 2^32 seconds"
    else:
        return
    raise invalid(resource, name, [(field, problem)])


def _web_token(claims: Document) -> str:
    """The shape of a signed token; the signature is nobody's."""
    parts = (msgspec.json.encode({"alg": "RS256", "kid": "test"}), msgspec.json.encode(claims), secrets.token_bytes(32))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
