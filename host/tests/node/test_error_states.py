"""What a failure makes of the state: OPERR-01 to -06, UNMOUNT-03, -04, UNMDEV-03 to -05, run step by step."""

import os

import pytest

from volumehost.api.objects import Event
from volumehost.errors import (
    FormatError,
    OperationError,
    StillMountedError,
    TransientOperationError,
    UncertainProgressError,
    UnmountTimeoutError,
)
from volumehost.node.execution.pending import PendingOperation
from volumehost.node.operations.common import Failure, OperationFailedError, Steps
from volumehost.node.operations.device_operations import UnmountDeviceOperation, mounts_elsewhere
from volumehost.node.operations.mount_operation import MountOperation
from volumehost.node.operations.unmount_operation import UnmountOperation
from volumehost.node.populating.pods import used_volumes
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, DeviceState, MountState

pytestmark = pytest.mark.root


def raising(error):
    def action():
        raise error

    return action


class Bench:
    """Runs single operations on one volume of one pod."""

    def __init__(self, node, plugin, pod):
        self.parts = node._now.parts
        self.services = self.parts.services
        self.plugin = plugin
        (self.use,) = self.parts.populator._resolver.resolve(pod, used_volumes(pod)).values()
        self.services.desired.add(self.use)
        self.services.actual.mark_attached(self.use.volume, plugin.name, self.use.spec, Attachability.TRUE, "/dev/x")

    def run(self, operation):
        """The error of the run, None after success; what the executor does around it is done too."""
        entry = PendingOperation(operation.key, operation.name, 0.0)
        ticket = self.services.journal.write(*operation.intent())
        try:
            operation.run(Steps(self.services, entry, ticket))
        except Exception as error:
            operation.failed(Failure(error, 1, 0.0))
            return error
        return None

    def mount(self, error=None, step="set_up", is_remount=False):
        self.plugin.trouble = {step: raising(error)} if error is not None else {}
        return self.run(MountOperation(self.services, self.use, is_remount=is_remount))

    def unmount(self, error=None, step="tear_down"):
        self.plugin.trouble = {step: raising(error)} if error is not None else {}
        return self.run(UnmountOperation(self.services, self.entry))

    def unmount_device(self, error=None):
        self.plugin.trouble = {"unmount_device": raising(error)} if error is not None else {}
        return self.run(UnmountDeviceOperation(self.services, self.services.actual.get_volume(self.use.volume)))

    @property
    def entry(self):
        return self.services.actual.get_mount(self.use.volume, self.use.pod_uid)

    @property
    def state(self):
        return self.entry.state if self.entry is not None else None

    @property
    def device(self):
        return self.services.actual.get_volume(self.use.volume).device_state


@pytest.fixture
def bench(manager, bind, nfs, make_pod):
    plugin = bind()
    return Bench(manager(plugin), plugin, make_pod(nfs()))


@pytest.fixture
def disk_bench(manager, disk, nfs, make_pod):
    plugin = disk()
    return Bench(manager(plugin), plugin, make_pod(nfs()))


UNCERTAIN = UncertainProgressError("deadline exceeded")
FINAL = OperationError("permission denied: bad key")
TRANSIENT = TransientOperationError("driver not registered")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([UNCERTAIN], MountState.UNCERTAIN),
        ([FINAL], None),
        ([TRANSIENT], None),
        ([UNCERTAIN, FINAL], None),
        ([UNCERTAIN, TRANSIENT], MountState.UNCERTAIN),
        ([UNCERTAIN, UNCERTAIN], MountState.UNCERTAIN),
        ([UNCERTAIN, None], MountState.MOUNTED),
        ([None, UNCERTAIN], MountState.MOUNTED),
        ([None, FINAL], MountState.MOUNTED),
    ],
)
def test_operr06_the_pods_mount_by_history(bench, history, expected):
    for error in history:
        bench.mount(error, is_remount=bench.state is MountState.MOUNTED)
    assert bench.state is expected


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([UNCERTAIN], DeviceState.UNCERTAIN),
        ([FINAL], DeviceState.NOT_MOUNTED),
        ([TRANSIENT], DeviceState.NOT_MOUNTED),
        ([UNCERTAIN, FINAL], DeviceState.NOT_MOUNTED),
        ([UNCERTAIN, TRANSIENT], DeviceState.UNCERTAIN),
        ([UNCERTAIN, None], DeviceState.MOUNTED),
    ],
)
def test_operr02_the_device_by_history(disk_bench, history, expected):
    for error in history:
        disk_bench.mount(error, step="mount_device")
    assert disk_bench.device is expected
    assert (disk_bench.state is MountState.MOUNTED) is (history[-1] is None)


def test_an_uncertain_error_under_context_is_uncertain_all_the_same(bench):
    wrapped = OperationError("while publishing")
    wrapped.__cause__ = UNCERTAIN
    bench.mount(wrapped)
    assert bench.state is MountState.UNCERTAIN


def test_a_hung_unmount_inside_a_set_up_is_uncertain(bench):
    bench.mount(UnmountTimeoutError("no answer"))
    assert bench.state is MountState.UNCERTAIN


def test_a_plugin_that_exits_or_raises_nonsense_is_final(bench):
    assert isinstance(bench.mount(KeyError("oops")), OperationFailedError)
    assert bench.state is None


def _reconstructed(bench):
    """The volume as a restart finds it."""
    actual, use = bench.services.actual, bench.use
    actual.mark_detached(use.volume)
    volume = AttachedVolume(
        use.volume,
        bench.plugin.name,
        use.spec,
        Attachability.FALSE,
        DeviceState.UNCERTAIN if use.device_mountable else DeviceState.NOT_MOUNTED,
        device_owed=use.device_mountable,
    )
    mount = MountedVolume(
        use.volume, use.pod_uid, "web", "default", bench.plugin.name, "v", MountState.UNCERTAIN, reconstructed=True
    )
    actual.enter([volume], [mount])


def test_operr03_scen19_a_final_error_does_not_unmark_what_a_restart_found(bench):
    _reconstructed(bench)
    bench.mount(FINAL)
    assert bench.state is MountState.UNCERTAIN
    assert bench.entry.reconstructed
    assert bench.plugin.calls[-1][1].reconstructed_volume
    assert bench.unmount() is None
    assert bench.plugin.count("tear_down") == 1


def test_recon50_success_ends_the_mark(bench):
    _reconstructed(bench)
    assert bench.mount() is None
    assert bench.state is MountState.MOUNTED
    assert not bench.entry.reconstructed


def test_operr02_a_final_error_does_not_unmark_a_device_that_a_restart_found(disk_bench):
    _reconstructed(disk_bench)
    disk_bench.mount(FINAL, step="mount_device")
    assert disk_bench.device is DeviceState.UNCERTAIN


def test_unmount03_a_failed_teardown_makes_it_uncertain(bench):
    bench.mount()
    error = bench.unmount(StillMountedError("busy"))
    assert bench.state is MountState.UNCERTAIN
    assert str(error).startswith(
        'UnmountVolume.TearDown failed for volume "v" (UniqueName: "example.com/bind/uid-1-v")'
    )
    assert 'pod "default/web" (UID: "uid-1")' in str(error)
    assert bench.unmount() is None
    assert bench.state is None


def test_unmount02_subpaths_that_cannot_be_cleaned_stop_it_and_nothing_is_marked(bench):
    bench.mount()
    pod_dir = bench.services.host.layout.pod_dir(bench.use.pod_uid)
    os.makedirs(f"{pod_dir}/volume-subpaths/v/c/0/in-the-way")
    error = bench.unmount()
    assert "error cleaning subPath mounts" in str(error)
    assert (bench.state, bench.plugin.count("tear_down")) == (MountState.MOUNTED, 0)
    os.rmdir(f"{pod_dir}/volume-subpaths/v/c/0/in-the-way")
    assert bench.unmount() is None
    assert bench.state is None


def test_unmount04_what_is_torn_down_and_cannot_be_marked_is_only_logged(bench, caplog):
    """A retry would do nothing."""
    bench.mount()
    entry, actual = bench.entry, bench.services.actual

    def forget():
        actual.mark_unmounted(bench.use.volume, bench.use.pod_uid)
        actual.mark_detached(bench.use.volume)

    bench.plugin.trouble = {"tear_down": forget}
    assert bench.run(UnmountOperation(bench.services, entry)) is None
    assert "was torn down but not marked" in caplog.text


def test_unmount01_a_plugin_that_cannot_make_an_unmounter(bench):
    bench.mount()
    assert bench.unmount(ValueError("no"), step="new_unmounter") is not None
    assert bench.state is MountState.MOUNTED


def test_br32_once_an_unmount_of_the_device_was_sent_the_device_is_not_mounted(disk_bench):
    disk_bench.mount()
    disk_bench.unmount()
    assert disk_bench.device is DeviceState.MOUNTED
    disk_bench.unmount_device(FINAL)
    assert disk_bench.device is DeviceState.UNCERTAIN
    disk_bench.plugin.calls.clear()
    disk_bench.mount()
    names = [call[0] for call in disk_bench.plugin.calls]
    assert names.index("mount_device") < names.index("set_up")
    assert disk_bench.device is DeviceState.MOUNTED


def test_mountop08_a_device_that_is_mounted_is_not_mounted_again(disk_bench):
    disk_bench.mount()
    disk_bench.mount(is_remount=True)
    assert disk_bench.plugin.count("mount_device") == 1
    assert disk_bench.plugin.count("set_up") == 2


def test_unmdev03_a_device_that_is_still_used_elsewhere_is_left_alone(disk_bench):
    disk_bench.mount()
    disk_bench.unmount()
    disk_bench.plugin.references = ["/r/pods/u2/volumes/x"]
    error = disk_bench.unmount_device()
    assert "is still mounted by other references ['/r/pods/u2/volumes/x']" in str(error)
    assert disk_bench.device is DeviceState.MOUNTED
    assert disk_bench.plugin.count("unmount_device") == 0
    disk_bench.plugin.references = None
    assert disk_bench.unmount_device() is None
    assert disk_bench.device is DeviceState.NOT_MOUNTED


@pytest.mark.parametrize(
    ("path", "references", "elsewhere"),
    [
        ("/r/plugins/kubernetes.io/csi/x", ["/other/plugins/kubernetes.io/csi/x"], []),
        ("/r/plugins/kubernetes.io/csi/x", ["/r/pods/u/v"], ["/r/pods/u/v"]),
        ("/r/plugins/example.com/x", ["/r/plugins/example.com/x", "/y"], ["/y"]),
    ],
)
def test_util19_references_elsewhere(path, references, elsewhere):
    assert mounts_elsewhere(path, references) == elsewhere


def test_unmdev02_the_recorded_path_serves_when_the_plugin_no_longer_knows(disk_bench):
    disk_bench.mount()
    disk_bench.unmount()
    disk_bench.plugin.trouble = {"get_device_mount_path": raising(FileNotFoundError("source does not exist"))}
    operation = UnmountDeviceOperation(
        disk_bench.services, disk_bench.services.actual.get_volume(disk_bench.use.volume)
    )
    assert disk_bench.run(operation) is None
    assert disk_bench.device is DeviceState.NOT_MOUNTED


def test_unmdev02_other_errors_fail(disk_bench):
    disk_bench.mount()
    disk_bench.unmount()
    disk_bench.plugin.trouble = {"get_device_mount_path": raising(ValueError("no"))}
    operation = UnmountDeviceOperation(
        disk_bench.services, disk_bench.services.actual.get_volume(disk_bench.use.volume)
    )
    assert "GetDeviceMountPath failed" in str(disk_bench.run(operation))
    assert disk_bench.device is DeviceState.MOUNTED


def test_mountop13_a_failure_becomes_an_event_without_details_of_the_host(bench):
    bench.mount(FINAL)
    bench.parts.host.flush_events(10)
    (event,) = bench.parts.host.get_kube_client().list(Event).items
    assert (event.type, event.reason) == ("Warning", "FailedMount")
    assert event.message == 'MountVolume.SetUp failed for volume "v" : permission denied: bad key'
    assert event.involved_object.name == "web"


def test_mountop03_a_failing_new_mounter(bench):
    error = bench.mount(ValueError("no kubelet host"), step="new_mounter")
    assert "MountVolume.NewMounter initialization failed" in str(error)
    assert bench.plugin.count("set_up") == 0


def test_a_plugin_is_held_while_a_volume_may_be_mounted(bench):
    loaded = bench.use.plugin
    assert not loaded.in_use
    bench.mount(FINAL)
    assert not loaded.in_use
    bench.mount(UNCERTAIN)
    assert loaded.in_use
    bench.mount()
    assert loaded.in_use
    bench.unmount()
    assert not loaded.in_use


def test_operr01_a_filesystem_mismatch_is_told_on_the_volume_too(manager, bind, data, make_pod, claimed):
    plugin = bind()
    node = manager(plugin)
    claimed(node.api)
    pod = make_pod({"name": "v", "persistentVolumeClaim": {"claimName": "claim"}})
    bench = Bench(node, plugin, pod)
    bench.mount(FormatError("wanted xfs, found ext4", kind="FilesystemMismatch"))
    bench.parts.host.flush_events(10)
    found = {(event.involved_object.kind, event.reason) for event in node.api.list(Event).items}
    assert found == {("Pod", "FailedMount"), ("PersistentVolume", "FailedMountOnFilesystemMismatch")}
