"""Repair unmounts before it removes, never touches data, tells what it leaves alone (BR-62, -64, -70, -84, ORPHAN)."""

import os
import signal
from pathlib import Path

import pytest

from volumehost.inspection.repairing.planning import Choice
from volumehost.mount import loop, syscalls

from .conftest import DRIVER, kinds

pytestmark = pytest.mark.root


def refused(report):
    return {(refusal.kind, refusal.subject): refusal for refusal in report.plan.refusals}


def actions(report):
    return [step.action.value for _, step in report.plan.steps()]


def tree(path):
    """Every path below a directory, what is mounted included."""
    return sorted(
        os.path.join(base, name) for base, directories, files in os.walk(path) for name in directories + files
    )


# --- what is done ---------------------------------------------------------------------------------------------------


def test_br84_an_orphan_with_live_mounts_is_taken_away_without_its_data(kubelet):
    known, orphan = kubelet.pod(1), kubelet.pod(2)
    kept = [kubelet.csi(known), kubelet.nfs(known)]
    target = kubelet.csi(orphan, "vol-2", "pv-2")
    kubelet.nfs(orphan, "other")
    kubelet.projected(orphan)
    kubelet.empty_dir(orphan)
    kubelet.subpath(orphan, "pv-2", f"{target}/file")
    kubelet.block(orphan)
    before = kubelet.mounts()
    planned = kubelet.plan(known)
    assert kubelet.mounts() == before
    assert not planned.applied
    assert planned.plan.refusals == ()
    done = kubelet.repair(known)
    assert [(step.action, step.subject) for _, step in done.plan.steps()] == [
        (step.action, step.subject) for _, step in planned.plan.steps()
    ]
    assert done.complete
    assert kubelet.pods() == [known]
    assert kubelet.mounts() == [f"{kubelet.staging('vol-1')}/globalmount", *kept]
    assert not os.path.exists(kubelet.staging("vol-2"))
    assert os.listdir(f"{kubelet.root}/plugins/kubernetes.io/csi/volumeDevices/publish") == []
    assert all(Path(kubelet.area, "data", name, "file").read_text() == name for name in ("vol-1", "vol-2", "nfs-other"))
    assert kinds(kubelet.inspect(known)) == []


def test_a_second_repair_has_nothing_to_do(kubelet):
    kubelet.csi(kubelet.pod(1))
    assert kubelet.repair().complete
    again = kubelet.repair()
    assert (again.plan.repairs, again.plan.refusals, again.complete) == ((), (), True)


def test_the_driver_that_is_not_there_is_said_not_to_be_told(kubelet):
    kubelet.csi(kubelet.pod(1))
    done = kubelet.repair()
    notes = [result.detail for _, result in done.results if result.detail]
    assert notes == [f"the driver {DRIVER} was not told"] * 2
    assert f"the driver {DRIVER} is not told" in next(
        step.describe() for _, step in done.plan.steps() if step.action == "unpublish"
    )


def test_orphan_10_br64_a_dead_mount_of_an_unknown_pod_is_unmounted_first(kubelet, dead):
    orphan = kubelet.pod(1)
    dead(kubelet.volume_dir(orphan, "example.com/fuse", "v"))
    done = kubelet.repair()
    assert actions(done)[0] == "unmount"
    assert done.complete
    assert (kubelet.pods(), kubelet.mounts()) == ([], [])


def test_br55_a_staged_volume_without_a_pod_is_unstaged(kubelet):
    kubelet.stage("vol-1")
    assert kubelet.repair().complete
    assert kubelet.mounts() == []
    assert os.listdir(f"{kubelet.root}/plugins/kubernetes.io/csi/{DRIVER}") == []


def test_leaked_mounts_go_deepest_first(kubelet):
    kubelet.bind(kubelet.data("a"), f"{kubelet.root}/lost")
    Path(f"{kubelet.root}/lost/inner").mkdir()
    kubelet.bind(kubelet.data("b"), f"{kubelet.root}/lost/inner")
    done = kubelet.repair()
    assert [step.subject for _, step in done.plan.steps()] == [f"{kubelet.root}/lost/inner", f"{kubelet.root}/lost"]
    assert done.complete
    assert kubelet.mounts() == []


def test_loop_devices_half_removed_devices_sockets_and_temporary_files_go(kubelet):
    uid = kubelet.pod(1)
    left = Path(kubelet.csi(uid)).parent / ".vol_data.json.new"
    left.write_text("{")
    kubelet.record(kubelet.staging("vol-2"), driverName=DRIVER, volumeHandle="vol-2")
    os.makedirs(f"{kubelet.staging('vol-2')}/globalmount")
    image = Path(f"{kubelet.root}/plugins/disk.img")
    image.write_bytes(b"\0" * (1 << 20))
    device = loop.attach(str(image))
    done = kubelet.repair(uid)
    assert done.complete
    assert not left.exists()
    assert not os.path.exists(kubelet.staging("vol-2"))
    assert device not in [each.device for each in loop.list_attached()]
    assert image.stat().st_size == 1 << 20


def test_a_subpath_of_a_volume_that_is_gone_goes_and_others_stay(kubelet):
    uid = kubelet.pod(1)
    share = kubelet.nfs(uid)
    kept = kubelet.subpath(uid, "share", share)
    kubelet.subpath(uid, "gone", kubelet.data("gone"))
    assert kubelet.repair(uid).complete
    assert kubelet.mounts() == [share, kept]
    assert os.listdir(f"{kubelet.root}/pods/{uid}/volume-subpaths") == ["share"]


def test_only_what_is_chosen_is_repaired(kubelet):
    one, two = kubelet.pod(1), kubelet.pod(2)
    staged = kubelet.stage("vol-9")
    assert kubelet.repair(choice=Choice(frozenset({"orphaned-pod"}), (one,))).complete
    assert kubelet.pods() == [two]
    assert kubelet.mounts() == [staged]
    assert kubelet.repair(choice=Choice(frozenset({"leaked-device-mount"}))).complete
    assert (kubelet.pods(), kubelet.mounts()) == ([two], [])


def payload(directory):
    """What a kubelet writes into a config map's volume, which lies on the disk."""
    generation = f"{directory}/..2026_01_31_12_00_00.1234567"
    os.makedirs(f"{generation}/nested")
    Path(f"{generation}/key").write_text("value")
    Path(f"{generation}/nested/key").write_text("value")
    for name, to in (("..data", os.path.basename(generation)), ("key", "..data/key"), ("nested", "..data/nested")):
        os.symlink(to, f"{directory}/{name}")
    return generation


def test_a_copy_of_what_the_api_has_goes_though_it_lies_on_the_disk(kubelet):
    """The commonest orphan of all: config maps are files in the volume's directory."""
    orphan = kubelet.pod(1)
    config = kubelet.volume_dir(orphan, "kubernetes.io/configmap", "config")
    payload(config)
    done = kubelet.repair()
    assert "remove-payload" in actions(done)
    assert done.complete
    assert kubelet.pods() == []


@pytest.mark.parametrize("stray", ["notes", "evil/", "..notes"])
def test_what_is_no_such_copy_keeps_it(kubelet, stray):
    orphan = kubelet.pod(1)
    config = kubelet.volume_dir(orphan, "kubernetes.io/configmap", "config")
    payload(config)
    if stray.endswith("/"):  # a link in its place, which leads elsewhere
        os.symlink("/etc", f"{config}/{stray[:-1]}")
        assert not kubelet.repair().complete
        assert os.path.islink(f"{config}/{stray[:-1]}")
    else:
        Path(config, stray).write_text("mine")
        assert any(stray in reason for reason in refused(kubelet.repair())["orphaned-pod", orphan].reasons)
        assert Path(config, "key").read_text() == "value"
    assert os.path.isdir("/etc")


def test_a_mount_in_such_a_copy_keeps_it(kubelet):
    orphan = kubelet.pod(1)
    generation = payload(kubelet.volume_dir(orphan, "kubernetes.io/configmap", "config"))
    kubelet.bind(kubelet.data("a"), f"{generation}/nested")
    with open(f"{generation}/nested/file"):
        assert not kubelet.repair().complete
    assert kubelet.repair().complete
    assert Path(kubelet.data("a"), "file").read_text() == "a"


def test_a_copy_of_the_hosts_mounts_that_is_kept_in_step_is_no_user(kubelet, area, holding):
    """As a service has it whose namespace follows the host's: what is unmounted here is unmounted there."""
    syscalls.mount("", str(area), "", syscalls.MS_SHARED, "")
    orphan = kubelet.pod(1)
    target = kubelet.csi(orphan)
    with holding("namespace", target) as process:
        assert kubelet.repair().complete
        assert target not in Path(f"/proc/{process.pid}/mountinfo").read_text()


def test_a_containers_own_bind_is_a_user_though_it_is_a_slave(kubelet, area, holding):
    """Propagation into a container is about what is mounted in the volume, not about the volume."""
    syscalls.mount("", str(area), "", syscalls.MS_SHARED, "")
    orphan = kubelet.pod(1)
    target = kubelet.csi(orphan)
    with holding("container", target) as process:
        reasons = refused(kubelet.repair())["orphaned-pod", orphan].reasons
        assert any(f"process {process.pid} " in each and "namespace of its own" in each for each in reasons)
    assert kubelet.repair().complete


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["x", "volumes/a.b~p/v", "plugins/a.b~p/v", "containers/app/x"])
def test_br62_a_directory_that_is_bound_into_a_pod_and_cannot_be_unmounted_keeps_its_data(kubelet, where):
    """The unmount fails, since a process has a file open; nothing below the mount point is touched."""
    orphan = kubelet.pod(1)
    data = kubelet.data("precious")
    target = kubelet.bind(data, f"{kubelet.root}/pods/{orphan}/{where}")
    before = tree(f"{kubelet.root}/pods")
    with open(f"{target}/file"):
        done = kubelet.repair()
        assert not done.complete
        reasons = refused(done)["orphaned-pod", orphan].reasons
        assert any(f"process {os.getpid()} " in reason and "open file" in reason for reason in reasons)
        assert tree(f"{kubelet.root}/pods") == before
    assert Path(data, "file").read_text() == "precious"
    assert kubelet.repair().complete
    assert Path(data, "file").read_text() == "precious"
    assert kubelet.pods() == []


def test_br62_an_unmount_that_fails_between_the_plan_and_the_deed_stops_the_rest(kubelet):
    """What began to use the mount after the plan was made: the kernel has the last word, and no removal follows."""
    orphan = kubelet.pod(1)
    first = kubelet.bind(kubelet.data("a"), f"{kubelet.root}/pods/{orphan}/volumes/a.b~p/a")
    second = kubelet.bind(kubelet.data("b"), f"{kubelet.root}/pods/{orphan}/volumes/a.b~p/b")
    opened = []

    def on_step(_repair, result):
        if not opened:
            other = second if result.step.subject != second else first
            opened.append(os.open(f"{other}/file", os.O_RDONLY))

    done = kubelet.repair(on_step=on_step)
    outcomes = [(result.step.action.value, result.outcome.value) for _, result in done.results]
    assert outcomes == [("unpublish", "done"), ("unpublish", "failed"), ("remove-pod-directory", "skipped")]
    assert not done.complete
    assert f"process {os.getpid()} " in done.results[1][1].detail
    assert kubelet.pods() == [orphan]
    os.close(opened[0])
    assert kubelet.repair().complete
    assert [Path(kubelet.data(name), "file").read_text() for name in ("a", "b")] == ["a", "b"]


def test_br84_what_keeps_a_mount_busy_is_named(kubelet, holding):
    orphan = kubelet.pod(1)
    target = kubelet.csi(orphan)
    with holding("directory", target) as process:
        for report in (kubelet.plan(), kubelet.repair()):
            refusal = refused(report)["orphaned-pod", orphan]
            assert any(
                f"process {process.pid} (python" in each and "working directory" in each for each in refusal.reasons
            )
            assert refusal.advice == "end what uses it"
        assert target in kubelet.mounts()
    assert kubelet.repair().complete


def test_br84_a_container_in_a_namespace_of_its_own_keeps_its_volume(kubelet, holding):
    """A list of pods that lacks a running one: what its containers have mounted is not taken from under them."""
    orphan = kubelet.pod(1)
    target = kubelet.csi(orphan)
    with holding("namespace", target) as process:
        reasons = refused(kubelet.repair())["orphaned-pod", orphan].reasons
        assert any(f"process {process.pid} " in each and "namespace of its own" in each for each in reasons)
        assert target in kubelet.mounts()
    assert kubelet.repair().complete


@pytest.mark.parametrize(
    "path",
    [
        "volumes/kubernetes.io~empty-dir/scratch/notes",
        "volumes/kubernetes.io~nfs/share/late",
        "volumes/kubernetes.io~csi/pv-9/mount/late",
        "volumes/kubernetes.io~csi/pv-9/beside",
        "backup/db",
        "database",
        "plugins/example.com~p/v/state",
        "volume-subpaths/v/app/0/late",
    ],
)
def test_br70_files_in_a_pods_directory_are_kept_and_named(kubelet, path):
    orphan = kubelet.pod(1)
    kubelet.csi(orphan)
    file = Path(f"{kubelet.root}/pods/{orphan}/{path}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    before = tree(kubelet.root)
    done = kubelet.repair()
    refusal = refused(done)["orphaned-pod", orphan]
    assert any(file.name in reason for reason in refusal.reasons)
    assert tree(kubelet.root) == before
    file.unlink()
    assert kubelet.repair().complete
    assert kubelet.pods() == []


def test_what_lies_in_memory_is_not_thrown_away(kubelet):
    """An emptyDir in memory ends with its mount; a projected volume is only a copy of what the API has."""
    orphan = kubelet.pod(1)
    scratch = kubelet.empty_dir(orphan, memory=True)
    Path(scratch, "result").write_text("computed for days")
    kubelet.projected(orphan)
    stray = kubelet.tmpfs(f"{kubelet.root}/lost")
    Path(stray, "file").write_text("x")
    done = kubelet.repair()
    assert any("result" in reason for reason in refused(done)["orphaned-pod", orphan].reasons)
    assert any("in memory" in reason for reason in refused(done)["leaked-mount", stray].reasons)
    assert Path(scratch, "result").exists()
    Path(scratch, "result").unlink()
    Path(stray, "file").unlink()
    assert kubelet.repair().complete


def test_an_inline_volume_with_content_is_not_thrown_away(kubelet):
    """Unpublishing one deletes it."""
    orphan = kubelet.pod(1)
    kubelet.csi(orphan, "csi-inline", "inline", lifecycle="Ephemeral")
    assert any("lives only as long" in each for each in refused(kubelet.repair())["orphaned-pod", orphan].reasons)
    Path(kubelet.data("csi-inline"), "file").unlink()
    assert kubelet.repair().complete


def test_what_a_known_pod_has_is_never_touched(kubelet, dead):
    uid = kubelet.pod(1)
    kubelet.csi(uid)
    broken = dead(kubelet.volume_dir(uid, "example.com/fuse", "v"))
    bare = kubelet.nfs(uid)
    syscalls.umount2(bare, 0)
    stray = kubelet.bind(kubelet.data("a"), f"{kubelet.root}/pods/{uid}/x")
    before = kubelet.mounts()
    done = kubelet.repair(uid)
    assert done.plan.repairs == ()
    assert kubelet.mounts() == before
    assert os.path.isdir(bare)
    assert {key for key in refused(done) if key[0] != "unexpected-entry"} == {
        ("corrupted-mount", broken),
        ("bare-directory", bare),
        ("leaked-mount", stray),
    }
    assert all(refusal.advice for refusal in done.plan.refusals)


def test_a_hung_mount_is_left_alone(kubelet, fuse):
    orphan = kubelet.pod(1)
    path = kubelet.volume_dir(orphan, "example.com/fuse", "v")
    daemon = fuse(path)
    daemon.send_signal(signal.SIGSTOP)
    planned = kubelet.plan()
    assert any("does not answer" in reason for reason in refused(planned)["orphaned-pod", orphan].reasons)
    daemon.send_signal(signal.SIGCONT)
    assert path in kubelet.mounts()


def test_a_device_that_a_pod_may_be_about_to_use_is_left_alone(kubelet):
    staged = kubelet.stage("vol-2")
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    waiting = {"metadata": {"uid": "u", "namespace": "shop", "name": "web"}, "spec": {"volumes": [claim]}}
    from volumehost.inspection.inspect import Sources
    from volumehost.inspection.repair import apply_repair

    done = apply_repair(kubelet.root, Sources(pods=kubelet.pods_file(more=[waiting])))
    assert "shop/web" in refused(done)["leaked-device-mount", staged].reasons[0]
    assert kubelet.mounts() == [staged]


def test_a_loop_device_that_somebody_has_open_is_left_alone(kubelet):
    image = Path(f"{kubelet.root}/plugins/disk.img")
    image.write_bytes(b"\0" * (1 << 20))
    device = loop.attach(str(image))
    with open(device, "rb"):
        assert f"process {os.getpid()} " in refused(kubelet.repair())["leaked-loop-device", device].reasons[0]
    assert kubelet.repair().complete


def test_without_a_source_of_pods_nothing_is_repaired(kubelet):
    from volumehost.inspection.repair import apply_repair

    kubelet.csi(kubelet.pod(1))
    kubelet.stage("vol-2")
    before = tree(kubelet.root)
    done = apply_repair(kubelet.root)
    assert done.plan.repairs == ()
    assert tree(kubelet.root) == before
