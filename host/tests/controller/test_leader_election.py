"""Leader election: one leader at a time, a term that ends before another can begin, whatever the clocks say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.api.client import ApiClient
from volumehost.api.objects import Lease, ObjectMeta, PersistentVolume
from volumehost.api.store import EmbeddedStore
from volumehost.controller.fenced_client import FencedClient, NotLeaderError
from volumehost.controller.leader_election import LeaderElector, LeaseSettings, Term
from volumehost.errors import StoreError

PATIENCE = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Away:
    """An API that can be away, and tells when it was asked."""

    def __init__(self, api: ApiClient) -> None:
        self.api, self.away, self.asked = api, False, threading.Event()

    def __getattr__(self, name: str) -> object:
        if self.away:
            self.asked.set()
            raise StoreError("the server cannot be reached")
        return getattr(self.api, name)


@pytest.fixture
def api(tmp_path: Path):
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as store:
        yield store


def settings(identity: str, **changes: float) -> LeaseSettings:
    return LeaseSettings("kube-system", "volumehost-controller", identity, **changes)


def elector(api: object, identity: str, clock: Callable[[], float], wall: float = 0.0, **changes: float):
    return LeaderElector(api, settings(identity, **changes), clock=clock, wall_clock=lambda: wall + clock())  # type: ignore[arg-type]


def lease(api: ApiClient) -> Lease:
    return api.get(Lease, "volumehost-controller", "kube-system")


def test_the_first_takes_it_and_the_second_does_not(api) -> None:
    clock = Clock()
    one, two = elector(api, "one", clock), elector(api, "two", clock)
    assert one._try()
    assert not two._try()
    assert two.leader == "one"
    spec = lease(api).spec
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("one", 15, 0)


def test_a_lease_lasts_no_shorter_for_others_than_its_term_for_its_holder(api) -> None:
    """The API knows whole seconds only."""
    clock = Clock()
    one = elector(api, "one", clock, duration=10.4, renew_deadline=10.3)
    two = elector(api, "two", clock, duration=10.4, renew_deadline=10.3)
    assert one._try()
    assert not two._try()
    clock.now += 10.2
    assert not two._try()


def test_only_its_own_clock_tells_a_candidate_that_a_lease_is_abandoned(api) -> None:
    """Clock skew: what the lease says of times is believed by nobody."""
    clock = Clock()
    one, two = elector(api, "one", clock, wall=1e9), elector(api, "two", clock, wall=2e9)
    assert one._try()
    assert not two._try()
    clock.now += 14.9
    assert not two._try()
    assert one._try()  # a renewal
    clock.now += 14.9
    assert not two._try()
    clock.now += 0.2
    assert not two._try(), "it was renewed since two last looked"
    clock.now += 15
    assert two._try()
    spec = lease(api).spec
    assert (spec.holder_identity, spec.lease_transitions) == ("two", 1)


def test_a_leader_that_wakes_up_late_finds_that_it_leads_no_more(api) -> None:
    clock = Clock()
    one, two = elector(api, "one", clock), elector(api, "two", clock)
    assert one._try()
    two._try()
    clock.now += 15
    assert two._try()
    assert not one._try()


def test_a_term_ends_before_another_can_begin() -> None:
    with pytest.raises(ValueError, match="must exceed"):
        settings("one", duration=10.0, renew_deadline=10.0)
    clock = Clock()
    term = Term(clock, clock.now + 10)
    clock.now += 9.9
    assert term.valid
    clock.now += 0.1
    assert not term.valid
    term.extend(clock.now + 10)
    assert not term.valid, "it never comes to life again"


def test_the_term_counts_from_before_the_renewal_was_asked_for(api) -> None:
    """Fencing: a renewal that takes long on its way must not make the term longer than others see the lease."""
    clock = Clock()

    class Slow(Away):
        def __getattr__(self, name: str) -> object:
            clock.now += 4
            return super().__getattr__(name)

    term = elector(Slow(api), "one", clock).acquire()
    assert term is not None
    clock.now = 1000 + 9.9
    assert term.valid
    clock.now = 1000 + 10.1
    assert not term.valid


def test_a_leader_that_cannot_renew_writes_nothing_when_its_term_is_over(api) -> None:
    away, clock = Away(api), Clock()
    one = elector(away, "one", clock, retry_period=0.01)
    term = one.acquire()
    assert term is not None
    fenced = FencedClient(api, term).client
    fenced.create(PersistentVolume(metadata=ObjectMeta(name="before"), spec=volume_spec()))
    away.away = True
    keeping = threading.Thread(target=one.keep, args=(term,))
    keeping.start()
    while not away.asked.wait(0.02):
        clock.now += 0.01
    clock.now += 20
    keeping.join(PATIENCE)
    assert not keeping.is_alive()
    with pytest.raises(NotLeaderError, match="could not be renewed in time"):
        fenced.delete(PersistentVolume, "before")
    assert fenced.get(PersistentVolume, "before").metadata.deletion_timestamp is None
    assert "cannot be renewed" in one.problem


def test_who_lost_it_to_another_stops_at_once(api) -> None:
    one = elector(api, "one", time.monotonic, retry_period=0.01)
    term = one.acquire()
    assert term is not None
    stolen = lease(api)
    stolen.spec.holder_identity = "two"
    api.replace(stolen)
    one.keep(term)
    assert term.reason == "two took the lease"


def test_what_is_given_back_is_taken_at_once(api) -> None:
    clock = Clock()
    one, two = elector(api, "one", clock), elector(api, "two", clock)
    assert one._try()
    assert not two._try()
    one.release()
    assert two._try()
    one.release()  # which is not its own any more
    assert lease(api).spec.holder_identity == "two"


def test_a_candidate_can_be_told_to_stop_while_the_api_is_away(api) -> None:
    away = Away(api)
    away.away = True
    one, terms = elector(away, "one", Clock()), []
    waiting = threading.Thread(target=lambda: terms.append(one.acquire()))
    waiting.start()
    assert away.asked.wait(PATIENCE)
    one.stop()
    waiting.join(PATIENCE)
    assert terms == [None]


def volume_spec():
    from volumehost.api.convert import to_object

    document = {
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"}},
    }
    return to_object(PersistentVolume, document).spec
