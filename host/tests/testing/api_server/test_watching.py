"""Watches: what comes, in which order, and how they end (BR-75)."""

from __future__ import annotations

import pytest

from volumehost.testing.api_server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/pods"


def put(server: ApiServer, name: str, **data: str) -> dict:
    return server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def told(event: dict) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def version_of(http, path: str = MAPS) -> str:
    return http.get(path).metadata["resourceVersion"]


def test_changes_after_a_version_in_order(server, http) -> None:
    put(server, "before")
    start = version_of(http)
    put(server, "a")
    put(server, "a", x="1")
    server.objects.delete("configmaps", "a")
    with http.watch(MAPS, resourceVersion=start) as events:
        found = [next(events) for _ in range(3)]
        assert [told(event) for event in found] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert found[0]["object"]["kind"] == "ConfigMap", "events say what they are about"
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in found]
        assert versions == sorted(set(versions)), "the end has a version of its own"
        put(server, "late")
        assert told(next(events)) == ("ADDED", "late")


@pytest.mark.parametrize("version", ["", "0"])
def test_present_objects_come_first_without_a_version(server, http, version) -> None:
    put(server, "a")
    with http.watch(MAPS, resourceVersion=version) as events:
        assert told(next(events)) == ("ADDED", "a")


def test_timeout_ends_the_stream_in_good_order(http) -> None:
    """Those who want bookmarks get a last one."""
    query = {"timeoutSeconds": 1, "resourceVersion": version_of(http)}
    with http.watch(MAPS, **query) as plain, http.watch(MAPS, allowWatchBookmarks="true", **query) as marked:
        assert list(plain) == []
        assert [event["type"] for event in marked] == ["BOOKMARK"]


def test_bookmarks_come_from_time_to_time(connect) -> None:
    with ApiServer(bookmark_seconds=0.05) as server:
        http = connect(server)
        with http.watch(MAPS, allowWatchBookmarks="true", resourceVersion=version_of(http)) as events:
            first = next(events)
            server.objects.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}})
            later = next(event for event in events if event["object"] != first["object"])
        assert first["type"] == later["type"] == "BOOKMARK"
        assert later["object"]["metadata"].keys() == {"resourceVersion"}
        version = int(later["object"]["metadata"]["resourceVersion"])
        assert version > int(first["object"]["metadata"]["resourceVersion"]), "other kinds move it on"


def test_bookmark_of_a_pod_is_an_empty_pod(server, http) -> None:
    with http.watch(PODS, allowWatchBookmarks="true", resourceVersion=version_of(http, PODS)) as events:
        server.send_bookmarks()
        found = next(events)["object"]
    assert found["spec"] == {"containers": None}


def test_no_bookmarks_unasked(server, http) -> None:
    with http.watch(MAPS, resourceVersion=version_of(http)) as events:
        server.send_bookmarks()
        put(server, "a")
        assert told(next(events)) == ("ADDED", "a")


def test_initial_events_end_with_a_bookmark(server, http) -> None:
    put(server, "a")
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    with http.watch(MAPS, **query) as events:
        assert told(next(events)) == ("ADDED", "a")
        assert next(events)["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        {"resourceVersionMatch": "Exact"},
    ],
)
def test_parameters_that_mean_nothing(http, query) -> None:
    assert http.get(MAPS, watch="true", **query).code == 422


def test_old_version_is_gone_within_the_stream(server, http) -> None:
    start = version_of(http)
    put(server, "a")
    server.compact()
    with http.watch(MAPS, resourceVersion=start) as events:
        found = list(events)
    assert [event["type"] for event in found] == ["ERROR"]
    status = found[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {start} (")


def test_history_is_bounded(connect) -> None:
    with ApiServer(history=10) as server:
        http = connect(server)
        start = version_of(http)
        for index in range(30):
            put(server, "a", x=str(index))
        with http.watch(MAPS, resourceVersion=start) as events:
            assert next(events)["type"] == "ERROR"


def test_version_of_the_future_waits_for_it(server, http) -> None:
    start = int(version_of(http))
    with http.watch(MAPS, resourceVersion=start + 1) as events:
        put(server, "a")
        put(server, "b")
        assert told(next(events)) == ("ADDED", "b")


def test_selection_is_entered_and_left(server, http, pod) -> None:
    start = version_of(http, PODS)
    server.objects.put(pod)
    with http.watch(PODS, resourceVersion=start, fieldSelector="spec.nodeName=n1") as events:
        server.objects.patch("pods", "web", {"spec": {"nodeName": "n1"}})
        assert told(next(events)) == ("ADDED", "web")
        left = server.objects.patch("pods", "web", {"spec": {"nodeName": "n2"}})
        event = next(events)
    assert told(event) == ("DELETED", "web")
    assert event["object"]["spec"]["nodeName"] == "n1", "as it was when it was selected"
    assert event["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_other_namespaces_are_not_told(server, http) -> None:
    start = version_of(http)
    server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "other"}})
    put(server, "a")
    with http.watch(MAPS, resourceVersion=start) as events:
        assert told(next(events)) == ("ADDED", "a")


def test_one_object_is_watched_by_its_name_as_a_field(server, http) -> None:
    start = version_of(http)
    put(server, "a")
    put(server, "b")
    with http.watch(MAPS, resourceVersion=start, fieldSelector="metadata.name=b") as events:
        assert told(next(events)) == ("ADDED", "b")
    assert http.get(f"{MAPS}/b", watch="true").body["kind"] == "ConfigMap", "a path to one object is no watch"


def test_watches_are_closed_on_demand(server, http) -> None:
    with http.watch(MAPS, resourceVersion=version_of(http)) as events:
        server.close_watches("configmaps")
        assert list(events) == []


def test_error_on_demand(server, http) -> None:
    with http.watch(MAPS, resourceVersion=version_of(http)) as events:
        server.send_error("configmaps", 500)
        assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 500)]


def test_open_watches_are_counted(server, http) -> None:
    with http.watch(MAPS, resourceVersion=version_of(http)) as events:
        put(server, "a")
        next(events)
        assert (server.open_watches("configmaps"), server.open_watches("pods")) == (1, 0)


def test_caches_that_stay_behind(server, http) -> None:
    put(server, "old")
    with http.watch(MAPS, resourceVersion=version_of(http)) as events:
        with server.lagging():
            put(server, "a")
            behind = http.get(MAPS, resourceVersion="0").body
            assert [item["metadata"]["name"] for item in behind["items"]] == ["old"]
            assert len(http.get(MAPS).body["items"]) == 2, "a read of the newest version sees it"
            assert http.get(f"{MAPS}/a", resourceVersion="0").code == 404
            assert http.get(f"{MAPS}/a").code == 200
            server.send_bookmarks()
        assert told(next(events)) == ("ADDED", "a")
