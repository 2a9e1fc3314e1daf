"""What a manager does while it is at work: refreshes, follows drivers, asks about limits (POP-16, CSI-PLUG-25)."""

import msgspec
import pytest

from volumehost import hookimpl
from volumehost.api.objects import Event
from volumehost.errors import (
    OperationError,
    StorageDriverError,
    StorageDriverUnavailableError,
    VolumesFailedError,
)
from volumehost.node import upkeep
from volumehost.node.execution.backoff import ABSENT_DELAY, BUSY_DELAY, Backoff
from volumehost.node.populating.pod_objects import apply_pod

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


def _raise(error):
    def action():
        raise error

    return action


def test_pop16_content_that_a_plugin_refreshes_is_refreshed_from_time_to_time(manager, bind, nfs, until, monkeypatch):
    monkeypatch.setattr(upkeep, "SYNC_SECONDS", 0.05)
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    node.mount_pod(_pod(nfs()), timeout=30)
    until(lambda: plugin.count("set_up") >= 3)
    assert [call[1].is_remount for call in plugin.calls if call[0] == "set_up"][:3] == [False, True, True]


def test_pop16_a_volume_that_needs_no_refresh_is_set_up_once(manager, bind, nfs):
    plugin = bind()
    node = manager(plugin)
    node.mount_pod(_pod(nfs()), timeout=30)
    node._now.mounting.sync()
    node._now.parts.reconciler.resync()
    assert plugin.count("set_up") == 1


def test_br51_a_look_at_a_pod_that_comes_when_it_is_gone_mounts_nothing_again(manager, bind, nfs, mounts, root):
    """What its claims lead to is looked at later, by a worker, which may be late."""
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    node.mount_pod(_pod(nfs()), timeout=30)
    parts = node._now.parts
    (record,) = parts.populator.records()
    late_sync = iter([record])
    node.unmount_pod("web", timeout=30)
    node._now.mounting.resolve(record)
    parts.populator.records = lambda: list(late_sync)
    node._now.mounting.sync()
    assert plugin.count("set_up") == 1
    assert mounts() == []
    assert parts.services.desired.keys() == []
    assert parts.populator.record(record.pod.metadata.uid) is None


@pytest.mark.parametrize("late", ["refresh", "add"])
def test_a_late_look_at_a_pod_does_not_undo_what_another_found_since(manager, bind, nfs, monkeypatch, late):
    """Of two looks at once the one that has seen the older claim may be the last to enter what it has found."""
    node = manager(bind())
    pod = node.mount_pod(_pod(nfs()), timeout=30)
    populator = node._now.parts.populator
    (record,) = populator.records()
    resolve, stale = populator._resolver.resolve, []

    def as_it_was_before(told, used):
        found = resolve(told, used)
        if stale:
            return found
        stale.append(found)
        assert populator.refresh(pod.uid) is populator.record(pod.uid)  # the other one, in between
        return {name: msgspec.structs.replace(use, size_limit=1) for name, use in found.items()}

    monkeypatch.setattr(populator._resolver, "resolve", as_it_was_before)
    entered = populator.refresh(pod.uid) if late == "refresh" else populator.add(record.pod)
    assert stale
    assert entered is populator.record(pod.uid)
    (use,) = node._now.parts.services.desired.uses_of_pod(pod.uid)
    assert use.size_limit is None


def test_a_look_at_a_pod_is_at_what_was_told_of_it_last(manager, bind, nfs):
    node = manager(bind())
    pod = node.mount_pod(_pod(nfs()), timeout=30)
    populator = node._now.parts.populator
    (former,) = populator.records()
    node.sync_pod(former.pod)
    assert populator.record(pod.uid) is not former
    assert populator.refresh(pod.uid) is populator.record(pod.uid)
    assert populator.refresh("unknown") is None


def test_br38_a_refresh_that_fails_leaves_the_volume_usable(manager, bind, nfs, until, mounts):
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    node.mount_pod(_pod(nfs()), timeout=30)
    plugin.trouble["set_up"] = _raise(OperationError("INTERNAL"))
    node._now.mounting.sync()
    until(lambda: plugin.count("set_up") == 2)
    assert node.status()[0].ready
    assert len(mounts()) == 1
    del plugin.trouble["set_up"]
    until(lambda: plugin.count("set_up") == 3, 30)


# --- drivers ----------------------------------------------------------------------------------------------------


def test_br39_busy_and_absent_drivers_are_asked_again_after_the_same_time_and_count_no_attempt():
    backoff = Backoff()
    busy = OperationError("failed")
    busy.__cause__ = StorageDriverError("pending", driver="d", code="ABORTED")
    absent = StorageDriverUnavailableError("not registered", driver="d")
    for error, delay in ((busy, BUSY_DELAY), (absent, ABSENT_DELAY), (busy, BUSY_DELAY)):
        backoff.failed(error, 10.0)
        assert (backoff.delay, backoff.attempts) == (delay, 0)
    for delay in (0.5, 1.0):
        backoff.failed(ValueError(), 10.0)
        assert backoff.delay == delay
    backoff.failed(busy, 10.0)
    assert (backoff.delay, backoff.attempts) == (BUSY_DELAY, 2)
    backoff.failed(ValueError(), 10.0)
    assert backoff.delay == 2.0


class _Drivers:
    """Tells whoever listens that a driver has come."""

    def __init__(self):
        self.listeners, self.started = [], 0

    def start(self):
        self.started += 1

    def statuses(self):
        return []

    def on_change(self, changed):
        self.listeners.append(changed)

    def tell(self, name):
        for listener in self.listeners:
            listener(name)


@pytest.fixture
def fronting(bind):
    """A plugin whose volumes need a driver that is not there yet."""

    class Fronting(bind):
        def __init__(self):
            super().__init__()
            self.drivers = _Drivers()

        @hookimpl
        def get_storage_drivers(self):
            return self.drivers

    plugin = Fronting()
    plugin.trouble["set_up"] = _raise(StorageDriverUnavailableError("it is not registered", driver="late.example.com"))
    return plugin


def test_br27_what_waits_for_a_driver_says_so_and_goes_on_when_it_registers(manager, fronting, nfs, until, unready):
    node = manager(fronting)
    words = r"(?s)volume v .*: waiting, operation volume_mount.*it is not registered"
    unready(node, _pod(nfs()), words)
    assert fronting.drivers.started == 1
    (entry,) = [entry for entries in node._now.parts.pending._entries.values() for entry in entries]
    entry.backoff.delay = 1e9  # not by chance, but because it is told
    del fronting.trouble["set_up"]
    fronting.drivers.tell("other.example.com")
    assert not node.status()[0].ready
    fronting.drivers.tell("late.example.com")
    until(lambda: node.status()[0].ready)


def test_br27_a_teardown_waits_for_its_driver_too_and_nothing_is_declared_clean(
    manager, fronting, nfs, until, mounts, kept
):
    refusal = fronting.trouble.pop("set_up")
    node = manager(fronting)
    node.mount_pod(_pod(nfs()), timeout=30)
    fronting.trouble["tear_down"] = refusal
    kept(node, "web", "it is not registered")
    assert len(mounts()) == 1
    del fronting.trouble["tear_down"]
    fronting.drivers.tell("late.example.com")
    until(lambda: node.status() == [])
    assert mounts() == []


# --- limits and promises ----------------------------------------------------------------------------------------


def test_plug25_a_volume_that_waits_for_an_attachment_is_asked_about_the_limit(manager, disk, claimed):
    class Full(disk):
        @hookimpl
        def verify_exhausted_resource(self, spec):
            self.step("verify_exhausted_resource")
            return True

    plugin = Full()
    plugin.trouble["attach"] = _raise(OperationError("RESOURCE_EXHAUSTED"))
    node = manager(plugin)
    claimed(node.api)
    pod = _pod({"name": "v", "persistentVolumeClaim": {"claimName": "claim"}})
    with pytest.raises(VolumesFailedError, match="VolumeAttachmentLimitExceeded: this node cannot take another volume"):
        node.mount_pod(pod, timeout=30, attempts=1)
    node.host.flush_events(10)
    assert "VolumeAttachmentLimitExceeded" in {event.reason for event in node.api.list(Event).items}
    plugin.trouble.clear()
    plugin.calls.clear()
    node.mount_pod(pod, timeout=30)
    assert plugin.count("verify_exhausted_resource") == 0
    node.unmount_pod("web", timeout=30)


def test_br58_a_path_that_was_a_mount_and_is_none_after_a_new_set_up_is_not_handed_out(manager, bind, nfs):
    from volumehost.mount import syscalls

    plugin = bind()
    node = manager(plugin)
    (volume,) = node.mount_pod(_pod(nfs()), timeout=30).volumes
    syscalls.umount2(volume.path, syscalls.MNT_DETACH)

    class Forgetful:
        """Believes that it is mounted still."""

        def is_mount_point(self, path):
            return True

    real, plugin.host = plugin.host, _With(plugin.host, Forgetful())
    with pytest.raises(VolumesFailedError, match="nothing is mounted at"):
        node.mount_pod(_pod(nfs()), timeout=30, attempts=1)
    plugin.host = real
    assert node.mount_pod(_pod(nfs()), timeout=30).volumes[0].mounted


class _With:
    """A host with another mounter."""

    def __init__(self, host, mounter):
        self._host, self._mounter = host, mounter

    def get_mounter(self):
        return self._mounter

    def __getattr__(self, name):
        return getattr(self._host, name)


def test_pop28_what_the_caller_does_to_its_pod_afterwards_changes_nothing(manager, bind, nfs, make_pod):
    node = manager(bind())
    pod = apply_pod(node.api, make_pod(nfs("a"), uid=""))
    node.sync_pod(pod)
    pod.spec.volumes.clear()
    pod.spec.containers.clear()
    record = node.parts.populator.record(pod.metadata.uid)
    assert [volume.name for volume in record.pod.spec.volumes] == ["a"]
    assert node.wait_for_pod(record.pod, timeout=20).ready
