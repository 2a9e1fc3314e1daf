"""A manager that only writes down what it is told, for the sources of pods."""

import threading
from types import SimpleNamespace

import pytest

from volumehost.api.store import EmbeddedStore
from volumehost.errors import VolumeHostError


class RecordingManager:
    """Stands in for the VolumeManager: work is done by whoever calls :meth:`do_work`, at once or later."""

    def __init__(self, api, node_name="node"):
        self.api = api
        self.host = SimpleNamespace(get_node_name=lambda: node_name, get_event_recorder=lambda: self)
        self.parts = SimpleNamespace(later=self._later, status=SimpleNamespace(note_of=None, notes=None))
        self.ending = SimpleNamespace(kept_by=None)
        self.told, self.waiting, self.events, self.in_use = [], [], [], set()
        self.trouble = {}
        self._lock = threading.Lock()

    def event(self, involved, event_type, reason, message):
        self.events.append((involved.metadata.name, event_type, reason, message))

    def _later(self, seconds, function, *, lane=""):
        with self._lock:
            self.waiting.append((seconds, function))

    def do_work(self, longest=1.0):
        """Do what is due within so many seconds; returns the delays of the rest."""
        while True:
            with self._lock:
                due = next((each for each in self.waiting if each[0] <= longest), None)
                if due is None:
                    return [seconds for seconds, _ in self.waiting]
                self.waiting.remove(due)
            due[1]()

    def _tell(self, what, name):
        if error := self.trouble.get(name):
            raise error
        self.told.append((what, name))

    def sync_pod(self, pod, *, at_once=True):
        self._tell("mount", pod.metadata.name)

    def end_pod(self, uid, namespace, name):
        self._tell("end", name)

    def set_known_pods(self, pods):
        self.told.append(("known", sorted(pod.metadata.name for pod in pods)))

    def may_be_in_use(self, uid):
        return uid in self.in_use


@pytest.fixture
def store(tmp_path):
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as opened:
        yield opened


@pytest.fixture
def manager(store):
    return RecordingManager(store)


@pytest.fixture
def refusal():
    return VolumeHostError("not now", action="doing it")


@pytest.fixture
def pod_document():
    def make(name="web", **metadata):
        container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]},
        }

    return make
