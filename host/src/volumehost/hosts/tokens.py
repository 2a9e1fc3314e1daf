"""Service account tokens without an API server: signed here, for the drivers and programs of this machine (HOST-04).

They are JSON web tokens with the claims that Kubernetes puts into its own, signed with a key of this root directory
(HS256): whoever is to check one needs that key. An embedding program whose drivers must satisfy somebody else hands
the volume manager a signer of its own.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import json
import logging
import os
import random
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from volumehost.errors import InvalidObjectError, VolumeHostError
from volumehost.sdk import replace_file

if TYPE_CHECKING:
    from volumehost.api.objects import TokenRequest, TokenRequestStatus

logger = logging.getLogger(__name__)

#: ``iss`` of the tokens, and their audience where none is asked for.
ISSUER = "urn:volumehost:local"

#: Seconds: what a token lives when nobody says, and at least (CSI-TOK-03, CSI-DRV-03).
DEFAULT_SECONDS = 3600
MINIMUM_SECONDS = 600
MAXIMUM_SECONDS = 1 << 32

#: A token is renewed when this part of its life is over, or after a day.
_RENEW_AFTER = 0.8
_RENEW_SECONDS = 24 * 3600.0

#: So many seconds earlier at most, by chance, so that the tokens of many pods are not all renewed at once.
_JITTER_SECONDS = 10.0

#: How long a token that could not be renewed is handed out before that is tried again, in seconds.
_RETRY_SECONDS = 30.0

Signer = Callable[[str, str, "TokenRequest"], "TokenRequest"]
_Wanted = tuple[str, str, tuple[str, ...], int | None, str]


class LocalSigner:
    """Signs tokens with the key in ``<root>/tokens.key``, which is made when the first is asked for."""

    def __init__(self, root_dir: str, wall_clock: Callable[[], float] = time.time) -> None:
        self._key_file = os.path.join(root_dir, "tokens.key")
        self._wall_clock = wall_clock
        self._lock = threading.Lock()

    def __call__(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """The request with its status.

        :raises InvalidObjectError: the lifetime asked for is shorter than ten minutes or longer than 2^32 seconds.
        :raises OSError: the key cannot be read or made.
        """
        from volumehost.api.objects import TokenRequestStatus

        seconds = request.spec.expiration_seconds
        seconds = DEFAULT_SECONDS if seconds is None else seconds
        if not MINIMUM_SECONDS <= seconds <= MAXIMUM_SECONDS:
            raise InvalidObjectError(
                problems=[("spec.expirationSeconds", f"{seconds} is not between {MINIMUM_SECONDS} and 2^32")],
                action=f"signing a token of service account {namespace}/{name}",
                subject=f"{namespace}/{name}",
            )
        now = int(self._wall_clock())
        claims = _claims(namespace, name, request, now, now + seconds)
        status = TokenRequestStatus(
            token=_signed(claims, self._key()),
            expiration_timestamp=datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        return _answered(request, status)

    def _key(self) -> bytes:
        with self._lock:
            try:
                with open(self._key_file, "rb") as file:
                    key = file.read()
                if len(key) == hashlib.sha256().digest_size:
                    return key
            except FileNotFoundError:
                pass
            key = secrets.token_bytes(hashlib.sha256().digest_size)
            replace_file(self._key_file, key)
            return key


@dataclass(frozen=True, slots=True)
class _Kept:
    """A token, handed out until ``until``; after that one that still lives, until ``dead``, when no other is to be had.

    Both are of the monotonic clock, from what its issuer granted: what the issuer's clock says does not matter.
    """

    status: TokenRequestStatus
    until: float
    dead: float


class TokenCache:
    """Hands out tokens that still live long enough, and signs new ones otherwise. Safe for threads."""

    def __init__(
        self, signer: Signer, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] | None = None
    ) -> None:
        self._signer = signer
        self._jitter = jitter if jitter is not None else _jitter
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[_Wanted, _Kept] = {}

    def get(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """The request with a status whose token has at least a fifth of its life before it.

        While none can be had, one that still lives.

        :raises VolumeHostError: none lives, and none can be had.
        """
        bound = request.spec.bound_object_ref
        wanted: _Wanted = (
            namespace,
            name,
            tuple(request.spec.audiences),
            request.spec.expiration_seconds,
            bound.uid if bound is not None else "",
        )
        now = self._clock()
        with self._lock:
            kept = self._kept.get(wanted)
            if kept is not None and now < kept.until:
                return _answered(request, kept.status)
        try:
            answered = self._signer(namespace, name, request)
        except VolumeHostError as error:
            if kept is None or now >= kept.dead:
                raise
            logger.warning("a token of service account %s/%s is not renewed yet: %s", namespace, name, error)
            with self._lock:
                self._kept[wanted] = replace(kept, until=min(now + _RETRY_SECONDS, kept.dead))
            return _answered(request, kept.status)
        seconds = answered.spec.expiration_seconds or request.spec.expiration_seconds or DEFAULT_SECONDS
        until = now + min(seconds * _RENEW_AFTER, _RENEW_SECONDS) - self._jitter()
        with self._lock:
            self._kept = {key: kept for key, kept in self._kept.items() if now < kept.dead}
            self._kept[wanted] = _Kept(answered.status, until, now + seconds)
        return answered

    def forget(self, pod_uid: str) -> None:
        """Drop the tokens that were bound to the pod."""
        with self._lock:
            self._kept = {wanted: kept for wanted, kept in self._kept.items() if wanted[-1] != pod_uid}


def _jitter() -> float:
    return random.uniform(0, _JITTER_SECONDS)  # noqa: S311 - spreads renewals, guards nothing


def _answered(request: TokenRequest, status: TokenRequestStatus) -> TokenRequest:
    answer = copy.copy(request)
    answer.status = copy.copy(status)
    return answer


def _claims(namespace: str, name: str, request: TokenRequest, now: int, expires: int) -> dict[str, Any]:
    bound = request.spec.bound_object_ref
    kubernetes: dict[str, Any] = {"namespace": namespace, "serviceaccount": {"name": name}}
    if bound is not None:
        kubernetes[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
    return {
        "aud": request.spec.audiences or [ISSUER],
        "exp": expires,
        "iat": now,
        "iss": ISSUER,
        "jti": str(uuid.uuid4()),
        "kubernetes.io": kubernetes,
        "nbf": now,
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }


def _signed(claims: dict[str, Any], key: bytes) -> str:
    head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}, separators=(",", ":")).encode())
    body = _encoded(json.dumps(claims, separators=(",", ":")).encode())
    signature = hmac.new(key, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
