"""The cache of an informer: own writes lie over what was told until it is told, and never bring back what has gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from volumehost.api.kinds import kind_of
from volumehost.api.kubernetes.change_log import ChangeLog
from volumehost.api.kubernetes.codec import RawEvent
from volumehost.api.kubernetes.object_cache import Difference, ObjectCache
from volumehost.api.kubernetes.scope import scope, selected_name
from volumehost.api.objects import ConfigMap
from volumehost.errors import GoneError, InvalidObjectError

KEY = ("default", "a")


def body(version: int | str, *, name: str = "a", uid: str = "u1", **fields: Any) -> bytes:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version), **fields}
    return msgspec.json.encode({"metadata": metadata})


def event(kind: str, version: int | str, **fields: Any) -> RawEvent:
    return RawEvent(kind, msgspec.Raw(body(version, **fields)))


@pytest.fixture
def log() -> ChangeLog:
    return ChangeLog(kept=10)


@pytest.fixture
def cache(log: ChangeLog) -> ObjectCache:
    cache = ObjectCache(kind_of(ConfigMap), log, scope(None, "", ""))
    cache.replace([body(5)], "10", cache.begin_list())
    return cache


def test_an_own_write_is_read_at_once_and_until_it_is_told(cache: ObjectCache) -> None:
    cache.wrote(body(12))
    assert cache.get(KEY) == body(12)
    assert cache.bodies() == [body(12)]
    assert cache.bodies(own=False) == [body(5)]
    cache.apply(event("MODIFIED", 11))
    assert cache.get(KEY) == body(12)
    assert cache.apply(event("MODIFIED", 12)) == Difference(body(11), body(12))
    cache.apply(event("MODIFIED", 13))
    assert cache.get(KEY) == body(13)


def test_a_write_that_was_told_already_changes_nothing(cache: ObjectCache) -> None:
    cache.apply(event("MODIFIED", 12))
    cache.apply(event("MODIFIED", 14))
    cache.wrote(body(12))
    assert cache.get(KEY) == body(14)


def test_a_write_to_what_was_deleted_meanwhile_brings_nothing_back(cache: ObjectCache) -> None:
    cache.apply(event("MODIFIED", 12))
    cache.apply(event("DELETED", 13))
    cache.wrote(body(12))
    assert cache.get(KEY) is None


def test_a_write_without_a_change_changes_nothing(cache: ObjectCache) -> None:
    cache.wrote(body(5))
    cache.apply(event("MODIFIED", 11))
    assert cache.get(KEY) == body(11)


def test_a_bookmark_tells_that_everything_before_it_was_told(cache: ObjectCache) -> None:
    cache.wrote(body(12, name="elsewhere"))
    cache.apply(event("BOOKMARK", 15))
    assert cache.get(("default", "elsewhere")) is None


def test_a_deleted_object_stays_away(cache: ObjectCache) -> None:
    cache.wrote(body(12))
    cache.removed(body(12))
    assert cache.get(KEY) is None
    cache.apply(event("MODIFIED", 12))
    assert cache.get(KEY) is None
    cache.apply(event("DELETED", 13))
    cache.apply(event("ADDED", 14, uid="u2"))
    assert cache.get(KEY) == body(14, uid="u2")


def test_another_object_of_that_name_is_another(cache: ObjectCache) -> None:
    cache.removed(body(5))
    cache.wrote(body(12, uid="u2"))
    assert cache.get(KEY) == body(12, uid="u2")
    cache.removed(body(13, uid="u3"))
    cache.apply(event("DELETED", 11))
    # What is told now was before the one that was deleted last.
    cache.apply(event("ADDED", 12, uid="u2"))
    assert cache.get(KEY) is None
    cache.apply(event("ADDED", 15, uid="u4"))
    assert cache.get(KEY) == body(15, uid="u4")


def test_a_list_from_before_a_write_does_not_undo_it(cache: ObjectCache) -> None:
    cache.wrote(body(12))
    cache.replace([body(5)], "11", cache.begin_list())
    assert cache.get(KEY) == body(12)
    cache.replace([body(5)], "12", cache.begin_list())
    assert cache.get(KEY) == body(5)


def test_a_list_from_before_a_deletion_does_not_undo_it(cache: ObjectCache) -> None:
    began = cache.begin_list()
    cache.removed(body(5))
    cache.replace([body(5)], "11", began)
    assert cache.get(KEY) is None
    # A list from after it knows better.
    cache.replace([body(5)], "12", cache.begin_list())
    assert cache.get(KEY) == body(5)


def test_answers_of_several_threads_come_in_any_order(cache: ObjectCache) -> None:
    cache.wrote(body(14))
    cache.wrote(body(12))
    assert cache.get(KEY) == body(14)
    cache.removed(body(14))
    cache.wrote(body(13))
    assert cache.get(KEY) is None


def test_what_is_outside_is_not_kept(log: ChangeLog) -> None:
    cache = ObjectCache(kind_of(ConfigMap), log, scope(None, "app=web", ""))
    cache.replace([body(5, labels={"app": "web"})], "10", cache.begin_list())
    cache.wrote(body(12, name="other", labels={"app": "db"}))
    assert cache.get(("default", "other")) is None
    # An object that leaves what is watched has gone, for those who look here.
    cache.wrote(body(13, labels={"app": "db"}))
    assert cache.get(KEY) is None


def test_versions_that_are_no_numbers_are_only_compared(log: ChangeLog) -> None:
    cache = ObjectCache(kind_of(ConfigMap), log, scope(None, "", ""))
    cache.replace([body("x")], "l", cache.begin_list())
    cache.wrote(body("y"))
    assert cache.get(KEY) == body("y")
    cache.apply(event("MODIFIED", "y"))
    cache.apply(event("MODIFIED", "z"))
    assert cache.get(KEY) == body("z")


def test_a_list_tells_what_is_different(cache: ObjectCache, log: ChangeLog) -> None:
    cache.apply(event("ADDED", 11, name="b"))
    number = log.end
    found = cache.replace([body(12), body(13, name="c")], "20", cache.begin_list())
    assert found == [
        Difference(body(11, name="b"), None),
        Difference(body(5), body(12)),
        Difference(None, body(13, name="c")),
    ]
    assert [change.type for change in log.since(number, ["ConfigMap"])] == ["DELETED", "MODIFIED", "ADDED", "BOOKMARK"]
    assert log.since(number, ["Pod"]) == []


# --- the log ---


def test_places_in_the_log(cache: ObjectCache, log: ChangeLog) -> None:
    kind = kind_of(ConfigMap)
    start = log.find(kind, "10")
    assert start == log.end
    cache.apply(event("MODIFIED", 11))
    cache.apply(event("MODIFIED", 13))
    assert start is not None
    assert [change.version for change in log.since(start, ["ConfigMap"])] == ["11", "13"]
    found = log.find(kind, "12")
    assert found is not None
    assert [change.version for change in log.since(found, ["ConfigMap"])] == ["13"]
    assert log.find(kind, "9") is None


def test_the_log_forgets(cache: ObjectCache, log: ChangeLog) -> None:
    number = log.end
    for version in range(11, 60):
        cache.apply(event("MODIFIED", version))
    with pytest.raises(GoneError, match="list again"):
        log.since(number, ["ConfigMap"])
    assert log.find(kind_of(ConfigMap), "12") is None
    assert 10 <= len(log.since(log.end - 10, ["ConfigMap"])) <= 20


# --- what belongs to what is watched ---


def pod(**spec: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": "p", "namespace": "apps", "labels": {"a": "b"}}, "spec": spec})


@pytest.mark.parametrize(
    ("matches", "inside"),
    [
        (scope(None, "", ""), True),
        (scope("apps", "", ""), True),
        (scope("other", "", ""), False),
        (scope(None, "a=b,!c", ""), True),
        (scope(None, "a!=b", ""), False),
        (scope(None, "", "spec.nodeName=n1"), True),
        (scope(None, "", "spec.nodeName==n1,metadata.name=p"), True),
        (scope(None, "", "spec.nodeName!=n1"), False),
        (scope(None, "", "spec.schedulerName="), True),
    ],
)
def test_scopes(matches: Callable[[bytes], bool], inside: bool) -> None:
    assert matches(pod(nodeName="n1")) is inside


def test_one_name() -> None:
    assert selected_name("", "metadata.name=n1") == "n1"
    assert selected_name("a=b", "metadata.name=n1") == ""
    assert selected_name("", "metadata.name!=n1") == ""
    assert selected_name("", "spec.nodeName=n1") == ""
    with pytest.raises(InvalidObjectError):
        scope(None, "a==b==c", "")
