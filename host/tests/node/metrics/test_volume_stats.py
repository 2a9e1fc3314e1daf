"""Usage and health of claims, measured from time to time and never by a scrape (METRIC-06, CONST-10, BR-52)."""

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from volumehost import VolumeMetrics
from volumehost.api.objects import Event
from volumehost.errors import FsInfoMetricsError, NotSupportedMetricsError
from volumehost.metrics.stats_table import DEADLINE_SECONDS, STALE_SECONDS
from volumehost.metrics.volume_stats import PERIOD_SECONDS, VolumeStats
from volumehost.mount.mounter import LinuxMounter
from volumehost.sdk import StatFsMetrics

pytestmark = pytest.mark.root

FULL = VolumeMetrics(time=1.0, used=10, capacity=100, available=90, inodes=7, inodes_used=3, inodes_free=4)


@pytest.fixture
def measuring(bind):
    """A plugin whose volumes are what ``answers`` says, by the path that they serve: metrics, an error, or a call."""

    class Measuring(bind):
        def __init__(self):
            super().__init__()
            self.answers = {}
            self.asked = []

        def measure(self, source):
            self.asked.append(source)
            answer = self.answers.get(source, FULL)
            answer = answer() if callable(answer) else answer
            if isinstance(answer, Exception):
                raise answer
            return answer

    plugin = Measuring()
    made = plugin.new_mounter

    def new_mounter(spec, pod):
        mounter = made(spec, pod)
        mounter.get_metrics = lambda: plugin.measure(mounter.source)
        return mounter

    new_mounter.volumehost_impl = bind.new_mounter.volumehost_impl
    plugin.new_mounter = new_mounter
    return plugin


@pytest.fixture
def looked(until):
    """Has the stats of a manager looked at, without chance and by the test's word alone."""

    def make(node, plugin):
        stats = VolumeStats(node.parts, chance=lambda: 0)

        def look(asked=None):
            before = len(plugin.asked)
            stats.look()
            if asked is not None:
                until(lambda: len(plugin.asked) == before + asked and not busy())

        def busy():
            return any(entry.waiting or entry.begun_at is not None for entry in stats._table.entries())

        stats.look_and_wait = look
        return stats

    return make


def values(stats, name):
    (found,) = [family for family in stats.collect() if family.name == name]
    return {tuple(sample.labels.values()): sample.value for sample in found.samples}


def pod(*claims, name="web"):
    names = [f"v{number}" for number in range(len(claims))]
    mounts = [{"name": each, "mountPath": f"/{each}"} for each in names]
    volumes = [
        {"name": each, "persistentVolumeClaim": {"claimName": claim}} for each, claim in zip(names, claims, strict=True)
    ]
    containers = [{"name": "c", "image": "i", "volumeMounts": mounts}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, "volumes": volumes}}


@pytest.fixture
def paths(tmp_path):
    """Directories for volumes to be made of."""

    def make(*names):
        for name in names:
            (tmp_path / name).mkdir()
        return [str(tmp_path / name) for name in names]

    return make


def test_metric06_the_values_of_a_claim_also_when_several_pods_use_it(manager, measuring, claimed, looked, data, clock):
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    node.mount_pod(pod("claim", name="other"), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(2)
    claim = ("default", "claim")
    told = {
        name: values(stats, f"kubelet_volume_stats_{name}")
        for name in ("capacity_bytes", "available_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used")
    }
    assert told == {
        "capacity_bytes": {claim: 100},
        "available_bytes": {claim: 90},
        "used_bytes": {claim: 10},
        "inodes": {claim: 7},
        "inodes_free": {claim: 4},
        "inodes_used": {claim: 3},
    }
    assert values(stats, "kubelet_volume_stats_health_status_abnormal") == {}


def test_metric06_what_the_plugin_did_not_tell_is_zero_but_for_the_health(
    manager, measuring, claimed, looked, data, clock
):
    measuring.answers[data] = VolumeMetrics(time=1.0, capacity=5, abnormal=False)
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(1)
    assert values(stats, "kubelet_volume_stats_capacity_bytes") == {("default", "claim"): 5}
    assert values(stats, "kubelet_volume_stats_inodes") == {("default", "claim"): 0}
    assert values(stats, "kubelet_volume_stats_health_status_abnormal") == {("default", "claim"): 0}


def test_metric06_volumes_of_a_pod_alone_are_not_measured(manager, measuring, nfs, looked, clock):
    node = manager(measuring, clock=clock)
    volumes = [nfs("a")]
    mounts = [{"name": "a", "mountPath": "/a"}]
    containers = [{"name": "c", "image": "i", "volumeMounts": mounts}]
    node.mount_pod({"metadata": {"name": "web"}, "spec": {"containers": containers, "volumes": volumes}}, timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(0)
    assert values(stats, "kubelet_volume_stats_capacity_bytes") == {}


def test_const10_a_pod_is_measured_again_after_a_minute_and_forgotten_when_it_is_gone(
    manager, measuring, claimed, looked, data, clock
):
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(1)
    clock.move(PERIOD_SECONDS - 1)
    stats.look_and_wait(0)
    clock.move(2)
    measuring.answers[data] = VolumeMetrics(time=2.0, used=11)
    stats.look_and_wait(1)
    assert values(stats, "kubelet_volume_stats_used_bytes") == {("default", "claim"): 11}
    node.unmount_pod("web", timeout=20)
    stats.look_and_wait(0)
    assert values(stats, "kubelet_volume_stats_used_bytes") == {}


def test_br52_a_volume_that_does_not_answer_is_not_told_and_holds_up_no_other(
    manager, measuring, claimed, looked, paths, clock, until, caplog
):
    hung, fine = paths("hung", "fine")
    go = threading.Event()
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api, "hung", path=hung)
    claimed(node.api, "fine", path=fine)
    node.mount_pod(pod("hung", "fine"), timeout=20)
    stats = looked(node, measuring)
    try:
        stats.look_and_wait(2)
        assert set(values(stats, "kubelet_volume_stats_used_bytes")) == {("default", "hung"), ("default", "fine")}
        measuring.answers[hung] = lambda: go.wait(60) and FULL
        for _ in range(3):
            clock.move(PERIOD_SECONDS + 1)
            before = measuring.asked.count(fine)
            stats.look()
            until(lambda before=before: measuring.asked.count(fine) == before + 1)
        assert measuring.asked.count(hung) == 2, "it is asked again before it has answered"
        clock.move(DEADLINE_SECONDS + 1)
        with caplog.at_level(logging.WARNING):
            stats.look()
            stats.look()
        assert caplog.text.count("has not answered for more than 10 s") == 1
        assert set(values(stats, "kubelet_volume_stats_used_bytes")) == {("default", "fine")}
        assert values(stats, "volumehost_volume_stats_unanswered") == {("example.com/bind",): 1}
    finally:
        go.set()
    until(lambda: values(stats, "volumehost_volume_stats_unanswered") == {})
    until(lambda: set(values(stats, "kubelet_volume_stats_used_bytes")) == {("default", "fine"), ("default", "hung")})


def test_br52_many_that_hang_hold_a_bounded_number_of_threads(manager, measuring, claimed, looked, paths, clock, until):
    names = [f"hung{number}" for number in range(30)]
    go = threading.Event()
    node = manager(measuring, controllers=False, clock=clock)
    for name, path in zip(names, paths(*names), strict=True):
        claimed(node.api, name, path=path)
        measuring.answers[path] = lambda: go.wait(60) and FULL
    for number in range(6):
        node.mount_pod(pod(*names[5 * number : 5 * number + 5], name=f"pod-{number}"), timeout=30)
    stats = looked(node, measuring)
    try:
        stats.look()
        until(lambda: len(measuring.asked) >= 2)
        for _ in range(20):
            clock.move(30)
            stats.look()
        until(lambda: len(measuring.asked) >= 4)
        assert len(measuring.asked) <= 8, "a fourth of the threads"
        assert stats._pool.threads <= 10
    finally:
        go.set()
    until(lambda: stats._pool.hurry() or len(set(measuring.asked)) == 30)


def test_values_that_are_old_are_not_told(manager, measuring, claimed, looked, data, clock):
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(1)
    clock.move(STALE_SECONDS + 1)
    assert values(stats, "kubelet_volume_stats_used_bytes") == {}


def test_metric06_a_failure_is_counted_and_told_once_what_is_not_supported_is_silent(
    manager, measuring, claimed, looked, paths, clock, caplog
):
    bad, without = paths("bad", "without")
    measuring.answers[bad] = FsInfoMetricsError("input/output error", action="asking")
    measuring.answers[without] = NotSupportedMetricsError("none")
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api, "bad", path=bad)
    claimed(node.api, "without", path=without)
    node.mount_pod(pod("bad", "without"), timeout=20)
    stats = looked(node, measuring)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            stats.look_and_wait(2)
            clock.move(PERIOD_SECONDS + 1)
    assert caplog.text.count("cannot be measured") == 1
    assert "input/output error" in caplog.text
    assert values(stats, "kubelet_volume_stats_used_bytes") == {}
    assert values(stats, "volumehost_volume_stats_errors") == {("example.com/bind",): 2}


def test_event_volume_condition_abnormal(manager, measuring, claimed, looked, data, clock):
    measuring.answers[data] = VolumeMetrics(time=1.0, abnormal=True, message="the disk is dying")
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(1)
    node.host.flush_events(10)
    (event,) = [each for each in node.api.list(Event).items if each.reason == "VolumeConditionAbnormal"]
    assert (event.type, event.involved_object.kind, event.involved_object.name) == ("Warning", "Pod", "web")
    assert event.message == "Volume v0: the disk is dying"
    assert values(stats, "kubelet_volume_stats_health_status_abnormal") == {("default", "claim"): 1}


def test_metrics09_how_long_it_took_by_how_it_was_measured(manager, measuring, claimed, looked, data, clock):
    measuring.answers[data] = lambda: StatFsMetrics(data).get_metrics()
    node = manager(measuring, controllers=False, clock=clock)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(1)
    (found,) = [
        family for family in stats.collect() if family.name == "kubelet_volume_metric_collection_duration_seconds"
    ]
    counts = {
        sample.labels["metric_source"]: sample.value for sample in found.samples if sample.name.endswith("_count")
    }
    assert counts == {"statfs": 1}
    total = os.statvfs(data)
    capacity = values(stats, "kubelet_volume_stats_capacity_bytes")
    assert capacity == {("default", "claim"): total.f_blocks * total.f_frsize}


def test_attached_metrics_measure_by_themselves(measured, measuring, claimed, scrape, until, monkeypatch):
    monkeypatch.setattr("volumehost.metrics.volume_stats.LOOK_SECONDS", 0.05)
    node = measured(measuring, controllers=False)
    claimed(node.api)
    node.mount_pod(pod("claim"), timeout=20)
    until(lambda: scrape().all("kubelet_volume_stats_used_bytes") == {("default", "claim"): 10}, what="a measurement")


def test_const10_after_a_restart_not_all_pods_are_measured_at_once(
    manager, measuring, claimed, paths, clock, until, monkeypatch
):
    monkeypatch.setattr("volumehost.metrics.volume_stats.AT_ONCE", 3)
    names = [f"claim{number}" for number in range(4)]
    node = manager(measuring, controllers=False, clock=clock)
    for name, path in zip(names, paths(*names), strict=True):
        claimed(node.api, name, path=path)
        node.mount_pod(pod(name, name=name), timeout=20)
    chances = iter([0.0, 0.3, 0.6, 0.9])
    stats = VolumeStats(node.parts, chance=lambda: next(chances, 0.0))
    for seconds, asked in ((0, 1), (20, 2), (20, 3), (15, 4)):
        clock.move(seconds)
        stats.look()
        until(lambda asked=asked: len(measuring.asked) == asked)
    stats.stop()


@pytest.fixture
def stopped_fuse(tmp_path):
    """A FUSE filesystem that can be stopped, so that the kernel waits for an answer; it is killed at the end."""
    place = tmp_path / "fuse"
    place.mkdir()
    command = [sys.executable, str(Path(__file__).parents[2] / "mount" / "fuse_daemon.py"), str(place)]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout.readline() == "ready\n"
    yield str(place), lambda: daemon.send_signal(signal.SIGSTOP)
    daemon.kill()
    daemon.send_signal(signal.SIGCONT)
    daemon.communicate()
    LinuxMounter().unmount(str(place))


def test_br52_a_filesystem_whose_server_stopped_holds_up_neither_the_scrape_nor_other_volumes(
    manager, measuring, claimed, looked, stopped_fuse, paths, clock, until
):
    remote, stop = stopped_fuse
    (fine,) = paths("fine")
    node = manager(measuring, controllers=False, clock=clock)
    for name, path in (("remote", remote), ("fine", fine)):
        measuring.answers[path] = lambda path=path: StatFsMetrics(path).get_metrics()
        claimed(node.api, name, path=path)
        node.mount_pod(pod(name, name=name), timeout=20)
    stats = looked(node, measuring)
    stats.look_and_wait(2)
    stop()
    clock.move(PERIOD_SECONDS + 1)
    stats.look()
    until(lambda: measuring.asked.count(fine) == measuring.asked.count(remote) == 2)
    clock.move(DEADLINE_SECONDS + 1)
    until(lambda: set(values(stats, "kubelet_volume_stats_capacity_bytes")) == {("default", "fine")})
    assert values(stats, "volumehost_volume_stats_unanswered") == {("example.com/bind",): 1}


def test_very_many_volumes_are_measured_more_rarely_and_in_turn(
    manager, measuring, claimed, looked, paths, clock, until, monkeypatch
):
    monkeypatch.setattr("volumehost.metrics.volume_stats.MOST_AT_A_LOOK", 2)
    names = [f"claim{number}" for number in range(5)]
    node = manager(measuring, controllers=False, clock=clock)
    for name, path in zip(names, paths(*names), strict=True):
        claimed(node.api, name, path=path)
        node.mount_pod(pod(name, name=name), timeout=20)
    stats = looked(node, measuring)
    for asked in (2, 2, 1):
        stats.look_and_wait(asked)
        clock.move(5)
    assert len(set(measuring.asked)) == 5
    clock.move(PERIOD_SECONDS)
    for asked in (2, 2, 1):
        stats.look_and_wait(asked)
    assert len(measuring.asked) == 10
    assert set(measuring.asked[5:]) == set(measuring.asked[:5])
