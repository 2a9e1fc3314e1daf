"""Nested pending operations (NPO-01 to -18, SCEN-10 to -13)."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from volumehost.errors import AlreadyRunningError, BackoffError
from volumehost.node.execution.pending import OperationKey, PendingOperations


@pytest.fixture
def pending(clock):
    return PendingOperations(clock)


@pytest.mark.parametrize(
    ("one", "other", "matches"),
    [
        (("v", "a"), ("v", "a"), True),
        (("v", "a"), ("v", "b"), False),
        (("v", "a"), ("v", ""), True),
        (("v", ""), ("v", ""), True),
        (("v", "a", "n"), ("v", "a", "m"), False),
        (("v", "a", "n"), ("v", "a", ""), True),
        (("v", "", "n"), ("v", "a", ""), True),
        (("v",), ("w",), False),
        (("",), ("",), False),
    ],
)
def test_npo02_when_keys_match(one, other, matches):
    assert OperationKey(*one).matches(OperationKey(*other)) is matches
    assert OperationKey(*other).matches(OperationKey(*one)) is matches


def test_npo01_an_empty_volume_never_blocks(pending):
    first = pending.start(OperationKey(""), "verify")
    pending.start(OperationKey(""), "verify")
    assert pending.finish(first, ValueError()) == 0
    assert pending.is_safe_to_retry(OperationKey(""), "verify")


def test_npo11_a_running_match_refuses_and_names_the_key(pending):
    pending.start(OperationKey("v", "a"), "volume_mount")
    with pytest.raises(AlreadyRunningError) as caught:
        pending.start(OperationKey("v"), "unmount_device")
    assert "Failed to create operation with name {volumeName=v podName= nodeName=}" in str(caught.value)
    assert "already executing" in str(caught.value)


def test_scen11_two_pods_unmount_at_once_and_a_mount_of_the_volume_waits(pending):
    pending.start(OperationKey("v", "a"), "volume_unmount")
    pending.start(OperationKey("v", "b"), "volume_unmount")
    with pytest.raises(AlreadyRunningError):
        pending.start(OperationKey("v"), "volume_mount")


def test_scen12_backoff_refuses_the_same_operation_and_no_other(pending, clock):
    key = OperationKey("v", "a")
    assert pending.finish(pending.start(key, "volume_mount"), ValueError("bad key")) == 0.5
    clock.move(0.4)
    with pytest.raises(BackoffError) as caught:
        pending.start(key, "volume_mount")
    assert caught.value.retry_in == pytest.approx(0.1)
    assert 'Last error: "bad key"' in str(caught.value)
    pending.start(OperationKey("w", "a"), "volume_mount")


def test_npo12_another_operation_resets_the_backoff(pending, clock):
    key = OperationKey("v", "a")
    for _ in range(3):
        pending.finish(pending.start(key, "volume_mount"), ValueError())
        clock.move(100)
    pending.finish(pending.start(key, "volume_mount"), ValueError())
    entry = pending.start(key, "volume_unmount")
    assert entry.backoff.attempts == 0
    assert pending.finish(entry, ValueError()) == 0.5


def test_npo13_the_name_that_ran_last_is_the_one_compared(pending, clock):
    key = OperationKey("v", "a")
    pending.finish(pending.start(key, "volume_mount"), ValueError())
    clock.move(1)
    pending.finish(pending.start(key, "volume_unmount"), ValueError())
    with pytest.raises(BackoffError):
        pending.start(key, "volume_unmount")


def test_npo14_a_volume_wide_operation_takes_over_a_failed_entry(pending, clock):
    pending.finish(pending.start(OperationKey("v", "a"), "volume_unmount"), ValueError())
    clock.move(1)
    entry = pending.start(OperationKey("v"), "volume_mount")
    assert entry.key == OperationKey("v")
    assert pending.is_pending(OperationKey("v", "b"))
    assert pending.finish(entry, None) == 0
    assert pending.find(OperationKey("v", "a")) is None


def test_npo16_success_forgets_and_failure_is_kept(pending, clock):
    key = OperationKey("v", "a")
    pending.finish(pending.start(key, "volume_mount"), None)
    assert pending.find(key) is None
    pending.finish(pending.start(key, "volume_mount"), ValueError("x"))
    assert str(pending.find(key).backoff.error) == "x"


def test_npo16_failures_that_expired_long_ago_are_dropped(pending, clock):
    pending.finish(pending.start(OperationKey("v"), "volume_mount"), ValueError())
    clock.move(60)
    pending.collect()
    assert pending.find(OperationKey("v")) is not None
    clock.move(1000)
    pending.start(OperationKey("w"), "volume_mount")
    pending.collect()
    assert pending.find(OperationKey("v")) is None
    assert pending.find(OperationKey("w")) is not None


def test_npo18_safe_to_retry(pending, clock):
    key = OperationKey("v", "a")
    assert pending.is_safe_to_retry(key, "volume_mount")
    entry = pending.start(key, "volume_mount")
    assert not pending.is_safe_to_retry(key, "volume_mount")
    pending.finish(entry, ValueError())
    assert not pending.is_safe_to_retry(key, "volume_mount")
    assert pending.is_safe_to_retry(key, "volume_unmount")
    clock.move(0.6)
    assert pending.is_safe_to_retry(key, "volume_mount")


def test_br53_a_changed_spec_resets_what_failed_and_leaves_what_runs(pending):
    failed, running = OperationKey("v", "a"), OperationKey("v", "b")
    pending.finish(pending.start(failed, "volume_mount"), ValueError())
    pending.start(running, "volume_mount")
    pending.reset(OperationKey("v"))
    assert pending.find(failed) is None
    assert pending.is_pending(running)


def test_npo03_a_running_match_comes_before_an_equal_key(pending):
    pending.finish(pending.start(OperationKey("v", "a"), "volume_unmount"), ValueError())
    pending.start(OperationKey("v", "b"), "volume_unmount")
    found = pending.find(OperationKey("v"))
    assert found.running
    assert found.key.pod == "b"
    assert pending.find(OperationKey("v", "a")).key.pod == "a"


def test_an_operation_that_was_never_handed_over_leaves_no_trace(pending):
    key = OperationKey("v", "a")
    pending.cancel(pending.start(key, "volume_mount"))
    assert pending.find(key) is None
    pending.finish(pending.start(key, "volume_mount"), ValueError())
    assert pending.find(key) is not None


class Machine(RuleBasedStateMachine):
    """Whatever is started and finished: no two running operations match, and nothing running is ever forgotten."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.pending = PendingOperations(lambda: self.now)
        self.running = []

    keys = st.builds(OperationKey, st.sampled_from(["v", "w"]), st.sampled_from(["", "a", "b"]))

    @rule(key=keys, name=st.sampled_from(["mount", "unmount"]))
    def start(self, key, name):
        matches = [entry for entry in self.running if entry.key.matches(key)]
        try:
            entry = self.pending.start(key, name)
        except AlreadyRunningError:
            assert matches
        except BackoffError:
            assert not matches
        else:
            assert not matches
            self.running.append(entry)

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 20), fails=st.booleans())
    def finish(self, index, fails):
        entry = self.running.pop(index % len(self.running))
        retry_in = self.pending.finish(entry, ValueError() if fails else None)
        assert (retry_in > 0) is fails

    @rule(seconds=st.floats(0, 300))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def collect(self):
        self.pending.collect()

    @rule(key=keys)
    def reset(self, key):
        self.pending.reset(key)

    @invariant()
    def running_is_known(self):
        assert sorted(map(id, self.pending.running())) == sorted(map(id, self.running))
        for entry in self.running:
            assert self.pending.is_pending(entry.key)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
