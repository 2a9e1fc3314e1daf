"""Events become Event objects; what repeats is counted (BR-53, section 19)."""

import re
import threading

import pytest

from volumehost.api.objects import Event, ObjectReference
from volumehost.errors import StoreError
from volumehost.hosts.events import ApiEventRecorder
from volumehost.hosts.node_host import NodeHost


@pytest.fixture
def recorder(store):
    return ApiEventRecorder(lambda: store, "kubelet", "n1", wall_clock=lambda: 1_700_000_000.0)


def test_an_event_becomes_an_object(store, recorder, pod):
    recorder.event(pod({"name": "v", "emptyDir": {}}), "Warning", "FailedMount", "no such plugin")
    assert recorder.flush(10)
    (event,) = store.list(Event, "default").items
    assert (event.type, event.reason, event.message, event.count) == ("Warning", "FailedMount", "no such plugin", 1)
    assert (event.involved_object.kind, event.involved_object.name, event.involved_object.uid) == (
        "Pod",
        "web",
        "uid-1",
    )
    assert (event.source.component, event.source.host) == ("kubelet", "n1")
    assert event.first_timestamp == event.last_timestamp == "2023-11-14T22:13:20Z"


def test_br53_identical_messages_are_collapsed_with_a_count(store, recorder, pod):
    web = pod({"name": "v", "emptyDir": {}})
    for _ in range(3):
        recorder.event(web, "Warning", "FailedMount", "again")
        assert recorder.flush(10)
    for _ in range(5):
        recorder.event(web, "Warning", "FailedMount", "again")
    recorder.event(web, "Warning", "FailedMount", "something else")
    assert recorder.flush(10)
    events = {event.message: event.count for event in store.list(Event, "default").items}
    assert events == {"again": 8, "something else": 1}


def test_a_counted_event_that_somebody_deleted_is_made_anew(store, recorder, pod):
    web = pod({"name": "v", "emptyDir": {}})
    recorder.event(web, "Normal", "R", "m")
    assert recorder.flush(10)
    (event,) = store.list(Event, "default").items
    store.delete(Event, event.metadata.name, "default")
    recorder.event(web, "Normal", "R", "m")
    assert recorder.flush(10)
    (again,) = store.list(Event, "default").items
    assert (again.count, again.metadata.name != event.metadata.name) == (1, True)


def test_the_event_of_an_object_with_a_long_name_has_one_that_is_valid(store, recorder, pod):
    named = pod({"name": "v", "emptyDir": {}})
    named.metadata.name = f"{'a' * 199}-{'b' * 20}"
    recorder.event(named, "Normal", "Reason", "message")
    assert recorder.flush(20)
    (event,) = store.list(Event).items
    assert re.fullmatch(r"a{199}\.[0-9a-f]{16}", event.metadata.name)


def test_a_reference_will_do_in_the_place_of_the_object(store, recorder):
    reference = ObjectReference(api_version="v1", kind="PersistentVolume", name="pv1", uid="u")
    recorder.event(reference, "Warning", "FailedMountOnFilesystemMismatch", "m")
    assert recorder.flush(10)
    (event,) = store.list(Event).items
    assert event.involved_object.kind == "PersistentVolume"
    assert event.metadata.namespace == "default"


def test_an_api_that_does_not_answer_fails_nobody_and_stops_nothing(store, pod):
    answers = [StoreError("gone"), store]

    def api():
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    recorder = ApiEventRecorder(api, "kubelet", "n1")
    web = pod({"name": "v", "emptyDir": {}})
    recorder.event(web, "Warning", "R", "lost")
    assert recorder.flush(10)
    recorder.event(web, "Warning", "R", "kept")
    assert recorder.flush(10)
    assert [event.message for event in store.list(Event, "default").items] == ["kept"]


def test_recording_does_not_wait_for_a_slow_api(store, pod):
    gate = threading.Event()

    def api():
        gate.wait(30)
        return store

    recorder = ApiEventRecorder(api, "kubelet", "n1")
    recorder.event(pod({"name": "v", "emptyDir": {}}), "Normal", "R", "m")
    assert not recorder.flush(0.05)
    gate.set()
    assert recorder.flush(10)
    assert len(store.list(Event, "default").items) == 1


def test_the_node_host_records_in_its_api(store, pod):
    host = NodeHost("/r", api=store, node_name="n1")
    host.get_event_recorder().event(pod({"name": "v", "emptyDir": {}}), "Normal", "R", "m")
    host.flush_events(10)
    assert len(store.list(Event, "default").items) == 1
    assert host.get_event_recorder() is host.get_event_recorder()


def test_br53_messages_that_differ_each_time_are_combined_after_some(store, pod):
    now = [1_700_000_000.0]
    recorder = ApiEventRecorder(lambda: store, "kubelet", "n1", wall_clock=lambda: now[0])
    web = pod({"name": "v", "emptyDir": {}})
    for number in range(25):
        recorder.event(web, "Warning", "FailedMount", f"no answer to request {number}")
        recorder.event(web, "Warning", "FailedMapVolume", "the same")
        assert recorder.flush(10)
    events = {event.message: event.count for event in store.list(Event, "default").items}
    assert len(events) == 12
    assert events["(combined from similar events): no answer to request 24"] == 15
    assert events["the same"] == 25
    assert events["no answer to request 9"] == 1
    now[0] += 601
    recorder.event(web, "Warning", "FailedMount", "no answer to request 25")
    assert recorder.flush(10)
    assert "no answer to request 25" in {event.message for event in store.list(Event, "default").items}
