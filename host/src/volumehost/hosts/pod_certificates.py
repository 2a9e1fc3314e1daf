"""Certificates of pods: requested from a signer in the cluster, kept in memory, and renewed before they end.

A cluster's host hands them to plugins (``KubeletVolumeHost.get_pod_certificate_credential_bundle``). Nothing is asked
for before a plugin wants one.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from volumehost.errors import (
    NotAvailableOnHostError,
    ObjectNotFoundError,
    OperationError,
    TransientOperationError,
    VolumeHostError,
)
from volumehost.hosts.pod_certificate_keys import NewKey, chain_of, new_key

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod, PodCertificateProjection, PodCertificateRequest

logger = logging.getLogger(__name__)

#: How long one call waits for the signer, in seconds; the next one goes on with the same request.
WAIT_SECONDS: Final = 20.0

#: How long the signer's refusal stands before it is asked again, in seconds.
REFUSAL_SECONDS: Final = 60.0

#: So many seconds at most, by chance, are certificates renewed earlier than their signer proposes.
JITTER_SECONDS: Final = 60.0


class _Wanted(NamedTuple):
    """Which source of which volume of which pod."""

    namespace: str
    pod_name: str
    pod_uid: str
    volume: str
    source: int

    @property
    def action(self) -> str:
        """What is being done, for errors."""
        return f"requesting a certificate for volume {self.volume} of pod {self.namespace}/{self.pod_name}"


@dataclass(slots=True)
class _Kept:
    """What there is for one source of one volume. Times are of the monotonic clock, in seconds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    key: NewKey | None = None
    chain: bytes = b""
    renew_at: float = 0.0
    dead_at: float = 0.0
    asked_with: NewKey | None = None
    request: str = ""
    refusal: VolumeHostError | None = None
    refused_until: float = 0.0


class PodCertificates:
    """Safe for threads; one request at a time for each source of a volume.

    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        api: Callable[[], ApiClient | None],
        node_name: str,
        *,
        wait: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._node_name = node_name
        self._wait = wait
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[_Wanted, _Kept] = {}

    def get(self, namespace: str, pod_name: str, pod_uid: str, volume: str, index: int) -> tuple[bytes, bytes]:
        """(private key, certificate chain), both PEM; one that lives while no new one can be had, at once.

        :raises TransientOperationError: the signer has not answered yet.
        :raises OperationError: it has refused, or the pod has no such source.
        :raises ApiError: the API does not answer or refuses it.
        """
        wanted = _Wanted(namespace, pod_name, pod_uid, volume, index)
        with self._lock:
            kept = self._kept.setdefault(wanted, _Kept())
        with kept.lock:
            now = self._clock()
            if kept.key is None or now >= kept.renew_at:
                lives = kept.key is not None and now < kept.dead_at
                try:
                    # Nobody waits for a signer who has what he needs: a signer that is away would hold up every mount.
                    self._renew(kept, wanted, wait=0.0 if lives else self._wait)
                except VolumeHostError as error:
                    if not lives:
                        raise
                    level = logging.DEBUG if isinstance(error, TransientOperationError) else logging.WARNING
                    logger.log(level, "the certificate is not renewed yet: %s", error)
            if kept.key is None:
                raise TransientOperationError("there is no certificate yet", action=wanted.action)
            return kept.key.private, kept.chain

    def forget(self, pod_uid: str) -> None:
        """The pod has ended: drop its keys."""
        with self._lock:
            self._kept = {key: kept for key, kept in self._kept.items() if key.pod_uid != pod_uid}

    def _renew(self, kept: _Kept, wanted: _Wanted, *, wait: float) -> None:
        if kept.refusal is not None and self._clock() < kept.refused_until:
            raise kept.refusal
        api = self._api()
        if api is None:
            raise NotAvailableOnHostError("the host has no API", action=wanted.action)
        from volumehost.api.objects import Pod

        if not kept.request:
            pod = api.get(Pod, wanted.pod_name, wanted.namespace)
            source = _source(pod, wanted)
            kept.asked_with = new_key(source.key_type)
            kept.request = self._ask(api, pod, source, kept.asked_with)
        answered = self._answer(api, wanted, kept.request, wait)
        kept.request = ""
        if answered is None:  # somebody deleted it, or it was too old
            raise TransientOperationError("the request is gone, another one is made", action=wanted.action)
        self._take(kept, answered, wanted.action)

    def _ask(self, api: ApiClient, pod: Pod, source: PodCertificateProjection, key: NewKey) -> str:
        """Make the request; its name."""
        from volumehost.api.objects import (
            Node,
            ObjectMeta,
            OwnerReference,
            PodCertificateRequest,
            PodCertificateRequestSpec,
            ServiceAccount,
        )

        metadata, account = pod.metadata, pod.spec.service_account_name
        owner = OwnerReference(api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid)
        made = api.create(
            PodCertificateRequest(
                metadata=ObjectMeta(
                    generate_name=f"req-{metadata.name[:200]}-", namespace=metadata.namespace, owner_references=[owner]
                ),
                spec=PodCertificateRequestSpec(
                    signer_name=source.signer_name,
                    pod_name=metadata.name,
                    pod_uid=metadata.uid,
                    service_account_name=account,
                    service_account_uid=api.get(ServiceAccount, account, metadata.namespace).metadata.uid,
                    node_name=self._node_name,
                    node_uid=api.get(Node, self._node_name).metadata.uid,
                    max_expiration_seconds=source.max_expiration_seconds,
                    stub_pkcs10_request=key.request,
                    unverified_user_annotations=dict(source.user_annotations),
                ),
            )
        )
        return made.metadata.name

    def _answer(self, api: ApiClient, wanted: _Wanted, name: str, wait: float) -> PodCertificateRequest | None:
        """The request once its signer has answered; None when it is gone.

        :raises TransientOperationError: it has not answered in time.
        """
        from volumehost.api.objects import PodCertificateRequest

        deadline = self._clock() + wait
        pause = threading.Event()
        delay = 0.1
        while True:
            try:
                found = api.get(PodCertificateRequest, name, wanted.namespace)
            except ObjectNotFoundError:
                return None
            if _answer_of(found):
                return found
            left = deadline - self._clock()
            if left <= 0:
                raise TransientOperationError(
                    f"the signer {found.spec.signer_name} has not answered within {wait:g} s",
                    action=wanted.action,
                    subject=name,
                    hint=f"is it at work? see PodCertificateRequest {wanted.namespace}/{name}",
                )
            pause.wait(min(delay, left))
            delay = min(2 * delay, 5.0)

    def _take(self, kept: _Kept, answered: PodCertificateRequest, action: str) -> None:
        condition = _answer_of(answered)
        if condition != "Issued":
            told = next(each for each in answered.status.conditions if each.type == condition)
            kept.refused_until = self._clock() + REFUSAL_SECONDS
            kept.refusal = OperationError(
                f"the signer {answered.spec.signer_name} says {condition}: {told.reason}: {told.message}",
                action=action,
                subject=answered.metadata.name,
                hint=f"it is asked again after {REFUSAL_SECONDS:g} s",
            )
            raise kept.refusal
        status, now = answered.status, self._clock()
        # The server's own clock says how old the request is; this machine's may say anything.
        began = _seconds(answered.metadata.creation_timestamp) or _seconds(status.not_before)
        ends, renews = _seconds(status.not_after), _seconds(status.begin_refresh_at)
        kept.key, kept.chain, kept.refusal = kept.asked_with, chain_of(status.certificate_chain), None
        kept.dead_at = now + (ends - began if ends and began else 0.0)
        proposed = renews - began if renews and began else 0.0
        jitter = random.uniform(0, min(JITTER_SECONDS, max(0.0, proposed) / 10))  # noqa: S311 - spreads renewals
        kept.renew_at = now + max(0.0, proposed - jitter)


def _source(pod: Pod, wanted: _Wanted) -> PodCertificateProjection:
    """What the pod says of the certificate.

    :raises OperationError: it says nothing, or is another pod.
    """
    if pod.metadata.uid != wanted.pod_uid:
        raise OperationError("another pod has its name now", action=wanted.action, subject=wanted.pod_name)
    for volume in pod.spec.volumes:
        if volume.name == wanted.volume and volume.projected is not None:
            sources = volume.projected.sources
            source = sources[wanted.source].pod_certificate if 0 <= wanted.source < len(sources) else None
            if source is not None:
                return source
    raise OperationError(
        f"its source {wanted.source} is no podCertificate", action=wanted.action, subject=wanted.pod_name
    )


def _answer_of(request: PodCertificateRequest) -> str:
    """``Issued``, ``Denied`` or ``Failed``; "" while there is no answer."""
    for condition in request.status.conditions:
        if condition.status == "True" and condition.type in {"Issued", "Denied", "Failed"}:
            return condition.type
    return ""


def _seconds(text: str | None) -> float:
    """Seconds since the epoch of an RFC 3339 time, 0.0 when it is none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0
