"""One call at a time for each volume; the others wait in line, for a bounded time (BR-39, CSI-WIRE-14)."""

from __future__ import annotations

import threading

import pytest

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit._services import SERVICES
from volumehost_csi_kit.server import AbortedError, Driver, VolumeLocks
from volumehost_csi_kit.server.volume_locks import _KEYS, key_of


class Context:
    """A grpc context whose caller has so many seconds left, and may hang up."""

    def __init__(self, remaining=None, *, alive=True):
        self.remaining, self.alive, self.hang_up = remaining, alive, None
        self.waiting = threading.Event()

    def time_remaining(self):
        return self.remaining

    def add_callback(self, callback):
        self.hang_up = callback
        self.waiting.set()
        return self.alive


def test_another_key_is_free():
    locks = VolumeLocks()
    with locks.hold("a"), locks.hold("b", timeout=0):
        pass


def test_the_same_key_is_aborted_and_says_who_holds_it():
    locks = VolumeLocks()
    with (
        locks.hold("volume 'v'", "NodeStageVolume"),
        pytest.raises(AbortedError, match=r"NodeStageVolume for volume 'v' has been pending for 0\.\d s: try again"),
        locks.hold("volume 'v'", "NodeUnstageVolume", timeout=0),
    ):
        pass
    with locks.hold("volume 'v'", timeout=0):
        pass


def test_nothing_is_kept():
    locks = VolumeLocks()
    with locks.hold("a"), pytest.raises(AbortedError), locks.hold("a", timeout=0):
        pass
    with pytest.raises(ZeroDivisionError), locks.hold("a"):
        raise ZeroDivisionError
    assert locks._lines == {}


def test_it_is_handed_over_in_the_order_of_coming():
    locks, order, waiting = VolumeLocks(), [], []
    with locks.hold("a"):
        for number in range(5):
            context = Context()

            def take(number=number, context=context):
                with locks.hold("a", context=context):
                    order.append(number)

            waiting.append(threading.Thread(target=take))
            waiting[-1].start()
            assert context.waiting.wait(30)
    for thread in waiting:
        thread.join(30)
    assert order == [0, 1, 2, 3, 4]


def test_never_two_at_a_time():
    locks, inside, most = VolumeLocks(), [], []

    def take():
        for _ in range(50):
            with locks.hold("a"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 400


def test_the_callers_deadline_bounds_the_wait():
    """A call that waits for its whole time could not answer in it."""
    locks = VolumeLocks()
    with locks.hold("a"), pytest.raises(AbortedError), locks.hold("a", timeout=3600, context=Context(0.1)):
        pass


def test_a_caller_that_hangs_up_leaves_the_line():
    locks, context, ended = VolumeLocks(), Context(), []

    def take():
        try:
            with locks.hold("a", context=context):
                ended.append("held")
        except AbortedError:
            ended.append("aborted")

    with locks.hold("a"):
        thread = threading.Thread(target=take)
        thread.start()
        assert context.waiting.wait(30)
        context.hang_up()
        thread.join(30)
        assert ended == ["aborted"]
    assert locks._lines == {}


def test_a_caller_that_had_gone_before():
    locks = VolumeLocks()
    with locks.hold("a"), pytest.raises(AbortedError), locks.hold("a", context=Context(alive=False)):
        pass


def test_calls_that_change_something_have_a_key_in_the_request():
    methods = {name: method for service in SERVICES.values() for name, method in service.methods.items()}
    for name, (_, field) in _KEYS.items():
        assert field in methods[name].request_class.DESCRIPTOR.fields_by_name
    reading = {name for name in methods if "Get" in name or name.startswith(("List", "Validate", "Probe", "Notify"))}
    assert set(_KEYS) == set(methods) - reading
    assert key_of("NodeGetVolumeStats") is None


class Gate:
    """Staging waits in the method until the test opens it; counts who is in there."""

    def __init__(self):
        self.begun, self.open = threading.Semaphore(0), threading.Event()

    def node_stage_volume(self, request, context):
        self.begun.release()
        self.open.wait(60)

    def node_unstage_volume(self, request, context): ...

    def node_publish_volume(self, request, context): ...

    def node_unpublish_volume(self, request, context): ...


@pytest.fixture
def gate():
    """The node service, opened at the end."""
    made = Gate()
    yield made
    made.open.set()


def staging(channel, capability, volume_id="v"):
    request = csi.NodeStageVolumeRequest(volume_id=volume_id, staging_target_path="/s", volume_capability=capability())
    return stubs.NodeStub(channel).NodeStageVolume.future(request, timeout=60)


def test_calls_of_one_volume_through_the_server(served, gate, capability, failure):
    channel = served(Driver("disk.example.com", "1", node=gate, node_id="n", queue_seconds=0))
    first, other = staging(channel, capability), staging(channel, capability, "other")
    assert gate.begun.acquire(timeout=30)
    assert gate.begun.acquire(timeout=30)
    request = csi.NodeUnstageVolumeRequest(volume_id="v", staging_target_path="/s")
    code, message = failure(stubs.NodeStub(channel).NodeUnstageVolume, request)
    assert code == "ABORTED"
    assert message.startswith("NodeStageVolume for volume 'v' has been pending")
    gate.open.set()
    first.result()
    other.result()
    stubs.NodeStub(channel).NodeUnstageVolume(request, timeout=30)


def test_without_a_queue_the_author_sees_to_it(served, gate, capability):
    channel = served(Driver("disk.example.com", "1", node=gate, node_id="n", queue_seconds=None))
    calls = [staging(channel, capability), staging(channel, capability)]
    assert gate.begun.acquire(timeout=30)
    assert gate.begun.acquire(timeout=30)
    gate.open.set()
    for call in calls:
        call.result()


def test_fifty_calls_of_one_volume_all_succeed(served, gate, capability):
    """BR-39: nobody is told ABORTED while they can all be done in time."""
    gate.open.set()
    channel = served(Driver("disk.example.com", "1", node=gate, node_id="n", workers=8))
    calls = [staging(channel, capability) for _ in range(50)]
    assert [call.result() for call in calls] == [csi.NodeStageVolumeResponse()] * 50
