"""Leases: which of several processes does a piece of work, and until when the others believe it."""

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, always
from volumehost.api.objects.meta import KubeObject

COORDINATION_V1 = "coordination.k8s.io/v1"


class LeaseSpec(ApiStruct):
    """Who holds it. Times have microseconds; a lease counts as lost ``lease_duration_seconds`` after it was renewed."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject):
    """A lock with a holder."""

    api_version: str = always(COORDINATION_V1)
    kind: str = always("Lease")
    spec: LeaseSpec = field(default_factory=LeaseSpec)
