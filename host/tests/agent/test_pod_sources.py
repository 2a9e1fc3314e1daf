"""PodSources: each pod by itself, the latest wish counts, nothing unwanted before all have told (POP-02, BR-15)."""

from itertools import pairwise

import pytest

from volumehost.agent.pod_sources import FIRST_LOOK_SECONDS, RETRY_MAXIMUM_SECONDS, PodSources
from volumehost.api.objects import ObjectMeta, Pod


class Source:
    """A source that is told what to tell."""

    def __init__(self, name):
        self.name, self.calls, self.problem, self.gone = name, [], "", set()

    def start(self, sources):
        self.calls.append("start")

    def stop(self):
        self.calls.append("stop")

    def look_again(self):
        self.calls.append("look again")

    def prepare(self, pod):
        return None if pod.metadata.name in self.gone else pod

    def ended(self, pod):
        self.calls.append(("ended", pod.metadata.name))

    def problems(self):
        return [self.problem] if self.problem else []

    def problem_of(self, pod):
        return self.problem

    def keeps(self, pod):
        return f"kept by {self.name}"


def pod(name):
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=name))


@pytest.fixture
def one():
    return Source("one")


@pytest.fixture
def two():
    return Source("two")


@pytest.fixture
def sources(manager, one, two):
    made = PodSources(manager, [one, two])
    made.start()
    return made


def test_nothing_is_known_before_all_have_told_and_each_pod_was_looked_at(sources, one, two, manager):
    sources.want(one, pod("a"))
    sources.keep(two, pod("b"))
    sources.end(two, pod("c"))
    sources.told(one)
    assert list(sources.problems()) == ["two has not told its pods yet"]
    sources.told(two)
    assert list(sources.problems()) == []
    assert not sources.complete
    manager.do_work()
    assert sources.complete
    assert manager.told == [("mount", "a"), ("end", "c"), ("known", ["a", "b"])]
    assert two.calls == ["start", ("ended", "c")]
    sources.told(two)
    manager.do_work(FIRST_LOOK_SECONDS)
    assert len(manager.told) == 3


def test_a_pod_that_hangs_keeps_the_others_for_a_while_only(sources, one, two, manager):
    sources.want(one, pod("hangs"))
    manager.waiting.clear()  # its worker is at it and never comes back
    sources.told(one)
    sources.told(two)
    assert not sources.complete
    manager.do_work(FIRST_LOOK_SECONDS)
    assert manager.told == [("known", ["hangs"])]


def test_what_fails_is_tried_again_after_longer_and_longer_times(sources, one, manager, refusal, caplog):
    manager.trouble["a"] = refusal
    sources.want(one, pod("a"))
    delays = []
    for _ in range(12):
        (delay,) = manager.do_work(0)
        delays.append(delay)
        manager.waiting[0] = (0.0, manager.waiting[0][1])
    assert sources.note_of("a") == str(refusal)
    for earlier, later in pairwise(delays):
        assert later >= min(earlier * 1.5, RETRY_MAXIMUM_SECONDS)
    assert max(delays) <= RETRY_MAXIMUM_SECONDS * 1.2
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
    del manager.trouble["a"]
    manager.do_work(1000)
    assert manager.told == [("mount", "a")]
    assert sources.note_of("a") == ""


def test_another_wish_is_not_kept_waiting_by_a_retry(sources, one, manager, refusal):
    manager.trouble["a"] = refusal
    sources.want(one, pod("a"))
    manager.do_work(0)
    del manager.trouble["a"]
    sources.end(one, pod("a"))
    manager.do_work(0)
    assert manager.told == [("end", "a")]
    manager.do_work(1000)  # the retry of what is no longer wished
    assert manager.told == [("end", "a")]


def test_only_the_latest_wish_is_acted_upon(sources, one, manager):
    for wish in (sources.want, sources.end, sources.want):
        wish(one, pod("a"))
    manager.do_work()
    assert manager.told == [("mount", "a")]


def test_a_pod_that_is_not_there_any_more_is_not_mounted(sources, one, manager):
    one.gone.add("a")
    sources.want(one, pod("a"))
    manager.do_work()
    assert manager.told == []


def test_a_plugins_own_error_holds_up_its_pod_alone(sources, one, manager):
    manager.trouble["a"] = ZeroDivisionError("a plugin's")
    sources.want(one, pod("a"))
    sources.want(one, pod("b"))
    assert manager.do_work(0)
    assert manager.told == [("mount", "b")]
    assert sources.note_of("a") == "a plugin's"


def test_after_the_end_nothing_is_told(sources, one, two, manager):
    sources.want(one, pod("a"))
    sources.stop()
    sources.want(one, pod("b"))
    sources.told(one)
    sources.told(two)
    manager.do_work(1000)
    assert manager.told == []
    assert (one.calls, two.calls) == (["start", "stop"],) * 2


def test_sources_are_asked_about_their_pods(sources, one, two, manager):
    sources.want(one, pod("a"))
    one.problem = "cannot be read"
    assert manager.parts.status.note_of("a") == "cannot be read"
    assert manager.parts.status.notes() == ["one: cannot be read", "two has not told its pods yet"]
    assert (sources.kept_by("a"), sources.kept_by("b")) == ("kept by one", "")
    sources.end(one, pod("a"))
    assert manager.ending.kept_by("a") == ""
    sources.look_again()
    assert "look again" in one.calls
