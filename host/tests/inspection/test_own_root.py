"""This host's own root directory: journal, store and mount table as witnesses (BR-55 to -58, -70, RECON)."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from volumehost.api.store import EmbeddedStore
from volumehost.errors import RootDirectoryLockedError
from volumehost.inspection.inspect import Sources
from volumehost.inspection.report import PodState, RootKind
from volumehost.mount import syscalls
from volumehost.node.journal.journal import Journal, read_boot_id, read_journal

from .acme_plugins import Disks, Shares
from .conftest import kinds, mounts_below

pytestmark = pytest.mark.root


def finding(inspection, kind):
    (found,) = [each for each in inspection.findings if each.kind == kind]
    return found


@pytest.fixture
def mounted(own):
    """A pod with a volume, and nobody at work; what was mounted where is remembered."""
    with own() as manager:
        status = manager.mount_pod(own.pod())
    own.uid, own.target = status.uid, status.volumes[0].path
    return own


def test_all_witnesses_agree(mounted):
    found = mounted.inspect()
    assert found.kind is RootKind.OWN
    assert found.sources == ("store (1 pod)", "journal (1 pod)")
    assert kinds(found) == []
    (volume,) = found.pod(mounted.uid).volumes
    assert (volume.plugin, volume.state, volume.mount_path) == ("example.com/share", "mounted", mounted.target)
    told = volume.witnesses
    assert (told.journal, told.boot, told.mount_table, told.directory) == ("mounted", "this", "mounted", "mount")
    assert told.disagreements == ()


def test_br58_a_mount_that_was_taken_away_behind_the_hosts_back(mounted):
    syscalls.umount2(mounted.target, 0)
    found = mounted.inspect()
    told = finding(found, "bare-directory")
    assert (told.subject, told.severity, told.advice) == (
        mounted.target,
        "error",
        "'volumehost mount web' mounts it again",
    )
    assert told.evidence == ("the journal says mounted, the mount table shows nothing there",)


def test_br58_after_a_reboot_the_records_survive_and_the_mounts_do_not(own):
    with own(boot_id="an earlier boot") as manager:
        path = manager.mount_pod(own.pod()).volumes[0].path
    syscalls.umount2(path, 0)
    found = own.inspect()
    assert "earlier boot" in finding(found, "bare-directory").evidence[0]
    assert found.pods[0].volumes[0].witnesses.boot == "earlier"


def test_br70_files_written_where_the_mount_was(mounted):
    syscalls.umount2(mounted.target, 0)
    Path(mounted.target, "late").write_text("x")
    found = mounted.inspect()
    assert finding(found, "files-under-mount-point").subject == mounted.target
    assert not mounted.repair().complete
    assert Path(mounted.target, "late").exists()


def test_a_mount_that_the_journal_does_not_tell_of(mounted):
    target = f"{mounted.root}/pods/{mounted.uid}/volumes/example.com~share/other"
    os.makedirs(target)
    syscalls.mount(mounted.data, target, "", syscalls.MS_BIND, "")
    found = mounted.inspect()
    told = finding(found, "leaked-mount")
    assert (told.subject, told.severity) == (target, "info")
    assert "takes it over" in told.advice
    done = mounted.repair()
    assert done.complete
    assert target in mounts_below(mounted.root)


# --- pods that are gone ---------------------------------------------------------------------------------------------


def test_a_pod_of_which_only_the_journal_tells_is_gone(mounted):
    mounted.forget_pods()
    found = mounted.inspect()
    assert found.pod(mounted.uid).state is PodState.GONE
    assert found.pod(mounted.uid).label == "default/web"
    assert kinds(found) == [("record-of-gone-pod", mounted.uid)]


def test_its_volumes_are_torn_down_through_their_plugin_and_its_records_end(mounted):
    mounted.forget_pods()
    plugin = Shares()
    done = mounted.repair(plugin)
    assert done.complete
    assert plugin.calls == [("tear_down", mounted.target)]
    assert os.listdir(f"{mounted.root}/pods") == []
    assert read_journal(f"{mounted.root}/volumes.journal").entries == {}
    assert kinds(mounted.inspect()) == []
    assert Path(mounted.data, "file").read_text() == "content"


def test_without_its_plugin_it_is_unmounted_and_said_not_to_be_told(mounted):
    mounted.forget_pods()
    done = mounted.repair()
    assert [result.detail for _, result in done.results if result.detail] == [
        "the plugin example.com/share was not told"
    ]
    assert done.complete


def test_br55_its_device_goes_after_it_and_the_attachment_is_left_to_the_next_manager(own):
    with own(Disks()) as manager:
        status = manager.mount_pod(own.pod())
    own.forget_pods()
    plugin = Disks()
    assert own.repair(plugin).complete
    assert [call[0] for call in plugin.calls] == ["tear_down", "unmount_device"]
    assert plugin.calls[0][1] == status.volumes[0].path
    found = own.inspect()
    assert kinds(found) == [("attachment-without-volume", f"example.com/share/{own.data}")]
    assert own.repair(plugin).complete
    plugin = Disks()
    with own(plugin) as manager:
        manager.mount_pod(own.pod("other"))
        manager.unmount_pod("other")
    assert ("detach", own.data) in plugin.calls
    assert kinds(own.inspect()) == []


def test_br55_a_crash_between_the_pods_unmount_and_the_devices(own):
    """Only the pod's half is gone when the manager dies; the device is in the journal, and no pod wants it."""

    class KilledError(BaseException):
        pass

    def observer(operation, step, volume, pod_uid):
        if (operation, step) == ("unmount_device", "unmount-device"):
            raise KilledError

    with own(Disks()) as manager:
        manager.mount_pod(own.pod())
    with own(Disks(), observer=observer, exit_grace=0.2) as manager, pytest.raises(Exception, match=r"mounted|unmount"):
        manager.unmount_pod("web", timeout=0.5)
    own.forget_pods()
    found = own.inspect()
    assert "leaked-device-mount" in {kind for kind, _ in kinds(found)}
    plugin = Disks()
    own.repair(plugin)
    assert [call[0] for call in plugin.calls] == ["unmount_device"]
    assert "leaked-device-mount" not in {kind for kind, _ in kinds(own.inspect())}


KILLED = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("plugins_of_the_tests", sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from volumehost.inspection.repair import apply_repair
report = apply_repair(sys.argv[1], plugins=[module.Disks()], on_step=lambda repair, result: os._exit(9))
sys.exit(0 if report.complete else 1)
"""


def test_killed_after_any_step_the_next_repair_goes_on_to_the_last_record(own):
    with own(Disks()) as manager:
        manager.mount_pod(own.pod())
    own.forget_pods()
    codes = []
    while not codes or (codes[-1] == 9 and len(codes) < 20):
        command = [sys.executable, "-c", KILLED, own.root, str(Path(__file__).with_name("acme_plugins.py"))]
        codes.append(subprocess.run(command, timeout=60, check=False).returncode)
    assert codes[-1] == 0
    assert len(codes) > 4
    assert os.listdir(f"{own.root}/pods") == []
    assert mounts_below(own.root) == []
    entries = read_journal(f"{own.root}/volumes.journal").entries
    assert [(volume, record.get("dev")) for (volume, _), record in entries.items()] == [
        (f"example.com/share/{own.data}", "unmounted")
    ]
    assert kinds(own.inspect()) == [("attachment-without-volume", f"example.com/share/{own.data}")]


def test_a_record_of_which_nothing_is_left_is_ended(own):
    os.makedirs(f"{own.root}/pods")
    own.forget_pods()
    journal = Journal(f"{own.root}/volumes.journal", boot_id=read_boot_id())
    journal.open()
    journal.write({"v": "example.com/share//x", "plugin": "example.com/share", "dev": "mounted", "dmpath": "/nowhere"})
    journal.close()
    assert kinds(own.inspect()) == [("stale-record", "example.com/share//x")]
    assert own.repair().complete
    assert read_journal(f"{own.root}/volumes.journal").entries == {}


def test_a_static_pod_of_which_only_the_journal_tells_is_not_called_gone(own):
    """Its mirror in the store is made as well as can be; its manifest may be there all the same."""
    uid = "0123456789abcdef0123456789abcdef"
    own.forget_pods()
    journal = Journal(f"{own.root}/volumes.journal", boot_id=read_boot_id())
    journal.open()
    record = {"v": "example.com/share/x", "p": uid, "plugin": "example.com/share", "inner": "v", "state": "mounted"}
    journal.write({**record, "pod": "etcd-node-1", "ns": "default"})
    journal.close()
    assert own.inspect().pod(uid).state is PodState.UNKNOWN
    manifests = Path(own.root, "..", "manifests").resolve()
    manifests.mkdir()
    assert own.inspect(sources=Sources(static_pods=str(manifests))).pod(uid).state is PodState.GONE
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd}\nspec: {containers: [{name: c, image: i}]}\n"
    (manifests / "etcd.yaml").write_text(text)
    assert own.inspect(sources=Sources(static_pods=str(manifests))).pod(uid).state is PodState.KNOWN


def test_a_drivers_process_that_has_outlived_its_keeper_is_told(own):
    own.forget_pods()
    directory = Path(own.root, "drivers", "csi.example.com")
    directory.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as process, subprocess.Popen(["true"]) as keeper:
        keeper.wait()
        began = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
        record = {"pid": process.pid, "start_time": began, "keeper_pid": keeper.pid, "keeper_start_time": 1}
        record |= {"boot_id": read_boot_id(), "keep_alive": False, "endpoint": "/x"}
        (directory / "process.json").write_text(json.dumps(record))
        found = own.inspect()
        assert kinds(found) == [("stale-driver-process", str(process.pid))]
        assert "drivers show csi.example.com --start" in found.findings[0].advice
        # Of another process with that number, or of another boot, nothing is said.
        for change in ({"start_time": began + 1}, {"boot_id": "another"}):
            (directory / "process.json").write_text(json.dumps(record | change))
            assert kinds(own.inspect()) == []
        process.kill()
    (directory / "process.json").write_text("{")
    assert kinds(own.inspect()) == [("damaged-record", str(directory / "process.json"))]


def test_br57_mounts_that_come_and_go_all_the_time_confuse_nobody(mounted, area):
    stop = threading.Event()

    def flap():
        places = [str(area / f"flap-{number}") for number in range(50)]
        for place in places:
            os.mkdir(place)
        while not stop.is_set():
            for place in places:
                syscalls.mount("flap", place, "tmpfs", 0, "")
            for place in places:
                syscalls.umount2(place, syscalls.MNT_DETACH)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        for _ in range(10):
            found = mounted.inspect()
            assert kinds(found) == []
            assert found.pod(mounted.uid).volumes[0].state == "mounted"
    finally:
        stop.set()
        thread.join()


def test_an_attachment_in_the_store_that_no_pod_here_needs(own):
    own.forget_pods()
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "csi-1"},
        "spec": {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv-1"}},
    }
    with EmbeddedStore(f"{own.root}/store.sqlite3") as store:
        store.create(attachment)
    told = finding(own.inspect(), "attachment-without-volume")
    assert (told.subject, told.severity) == ("csi-1", "info")
    assert "volume pv-1 to node n, by csi.example.com" in told.evidence[0]


# --- damaged files --------------------------------------------------------------------------------------------------


def damage(path, how):
    data = Path(path).read_bytes()
    if how == "empty":
        Path(path).write_bytes(b"")
    elif how == "half":
        Path(path).write_bytes(data[: len(data) // 2] + b"\n")
    elif how == "garbage":
        Path(path).write_bytes(os.urandom(300))
    else:
        Path(path).unlink()


@pytest.mark.parametrize("how", ["empty", "half", "garbage"])
def test_br56_a_damaged_journal_is_told_and_the_others_tell_instead(mounted, how):
    damage(f"{mounted.root}/volumes.journal", how)
    found = mounted.inspect()
    told = finding(found, "damaged-record")
    assert (told.subject, told.severity) == (f"{mounted.root}/volumes.journal", "error")
    assert "directories tell instead" in told.evidence[-1]
    assert found.pod(mounted.uid).volumes[0].state == "mounted"


def test_br56_a_journal_of_a_newer_version_is_not_judged_by(mounted):
    from volumehost.node.journal.format import encode

    Path(f"{mounted.root}/volumes.journal").write_bytes(encode({"journal": 99, "boot": "", "at": 0}))
    found = mounted.inspect()
    assert "newer version" in finding(found, "damaged-record").advice
    assert found.pod(mounted.uid).state is PodState.KNOWN


def test_br56_a_store_that_cannot_be_read_orphans_nobody(mounted):
    damage(f"{mounted.root}/store.sqlite3", "garbage")
    found = mounted.inspect()
    assert found.pod(mounted.uid).state is PodState.UNKNOWN
    assert any("the pods in the store are not known" in note for note in found.notes)
    before = sorted(os.listdir(mounted.root))
    done = mounted.repair(Shares())
    assert done.plan.repairs == ()
    assert sorted(os.listdir(mounted.root)) == before
    assert os.path.ismount(mounted.target) or os.listdir(mounted.target) == ["file"]


@pytest.mark.parametrize("lost", [("store.sqlite3",), ("volumes.journal",), ("store.sqlite3", "volumes.journal")])
def test_br56_a_lost_file_orphans_nobody_who_is_known(mounted, lost):
    for name in lost:
        damage(f"{mounted.root}/{name}", "lost")
    found = mounted.inspect()
    expected = PodState.UNKNOWN if "store.sqlite3" in lost else PodState.KNOWN
    assert found.pod(mounted.uid).state is expected
    assert found.kind is RootKind.OWN
    assert mounted.repair(Shares()).plan.repairs == ()


def test_kept_copies_and_temporary_files_are_told(mounted):
    kept = Path(f"{mounted.root}/volumes.journal.damaged-0")
    kept.write_bytes(b"x")
    temporary = Path(f"{mounted.root}/volumes.journal.new")
    temporary.write_bytes(b"x")
    found = mounted.inspect()
    assert ("kept-copy", str(kept)) in kinds(found)
    assert ("temporary-file", str(temporary)) not in kinds(found)  # it may be somebody's who writes just now
    os.utime(temporary, (0, 0))
    assert ("temporary-file", str(temporary)) in kinds(mounted.inspect())
    assert mounted.repair().complete
    assert (kept.exists(), temporary.exists()) == (True, False)


# --- beside a manager -----------------------------------------------------------------------------------------------


def test_repair_waits_for_nobody_and_works_alone(mounted):
    with mounted() as manager:
        assert mounted.inspect().at_work == ""  # this process itself
        with pytest.raises(RootDirectoryLockedError, match=str(os.getpid())):
            mounted.repair()
        manager.unmount_pod("web")
    assert mounted.repair().complete


def test_what_is_just_being_done_is_not_found_wrong(own):
    """A record of an operation that runs, a directory that is just made: the manager is at it."""
    reached, go_on = threading.Event(), threading.Event()

    def observer(operation, step, volume, pod_uid):
        if step == "set-up":
            reached.set()
            go_on.wait(30)

    with own(observer=observer) as manager:
        pod = manager.api.create({"apiVersion": "v1", "kind": "Pod", **own.pod()})
        manager.sync_pod(pod)
        assert reached.wait(30)
        try:
            target = f"{own.root}/pods/{pod.metadata.uid}/volumes/example.com~share/v"
            os.makedirs(target)
            from volumehost.inspection import inspect as room

            survey = room.Looks(own.root, room.Sources()).survey()
            object.__setattr__(survey, "at_work", "process 1")
            found = room.judge(survey)
        finally:
            go_on.set()
        manager.wait_for_pod(pod)
    assert kinds(found) == []
    assert found.pods[0].volumes[0].state == "changing"


def test_a_store_in_use_by_somebody_else_is_read_all_the_same(mounted):
    connection = sqlite3.connect(f"{mounted.root}/store.sqlite3", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        assert mounted.inspect().pod(mounted.uid).state is PodState.KNOWN
    finally:
        connection.execute("ROLLBACK")
        connection.close()
