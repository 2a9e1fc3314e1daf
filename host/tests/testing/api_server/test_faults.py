"""What goes wrong on purpose: answers, connections, streams, and the whole server out of reach."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import pytest

from volumehost.testing.api_server import ApiServer, Rule

MAPS = "/api/v1/namespaces/default/configmaps"
NAMESPACES = "/api/v1/namespaces"


def put(server: ApiServer, name: str) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


class TestAnswers:
    def test_too_many_requests(self, server, http) -> None:
        server.faults.add(Rule(verb="list", resource="namespaces", code=429, retry_after=3, message="slow down"))
        reply = http.get(NAMESPACES)
        assert (reply.code, reply.headers["Retry-After"]) == (429, "3")
        assert reply.body["reason"] == "TooManyRequests"
        assert reply.body["message"] == "slow down"
        assert reply.body["details"] == {"retryAfterSeconds": 3}
        assert http.get(NAMESPACES).code == 200, "once, unless more was said"

    @pytest.mark.parametrize(
        ("code", "reason"),
        [(409, "Conflict"), (500, "InternalError"), (503, "ServiceUnavailable"), (410, "Expired"), (504, "Timeout")],
    )
    def test_usual_reason_of_a_code(self, server, http, code, reason) -> None:
        server.faults.add(Rule(code=code))
        assert http.get(NAMESPACES).body["reason"] == reason

    def test_body_of_a_proxy(self, server, http) -> None:
        server.faults.add(Rule(code=502, body=b"<html>Bad Gateway</html>"))
        reply = http.get(NAMESPACES)
        assert (reply.code, reply.body, reply.headers["Content-Type"]) == (
            502,
            b"<html>Bad Gateway</html>",
            "text/html",
        )

    def test_skip_and_times(self, server, http) -> None:
        server.faults.add(Rule(code=500, skip=1, times=2))
        assert [http.get(NAMESPACES).code for _ in range(4)] == [200, 500, 500, 200]

    def test_for_good_until_cleared(self, server, http) -> None:
        server.faults.add(Rule(code=500, times=None))
        assert [http.get(NAMESPACES).code for _ in range(3)] == [500] * 3
        server.faults.clear()
        assert http.get(NAMESPACES).code == 200

    def test_first_rule_that_applies(self, server, http) -> None:
        server.faults.add(Rule(code=500), Rule(code=503))
        assert [http.get(NAMESPACES).code for _ in range(2)] == [500, 503]

    @pytest.mark.parametrize(
        "rule",
        [
            Rule(verb="get"),
            Rule(resource="configmaps"),
            Rule(resource="namespaces/status"),
            Rule(user="other"),
            Rule(namespace="default"),
            Rule(name="x"),
        ],
    )
    def test_other_requests_pass(self, server, http, rule) -> None:
        server.faults.add(Rule(rule.verb, rule.resource, rule.name, rule.namespace, rule.user, code=500))
        assert http.get(NAMESPACES).code == 200

    def test_failure_after_the_work_is_a_lie(self, server, http, config_map) -> None:
        server.faults.add(Rule(verb="create", code=500, when="after"))
        assert http.post(MAPS, config_map).code == 500
        assert server.objects.get("configmaps", "settings")

    def test_slow_answer(self, server, http) -> None:
        server.faults.add(Rule(delay=0.05))
        started = time.monotonic()
        assert http.get(NAMESPACES).code == 200
        assert time.monotonic() - started >= 0.05


def test_time_of_the_server(connect) -> None:
    """Clock skew: objects, tokens and answers have the time that the server believes in."""
    with ApiServer(clock=lambda: 0.0) as server:
        reply = connect(server).get("/api/v1/namespaces/default")
    assert reply.metadata["creationTimestamp"] == "1970-01-01T00:00:00Z"
    assert reply.headers["Date"] == "Thu, 01 Jan 1970 00:00:00 GMT"


class TestConnections:
    def test_dropped_before_the_work(self, server, http, config_map) -> None:
        server.faults.add(Rule(verb="create", drop=True))
        with pytest.raises(ConnectionResetError):
            http.post(MAPS, config_map)
        assert server.objects.find("configmaps", "settings") is None

    def test_dropped_after_the_work(self, server, http, config_map) -> None:
        server.faults.add(Rule(verb="create", drop=True, when="after"))
        with pytest.raises(ConnectionResetError):
            http.post(MAPS, config_map)
        assert server.objects.get("configmaps", "settings")

    def test_answer_that_breaks_off(self, server, http, config_map) -> None:
        server.faults.add(Rule(verb="create", truncate=True))
        with pytest.raises((ConnectionResetError, HTTPException)):
            http.post(MAPS, config_map)
        assert server.objects.get("configmaps", "settings")

    def test_answer_that_never_comes(self, server, http) -> None:
        server.faults.add(Rule(hang=True))
        http.connection.timeout = 0.1
        with pytest.raises(TimeoutError):
            http.get(NAMESPACES)

    def test_unreachable_and_back_on_the_same_port(self, server, http, connect) -> None:
        put(server, "kept")
        url = server.url
        with http.watch(MAPS, resourceVersion="0") as events:
            next(events)
            with server.unreachable():
                with pytest.raises((ConnectionError, HTTPException)):
                    list(events)
                with pytest.raises(ConnectionRefusedError):
                    connect(server).get(MAPS)
        assert server.url == url
        assert connect(server).get(f"{MAPS}/kept").code == 200

    def test_connections_can_be_reset(self, server, http) -> None:
        http.get(NAMESPACES)
        server.reset_connections()
        with pytest.raises((ConnectionError, HTTPException)):
            http.get(NAMESPACES)


class TestStreams:
    @pytest.fixture(autouse=True)
    def objects(self, server) -> None:
        for name in ("a", "b", "c"):
            put(server, name)

    def read(self, http) -> list[str]:
        with http.watch(MAPS) as events:
            return [event["type"] for event in events]

    def test_ends_after_so_many_events(self, server, http) -> None:
        server.faults.add(Rule(verb="watch", after_events=2))
        assert self.read(http) == ["ADDED", "ADDED"]

    def test_error_after_so_many_events(self, server, http) -> None:
        """BR-75: an ERROR object within the stream."""
        server.faults.add(Rule(verb="watch", after_events=1, code=410, message="too old resource version: 1 (2)"))
        with http.watch(MAPS) as events:
            found = list(events)
        assert [event["type"] for event in found] == ["ADDED", "ERROR"]
        assert found[1]["object"]["reason"] == "Expired"

    def test_line_that_breaks_off(self, server, http) -> None:
        server.faults.add(Rule(verb="watch", after_events=1, truncate=True))
        with pytest.raises(json.JSONDecodeError):
            self.read(http)

    def test_reset_within_the_stream(self, server, http) -> None:
        server.faults.add(Rule(verb="watch", after_events=1, drop=True))
        with pytest.raises((ConnectionResetError, HTTPException)):
            self.read(http)

    def test_silence_within_the_stream(self, server, http) -> None:
        server.faults.add(Rule(verb="watch", after_events=3, hang=True))
        with http.watch(MAPS) as events, ThreadPoolExecutor(1) as pool:
            found = [next(events) for _ in range(3)]
            waiting = pool.submit(next, events, None)
            put(server, "d")
            assert not waiting.done()
            assert len(found) == 3
            server.reset_connections()
            with pytest.raises((ConnectionError, HTTPException)):
                waiting.result(timeout=30)

    def test_refused_as_any_request(self, server, http) -> None:
        server.faults.add(Rule(verb="watch", code=410))
        assert http.get(MAPS, watch="true").code == 410


class TestStopping:
    def test_open_watches_do_not_hold_it(self, connect) -> None:
        with ApiServer() as server:
            put(server, "a")
            server.faults.add(Rule(verb="list", resource="secrets", hang=True))
            silent = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
            watch = connect(server).send("GET", MAPS, watch="true")
            assert json.loads(next(watch))["type"] == "ADDED"
            before = {thread for thread in threading.enumerate() if thread.name.startswith("api-")}
            assert len(before) >= 3
        left = {thread for thread in before if thread.is_alive()}
        silent.close()
        watch.close()
        assert not left

    def test_a_client_that_does_not_read_does_not_hold_it(self, connect) -> None:
        with ApiServer() as server:
            data = {"a": "x" * 500_000}
            for index in range(60):  # more than fits between the two
                metadata = {"name": f"m{index}"}
                server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
            response = connect(server).send("GET", MAPS)
            before = {thread for thread in threading.enumerate() if thread.name.startswith("api-")}
        response.close()
        assert before
        assert not {thread for thread in before if thread.is_alive()}


class TestRecord:
    def test_who_did_what(self, server, http, config_map) -> None:
        http.post(MAPS, config_map)
        http.patch("/api/v1/namespaces/default/pods/none/status", {})
        http.get("/version")
        found = [(made.verb, made.permission, made.name, made.user, made.code) for made in server.requests.all()]
        assert found == [
            ("create", "configmaps", "", "admin", 201),
            ("patch", "pods/status", "none", "admin", 404),
            ("get", "", "", "admin", 200),
        ]
        assert server.requests.all(verb="patch")[0].content_type == "application/merge-patch+json"

    def test_counts(self, server, http) -> None:
        for _ in range(3):
            http.get(NAMESPACES)
        http.get("/api/v1/pods", fieldSelector="metadata.name=web")
        assert server.requests.count(verb="list") == 4
        assert server.requests.count(verb="list", resource="namespaces", user="admin") == 3
        assert server.requests.count(name="web") == 1, "the one name that a selector asks for"
        server.requests.clear()
        assert server.requests.count() == 0
