"""Health is asked and shown; slowness is never acted on (BR-30)."""

from __future__ import annotations

import pytest

from volumehost.storage_driver import DriverState
from volumehost_csi.drivers.health import Health
from volumehost_csi_kit.fake import Rule

FAKE = "fake.example.com"


@pytest.fixture
def changes():
    return []


@pytest.fixture
def health(called, changes):
    made = Health(lambda: [called.instance], changes.append, slow=0.2)
    yield made
    made.close()


def test_br30_a_slow_probe_marks_slow_and_nothing_else(health, called, fake, changes, wait_until):
    fake.script(Rule("Probe", hang=True))
    health.check()
    state, reason = health.of(called.instance)
    assert state is DriverState.SLOW
    assert "longer than 0.2 s" in reason
    assert called.node.get_info().node_id == "node-1"
    health.check()  # the one that is on its way is not asked again
    assert len(fake.calls("Probe")) == 1
    fake.release()
    wait_until(lambda: health.of(called.instance) == (DriverState.READY, ""), "the answer")
    assert changes == [FAKE, FAKE]


@pytest.mark.parametrize(
    ("rule", "state", "words"),
    [
        (Rule("Probe", code="FAILED_PRECONDITION", message="disk on fire"), DriverState.FAILED, "disk on fire"),
        (Rule("Probe", reply={"ready": False}), DriverState.SLOW, "not ready yet"),
        (Rule("Probe", code="UNIMPLEMENTED"), DriverState.READY, ""),
        (Rule("Probe", reply={}), DriverState.READY, ""),
    ],
)
def test_what_a_probe_says(health, called, fake, wait_until, rule, state, words):
    """CSI-WIRE-19."""
    fake.script(rule)
    health.check()
    wait_until(lambda: not health._pending, "the answer")
    found, reason = health.of(called.instance)
    assert found is state
    assert words in reason


def test_a_dead_driver_has_failed(health, called, fake, wait_until):
    fake.stop(0)
    health.check()
    wait_until(lambda: health.of(called.instance)[0] is DriverState.FAILED, "the failure")


def test_its_own_rounds_show_in_the_status(fake, new_drivers, root, status_of, wait_until):
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    fake.script(Rule("Probe", code="FAILED_PRECONDITION", message="disk on fire", times=None))
    drivers.start()
    status = wait_until(lambda: (s := status_of(drivers, FAKE)).state is DriverState.FAILED and s, "the health")
    assert "disk on fire" in status.error
    assert drivers.node_client(FAKE).get_info().node_id == "node-1"
