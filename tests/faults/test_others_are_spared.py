"""What is wrong with one volume or one driver costs the others nothing (BR-30, BR-52, BR-53)."""

from __future__ import annotations

import math
import time

import pytest
from world import NAME, Life, World, configure, refused, until

from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root


def test_br53_what_others_do_brings_no_failing_claim_back(world: World) -> None:
    """Their snapshots come and go; it has its backoff all the same."""
    world.driver()
    world.begin()
    world.prepare()
    failing, busy = Life(world, "failing"), Life(world, "busy")
    busy.mount()
    failing.fault("CreateVolume", Rule(times=None, code="INTERNAL"))
    began = time.monotonic()
    with pytest.raises(VolumesFailedError):
        failing.mount(attempts=1)
    for _ in range(4):
        busy.snap()
        until(busy.has_snapshot, "the snapshot is ready")
        busy.unsnap()
        until(busy.snapshot_is_gone, "the snapshot is gone")
    attempts = len([name for name, _ in failing.calls() if name == "CreateVolume"])
    assert attempts <= 2 + math.log2(1 + time.monotonic() - began)
    world.drivers[NAME].clear_script()
    for life in (failing, busy):
        life.unmount()
        life.delete()
    world.assert_nothing_left()


def test_a_driver_that_hangs_holds_up_no_other_one(world: World) -> None:
    """Though more of its volumes are waited for than there are workers."""
    call = "CreateVolume"
    configure(world.root, rpc_timeout=120, create_timeout=120)
    hung = "hung.csi.example.com"
    world.driver()
    world.driver(hung)
    world.begin()
    world.prepare()
    world.prepare(hung)
    world.drivers[hung].script(Rule(call, times=None, hang=True))
    lives = [Life(world, f"hung-{number}", driver=hung) for number in range(20)]
    for life in lives:
        with pytest.raises(WaitTimeoutError):
            life.mount(timeout=0)
    until(lambda: len(world.drivers[hung].calls(call)) >= 8, "it hangs")
    other = Life(world, "other")
    other.mount(timeout=40)
    other.unmount()
    other.delete()
    until(other.is_gone, "the volume of the driver that works is gone", 40)
    world.drivers[hung].clear_script()
    world.drivers[hung].release()
    world.manager.unmount_all(timeout=60)
    for life in lives:
        life.delete()
    world.assert_nothing_left(60)


def test_a_driver_that_is_gone_holds_up_no_other_one(world: World) -> None:
    """A host that starts waits for it to be there, for each of its claims; the wait tells so."""
    gone = "gone.csi.example.com"
    world.driver()
    world.driver(gone)
    world.begin()
    world.prepare()
    world.prepare(gone)
    lives = [Life(world, f"gone-{number}", driver=gone) for number in range(10)]
    world.drivers[gone].kill()
    world.end()
    world.begin()
    for life in lives:
        with pytest.raises(WaitTimeoutError):
            life.mount(timeout=0)
    refused(lives[0].mount, gone)
    other = Life(world, "other")
    other.mount(timeout=40)
    other.unmount()
    other.delete()
    world.drivers[gone].start()
    for life in lives:
        life.mount()
    world.manager.unmount_all(timeout=60)
    for life in lives:
        life.delete()
    world.assert_nothing_left()
