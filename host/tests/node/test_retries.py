"""A volume that fails for ten minutes, its cause mended, its pod wished for again (BR-53)."""

import logging
import threading

import pytest

from volumehost.errors import OperationError, StorageDriverError, VolumesFailedError, WaitTimeoutError
from volumehost.node.execution import backoff

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


@pytest.fixture
def pass_time(clock, until):
    """Moves the clock of a manager, a few seconds at a time; what becomes due is done in between."""

    def run(node, seconds, step=1):
        parts = node.parts
        for _ in range(0, seconds, step):
            clock.move(step)
            passed = threading.Event()
            parts.timers.call_later(0, passed.set)
            with parts.timers._condition:  # a clock that stands still wakes nobody
                parts.timers._condition.notify()
            assert passed.wait(30)
            until(lambda: not parts.pending.running())

    return run


@pytest.fixture
def failing(bind):
    """A plugin whose set-up fails until it is mended."""
    plugin = bind()

    def fail():
        raise OperationError("the server says no")

    plugin.trouble["set_up"] = fail
    plugin.mend = plugin.trouble.clear
    return plugin


def test_br53_ten_minutes_of_failures_are_a_dozen_attempts_and_one_line(
    manager, failing, nfs, clock, pass_time, until, caplog
):
    caplog.set_level(logging.INFO, "volumehost")
    node = manager(failing, clock=clock)
    with pytest.raises(WaitTimeoutError):
        node.mount_pod(_pod(nfs()), timeout=0)
    until(lambda: failing.count("set_up") == 1 and not node.parts.pending.running())
    caplog.clear()
    pass_time(node, 130)
    pass_time(node, 470, step=10)
    # 0.5, 1, 2 ... 64, 122 seconds, each up to a tenth longer: 9 until 127.5 s, then one in about two minutes.
    assert 10 <= failing.count("set_up") <= 13
    assert "the server says no" not in caplog.text, "it was told when it failed first"
    assert len(caplog.records) <= 3
    failing.mend()
    pass_time(node, 150, step=10)
    assert node.status()[0].ready, "within the longest delay"
    assert "succeeded, after" in caplog.text


def test_br53_another_error_is_told_and_numbers_do_not_make_another_error(
    manager, failing, nfs, clock, pass_time, until, caplog
):
    node = manager(failing, clock=clock)
    with pytest.raises(WaitTimeoutError):
        node.mount_pod(_pod(nfs()), timeout=0)
    until(lambda: failing.count("set_up") == 1 and not node.parts.pending.running())

    def age():
        raise OperationError(f"no answer for {clock.now:.0f} s")

    failing.trouble["set_up"] = age
    pass_time(node, 60)
    told = [
        each
        for each in caplog.records
        if each.name == "volumehost.node.execution.executor" and "failed" in each.message
    ]
    assert [("server" in each.message, "no answer" in each.message) for each in told] == [(True, False), (False, True)]


@pytest.fixture
def patient(monkeypatch):
    """The first retry is far away."""
    monkeypatch.setattr(backoff, "INITIAL_DELAY", 3600.0)
    monkeypatch.setattr(backoff, "MAXIMUM_DELAY", 7200.0)


def test_br53_who_asks_for_the_pod_again_has_it_tried_at_once(manager, failing, nfs, patient):
    node = manager(failing)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs()), timeout=30, attempts=1)
    assert node.status()[0].volumes[0].retry_in > 3000
    with pytest.raises(VolumesFailedError) as again:
        node.mount_pod(_pod(nfs()), timeout=30, attempts=1)
    assert failing.count("set_up") == 2
    assert "1 attempt failed" in str(again.value.details)
    failing.mend()
    assert node.mount_pod(_pod(nfs()), timeout=30).ready


def test_br53_a_mere_look_at_the_pod_does_not_cut_the_backoff_short(manager, failing, nfs, patient):
    node = manager(failing)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs()), timeout=30, attempts=1)
    (record,) = node.parts.populator.records()
    for _ in range(3):
        node.sync_pod(record.pod, at_once=False)
    node._now.mounting.sync()
    node.parts.reconciler.resync()
    assert failing.count("set_up") == 1


def test_br53_a_changed_volume_is_tried_at_once(manager, failing, claimed, data, tmp_path, patient):
    node = manager(failing)
    claimed(node.api)
    source = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(source), timeout=30, attempts=1)
    failing.mend()
    from volumehost.api.objects import PersistentVolume

    node.api.patch(PersistentVolume, "pv-claim", {"spec": {"mountOptions": ["ro"]}})
    failing.mount_options = True
    (record,) = node.parts.populator.records()
    node.sync_pod(record.pod, at_once=False)
    assert node.wait_for_pod(record.pod, timeout=30).ready


def test_br53_a_pod_that_comes_again_starts_afresh(manager, failing, nfs, patient):
    node = manager(failing)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs()), timeout=30, attempts=1)
    node.unmount_pod("web", timeout=30)
    failing.mend()
    assert node.mount_pod(_pod(nfs()), timeout=30).ready


def test_br53_a_change_of_the_driver_ends_the_backoff_of_what_its_calls_failed_for(manager, bind, nfs, patient, until):
    """Not more often than once a minute: the health of a driver may go to and fro."""
    plugin, name = bind(), "d.csi.example.com"

    def fail():
        raise StorageDriverError("no such pool", driver=name, code="INTERNAL")

    plugin.trouble["set_up"] = fail
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs()), timeout=30, attempts=1)
    node.parts.reconciler.driver_changed("another.csi.example.com")
    assert plugin.count("set_up") == 1
    node.parts.reconciler.driver_changed(name)
    until(lambda: plugin.count("set_up") == 2 and not node.parts.pending.running())
    for _ in range(3):
        node.parts.reconciler.driver_changed(name)
    assert plugin.count("set_up") == 2


def test_the_log_tells_what_was_done_to_which_volume_for_which_pod(manager, bind, nfs, until, caplog):
    caplog.set_level(logging.INFO, "volumehost.node.execution")
    node = manager(bind())
    uid = node.mount_pod(_pod(nfs()), timeout=20).uid
    node.unmount_pod("web", timeout=20)
    done = "operation volume_{} succeeded: volume example.com/bind/{}-v, pod {}".format
    until(lambda: caplog.messages == [done("mount", uid, uid), done("unmount", uid, uid)])
