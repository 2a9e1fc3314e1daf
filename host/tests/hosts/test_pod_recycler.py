"""Recycling with a pod of the cluster (RECYCLE-04 to -07), on an API server; the test is who runs pods."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from volumehost.api.convert import to_object
from volumehost.api.kubernetes import connect
from volumehost.api.objects import Pod
from volumehost.errors import OperationError, SpecError, TransientOperationError
from volumehost.hosts.pod_recycler import PodRecycler
from volumehost.sdk.recycler import recycler_pod_manifest
from volumehost.testing.api_server import ApiServer

PATIENCE = 30.0
NAME = "recycler-for-pv"


@pytest.fixture
def server():
    with ApiServer() as server:
        yield server


@pytest.fixture
def recycler(server, tmp_path: Path):
    client = connect(server.kubeconfig(tmp_path / "kubeconfig"))
    yield PodRecycler(client, look_seconds=0.1)
    client.close()


def template() -> Pod:
    manifest = recycler_pod_manifest()
    manifest["spec"]["volumes"][0]["hostPath"] = {"path": "/srv/v"}
    return to_object(Pod, manifest)


class Run(threading.Thread):
    """One recycling, in a thread of its own."""

    def __init__(self, recycler: PodRecycler) -> None:
        super().__init__(daemon=True)
        self._recycler = recycler
        self.error: BaseException | None = None
        self.told: list[tuple[str, str]] = []
        self.start()

    def run(self) -> None:
        try:
            self._recycler.recycle("pv", template(), lambda kind, message: self.told.append((kind, message)))
        except OperationError as error:
            self.error = error

    def end(self) -> BaseException | None:
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.error


@pytest.fixture
def run(server, recycler):
    """A recycling whose pod is there."""
    running = Run(recycler)
    pause = threading.Event()
    for _ in range(2000):
        if server.objects.find("pods", NAME) is not None:
            break
        pause.wait(0.01)
    return running


def finish(server, phase: str, message: str = "") -> None:
    server.objects.patch("pods", NAME, {"status": {"phase": phase, "message": message}})


def test_a_pod_that_succeeds(server, run) -> None:
    pod = server.objects.get("pods", NAME)
    assert pod["spec"]["activeDeadlineSeconds"] == 60
    finish(server, "Succeeded")
    assert run.end() is None
    assert server.objects.find("pods", NAME) is None, "it is always deleted"


@pytest.mark.parametrize(("message", "told"), [("no space", "no space"), ("", "pod.Status.Message unknown")])
def test_a_pod_that_fails(server, run, message, told) -> None:
    finish(server, "Failed", message)
    error = run.end()
    assert error is not None
    assert told in str(error)
    assert server.objects.find("pods", NAME) is None


def test_a_pod_that_is_deleted(server, run) -> None:
    server.objects.delete("pods", NAME)
    assert "recycler pod was deleted" in str(run.end())


def test_its_events_are_handed_on(server, run) -> None:
    uid = server.objects.get("pods", NAME)["metadata"]["uid"]
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}}
    about = {"kind": "Pod", "namespace": "default", "name": NAME, "uid": uid}
    server.objects.put({**event, "involvedObject": about, "type": "Normal", "reason": "Started", "message": "it runs"})
    pause = threading.Event()
    for _ in range(2000):
        if run.told:
            break
        pause.wait(0.01)
    finish(server, "Succeeded")
    run.end()
    assert run.told == [("Normal", "it runs")]


def test_a_pod_of_an_earlier_try_is_deleted_and_tried_again_later(server, recycler) -> None:
    """RECYCLE-05: its result cannot be trusted."""
    pod = recycler_pod_manifest()
    pod["metadata"] = {"name": NAME, "namespace": "default"}
    pod["spec"]["volumes"][0]["emptyDir"] = {}
    server.objects.put(pod)
    with pytest.raises(TransientOperationError, match="old recycler pod found"):
        recycler.recycle("pv", template(), lambda _kind, _message: None)
    assert server.objects.find("pods", NAME) is None


def test_a_template_without_a_volume(recycler) -> None:
    pod = template()
    pod.spec.volumes = []
    with pytest.raises(SpecError, match="does not contain any volume"):
        recycler.recycle("pv", pod, lambda _kind, _message: None)


def test_a_pod_that_may_not_be_made(server, recycler) -> None:
    with server.deny(verb="create", resource="pods"), pytest.raises(OperationError, match="unexpected error creating"):
        recycler.recycle("pv", template(), lambda _kind, _message: None)
