"""Tokens of service accounts: what they are for, how long, bound to what."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from volumehost.testing.api_server import ApiServer

TOKEN = "/api/v1/namespaces/default/serviceaccounts/robot/token"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock) -> Iterator[ApiServer]:
    with ApiServer(clock=clock) as made:
        made.objects.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
        yield made


def ask(http, **spec: Any) -> Any:
    return http.post(TOKEN, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_shape(http, clock) -> None:
    reply = ask(http, audiences=["vault"], expirationSeconds=900)
    assert reply.code == 201
    assert reply.body["status"]["expirationTimestamp"] == "2027-01-15T08:15:00Z"
    found = claims(reply.body["status"]["token"])
    assert (found["aud"], found["exp"], found["sub"]) == (
        ["vault"],
        clock.now + 900,
        "system:serviceaccount:default:robot",
    )
    assert found["kubernetes.io"]["serviceaccount"]["name"] == "robot"


def test_usual_time_and_audience(http, clock) -> None:
    found = claims(ask(http).body["status"]["token"])
    assert (found["exp"] - clock.now, found["aud"]) == (3600, ["https://kubernetes.default.svc"])


@pytest.mark.parametrize("seconds", [599, 0, 2**32 + 1])
def test_too_short_and_too_long(http, seconds) -> None:
    reply = ask(http, expirationSeconds=seconds)
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "spec.expirationSeconds")


def test_account_that_is_not_there(server, http) -> None:
    server.objects.delete("serviceaccounts", "robot")
    assert ask(http).code == 404


class TestUse:
    def test_by_its_account(self, server, http, connect) -> None:
        robot = connect(server, token=ask(http).body["status"]["token"])
        assert robot.post(WHO, {}).body["status"]["userInfo"] == {
            "username": "system:serviceaccount:default:robot",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        }

    def test_until_it_expires(self, server, http, connect, clock) -> None:
        robot = connect(server, token=ask(http, expirationSeconds=600).body["status"]["token"])
        clock.now += 599
        assert robot.get("/version").code == 200
        clock.now += 1
        assert robot.get("/version").code == 401

    def test_not_for_others_audiences(self, server, http, connect) -> None:
        assert connect(server, token=ask(http, audiences=["vault"]).body["status"]["token"]).get("/version").code == 401

    def test_not_once_the_account_is_another(self, server, http, connect) -> None:
        robot = connect(server, token=ask(http).body["status"]["token"])
        server.recreate("serviceaccounts", "robot")
        assert robot.get("/version").code == 401

    def test_review(self, http) -> None:
        token = ask(http, audiences=["vault"]).body["status"]["token"]

        def review(*audiences: str) -> bool:
            spec = {"token": token, "audiences": list(audiences)}
            return http.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": spec}).body["status"][
                "authenticated"
            ]

        assert (review("vault"), review("other"), review()) == (True, False, False)


class TestBound:
    @pytest.fixture
    def uid(self, server, pod) -> str:
        pod["spec"]["serviceAccountName"] = "robot"
        return server.objects.put(pod)["metadata"]["uid"]

    def reference(self, uid: str, name: str = "web") -> dict[str, str]:
        return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}

    def test_to_a_pod_for_its_life(self, server, http, connect, uid) -> None:
        token = ask(http, boundObjectRef=self.reference(uid)).body["status"]["token"]
        assert claims(token)["kubernetes.io"]["pod"] == {"name": "web", "uid": uid}
        robot = connect(server, token=token)
        assert robot.get("/version").code == 200
        server.objects.delete("pods", "web")
        assert robot.get("/version").code == 401

    def test_other_uid(self, http, uid) -> None:
        reply = ask(http, boundObjectRef=self.reference("other"))
        assert reply.code == 409
        assert "does not match the UID in record" in reply.body["message"]

    def test_missing_pod(self, http, uid) -> None:
        assert ask(http, boundObjectRef=self.reference(uid, "none")).code == 404

    def test_pod_of_another_account(self, server, http, uid) -> None:
        server.objects.patch("pods", "web", {"spec": {"serviceAccountName": "other"}})
        assert ask(http, boundObjectRef=self.reference(uid)).code == 400
