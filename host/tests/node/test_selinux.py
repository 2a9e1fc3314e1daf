"""SELinux options of containers reach the mount as a label, where that may be (SEL-01 to -06, DSW-08, ASW-18, -19, -30,
RECON-52). This machine's SELinux is a directory."""

import os

import pytest

from volumehost import ReconstructedVolume, Spec, hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import Event, PersistentVolume, Pod
from volumehost.errors import VolumesFailedError
from volumehost.metrics.exposition import NodeMetrics
from volumehost.mount.selinux import SELinux

pytestmark = pytest.mark.root

FILES = "system_u:object_r:container_file_t"
A, B = f"{FILES}:s0:c1,c2", f"{FILES}:s0:c3,c4"
LEVEL_A, LEVEL_B = {"level": "s0:c1,c2"}, {"level": "s0:c3,c4"}


@pytest.fixture
def selinux(tmp_path):
    """SELinux that is on, with the policy that most systems have."""
    (tmp_path / "selinuxfs").mkdir()
    (tmp_path / "selinuxfs" / "enforce").write_text("1")
    contexts = tmp_path / "etc" / "targeted" / "contexts"
    contexts.mkdir(parents=True)
    (contexts / "lxc_contexts").write_text(f'file = "{FILES}:s0"\n')
    return SELinux(str(tmp_path / "selinuxfs"), str(tmp_path / "etc"))


@pytest.fixture
def labelled(disk):
    """A plugin that can mount with a label; ``labels`` are those that it was told, by step."""

    class Labelled(disk):
        supports = True

        @hookimpl
        def supports_selinux_context_mount(self, spec):
            return self.supports

        @property
        def labels(self):
            return [(call[0], call[-1].selinux_label) for call in self.calls if call[0] in ("mount_device", "set_up")]

    return Labelled()


@pytest.fixture
def node_of(manager, selinux):
    def make(plugin, **options):
        return manager(plugin, **{"selinux": selinux, "controllers": False, **options})

    return make


@pytest.fixture
def rwop(claimed):
    """A claim of a volume for one pod at a time, or with other access modes."""

    def make(api, name="claim", modes=("ReadWriteOncePod",), **fields):
        both = {"accessModes": list(modes)}
        return claimed(api, name, claim=dict(both), volume=dict(both), **fields)

    return make


def pod(*containers, name="web", context=None, volume=None, uid=""):
    """A pod whose containers have these SELinux options (None for none) and all mount its volume."""
    volume = volume or {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    made = [
        {
            "name": f"c{number}",
            "image": "i",
            "volumeMounts": [{"name": volume["name"], "mountPath": "/v"}],
            **({"securityContext": {"seLinuxOptions": options}} if options is not None else {}),
        }
        for number, options in enumerate(containers or (None,))
    ]
    spec = {"containers": made, "volumes": [volume]}
    if context is not None:
        spec["securityContext"] = context
    return {"metadata": {"name": name, **({"uid": uid} if uid else {})}, "spec": spec}


def status_of(node, name="web"):
    (found,) = [each for each in node.status() if each.name == name]
    return found.volumes[0]


@pytest.fixture
def gauges():
    metrics = NodeMetrics()

    def read(node):
        metrics.attach(node)
        try:
            return {
                (sample.name.removeprefix("volume_manager_selinux_"), *sample.labels.values()): sample.value
                for family in metrics.collect()
                for sample in family.samples
                if sample.name.startswith("volume_manager_selinux_")
            }
        finally:
            metrics.detach()

    return read


def test_sel01_02_the_label_reaches_the_device_and_the_pods_mount(node_of, labelled, rwop, gauges):
    node = node_of(labelled)
    rwop(node.api)
    node.mount_pod(pod(LEVEL_A), timeout=20)
    assert labelled.labels == [("mount_device", A), ("set_up", A)]
    assert status_of(node).selinux == f"mounted with the label {A}"
    assert gauges(node) == {("volumes_admitted_total", "ReadWriteOncePod", "example.com/disk"): 1}


@pytest.mark.parametrize(
    ("containers", "context", "label"),
    [
        ([None], {"seLinuxOptions": LEVEL_A}, A),
        ([LEVEL_A, None], None, A),
        ([LEVEL_A, LEVEL_A], {"seLinuxOptions": LEVEL_B}, A),
        ([LEVEL_A, None], {"seLinuxOptions": LEVEL_A}, A),
        ([None], None, ""),
        ([{"type": "spc_t"}], None, ""),
        ([LEVEL_A], {"seLinuxChangePolicy": "MountOption"}, A),
        ([LEVEL_A], {"seLinuxChangePolicy": "Recursive"}, ""),
    ],
    ids=["pod's", "one of two", "own before the pod's", "same twice", "none", "no level", "MountOption", "Recursive"],
)
def test_util17_sel02_whose_options_count(node_of, labelled, rwop, containers, context, label):
    node = node_of(labelled)
    rwop(node.api)
    node.mount_pod(pod(*containers, context=context), timeout=20)
    assert labelled.labels == [("mount_device", label), ("set_up", label)]


@pytest.mark.parametrize("modes", [("ReadWriteOnce",), ("ReadWriteMany",)])
def test_sel02_other_access_modes_are_left_to_the_runtime(node_of, labelled, rwop, gauges, modes):
    node = node_of(labelled)
    rwop(node.api, modes=modes)
    node.mount_pod(pod(LEVEL_A), timeout=20)
    assert {label for _, label in labelled.labels} == {""}
    assert status_of(node).selinux == f"left to the container runtime: {A}"
    assert gauges(node) == {}


def test_sel02_so_is_a_plugin_that_cannot_and_a_volume_of_the_pod_alone(node_of, labelled, rwop, nfs):
    labelled.supports = False
    node = node_of(labelled)
    rwop(node.api)
    node.mount_pod(pod(LEVEL_A), timeout=20)
    labelled.supports = True
    node.mount_pod(pod(LEVEL_A, name="own", volume=nfs("own")), timeout=20)
    assert {label for _, label in labelled.labels} == {""}


def test_sel01_03_different_labels_in_one_pod(node_of, labelled, rwop, gauges):
    node = node_of(labelled)
    rwop(node.api)
    with pytest.raises(VolumesFailedError, match=rf"(?s)multiple SELinux labels found: {A}, {B}.*seLinuxOptions"):
        node.mount_pod(pod(LEVEL_A, LEVEL_B), timeout=20)
    node.host.flush_events(10)
    (event,) = node.api.list(Event).items
    assert (event.reason, "multiple SELinux labels" in event.message) == ("FailedMount", True)
    assert labelled.labels == []
    assert gauges(node) == {("pod_context_mismatch_errors_total", "ReadWriteOncePod"): 1}


def test_sel03_the_same_where_it_does_not_block_is_only_counted_once(node_of, labelled, rwop, gauges):
    node = node_of(labelled)
    rwop(node.api, modes=("ReadWriteOnce",))
    for _ in range(2):
        node.mount_pod(pod(LEVEL_A, LEVEL_B), timeout=20)
    assert {label for _, label in labelled.labels} == {""}
    assert gauges(node) == {("pod_context_mismatch_warnings_total", "ReadWriteOnce"): 1}


def test_sel01_03_a_label_that_cannot_be_made(node_of, labelled, rwop, gauges, tmp_path):
    (tmp_path / "other").mkdir()
    node = node_of(labelled)
    rwop(node.api)
    rwop(node.api, "other", modes=("ReadWriteOnce",), path=str(tmp_path / "other"))
    broken = {"level": 's0",exec'}
    with pytest.raises(VolumesFailedError, match="is no SELinux level"):
        node.mount_pod(pod(broken), timeout=20)
    other = {"name": "v", "persistentVolumeClaim": {"claimName": "other"}}
    node.mount_pod(pod(broken, name="other", volume=other), timeout=20)
    assert gauges(node) == {
        ("container_errors_total", "ReadWriteOncePod"): 1,
        ("container_warnings_total", "ReadWriteOnce"): 1,
    }


def test_sel04_a_second_pod_with_another_label(node_of, labelled, rwop, gauges):
    node = node_of(labelled)
    rwop(node.api)
    node.mount_pod(pod(LEVEL_A), timeout=20)
    with pytest.raises(VolumesFailedError, match=rf'conflicting SELinux labels of volume pv-claim: "{A}" and "{B}"'):
        node.mount_pod(pod(LEVEL_B, name="second"), timeout=20)
    assert gauges(node) == {
        ("volumes_admitted_total", "ReadWriteOncePod", "example.com/disk"): 1,
        ("volume_context_mismatch_errors_total", "ReadWriteOncePod", "example.com/disk"): 1,
    }


def test_sel04_where_it_does_not_block_both_have_it(node_of, labelled, rwop, gauges):
    node = node_of(labelled)
    rwop(node.api, modes=("ReadWriteMany",))
    node.mount_pod(pod(LEVEL_A), timeout=20)
    node.mount_pod(pod(LEVEL_B, name="second"), timeout=20)
    assert gauges(node) == {
        ("volume_context_mismatch_warnings_total", "ReadWriteMany", "example.com/disk"): 1
    }  # fmt: skip


def test_sel05_asw19_the_next_pods_label_needs_the_volume_to_be_forgotten_first(node_of, labelled, rwop, until, kept):
    """The device is left mounted for a moment when the first pod ends; a second one wants it with another label."""
    node = node_of(labelled)
    rwop(node.api)
    node.mount_pod(pod(LEVEL_A), timeout=20)
    labelled.trouble["unmount_device"] = _not_yet
    kept(node, "web", "not yet")
    labelled.calls.clear()
    del labelled.trouble["unmount_device"]
    node.mount_pod(pod(LEVEL_B, name="second"), timeout=20)
    order = [call[0] for call in labelled.calls if call[0] in ("unmount_device", "detach", "attach", "mount_device")]
    assert order == ["unmount_device", "detach", "attach", "mount_device"]
    assert labelled.labels == [("mount_device", B), ("set_up", B)]


def _not_yet():
    raise OSError("not yet")


@pytest.fixture
def restarted(node_of, labelled, rwop):
    """A manager on a node where an earlier one mounted the pod with label A; and the pod."""

    def make():
        with node_of(labelled, enter=False) as node:
            rwop(node.api)
            node.mount_pod(pod(LEVEL_A), timeout=20)
            stored = node.api.get(Pod, "web", "default")
        labelled.calls.clear()
        return node_of(labelled), stored

    return make


def test_recon52_dsw08_after_a_restart_the_pod_wants_another_label(restarted, labelled):
    node, wanted = restarted()
    wanted.spec.containers[0].security_context.se_linux_options.level = LEVEL_B["level"]
    node.sync_pod(wanted)
    node.wait_for_pod(wanted, timeout=20)
    steps = [call[0] for call in labelled.calls]
    assert steps.index("tear_down") < steps.index("unmount_device") < steps.index("mount_device")
    assert labelled.labels[-2:] == [("mount_device", B), ("set_up", B)]


def test_recon50_with_the_same_label_nothing_is_unmounted(restarted, labelled):
    node, wanted = restarted()
    node.sync_pod(wanted)
    node.wait_for_pod(wanted, timeout=20)
    assert labelled.count("tear_down") == labelled.count("unmount_device") == 0
    assert {label for _, label in labelled.labels} <= {A}


def test_recon23_a_label_that_only_the_plugin_remembers(restarted, labelled, root):
    """Without the journal the plugin tells with which label a volume is mounted (CSI-SEL-07)."""
    made = labelled.construct_volume_spec

    def remembered(volume_name, mount_path):
        volume = to_object(PersistentVolume, {
            "metadata": {"name": volume_name},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"],
                     "nfs": {"server": "s", "path": labelled.path}},
        })  # fmt: skip
        return ReconstructedVolume(Spec.from_persistent_volume(volume, read_only=False), A, complete=False)

    remembered.volumehost_impl = made.volumehost_impl
    labelled.construct_volume_spec = remembered
    node, wanted = restarted()
    labelled.path = node.api.get(PersistentVolume, "pv-claim").spec.nfs.path
    node.__exit__(None, None, None)
    os.unlink(f"{root}/volumes.journal")
    with node:
        node.sync_pod(wanted)
        node.wait_for_pod(wanted, timeout=20)
        assert labelled.count("tear_down") == labelled.count("unmount_device") == 0


@pytest.fixture
def machine_without(tmp_path):
    return SELinux(str(tmp_path / "no-selinuxfs"), str(tmp_path / "no-etc"))


def test_where_the_kernel_has_none_options_are_carried_and_not_applied(
    node_of, labelled, rwop, gauges, machine_without
):
    node = node_of(labelled, selinux=machine_without)
    rwop(node.api)
    node.mount_pod(pod(LEVEL_A, LEVEL_B), timeout=20)
    assert {label for _, label in labelled.labels} == {""}
    volume = status_of(node)
    assert volume.selinux == "not applicable: this kernel has no SELinux"
    assert node.status()[0].to_dict()["volumes"][0]["selinux"] == volume.selinux
    (explained,) = node.explain(node.api.get(Pod, "web", "default")).volumes
    assert "  SELinux: not applicable: this kernel has no SELinux" in explained.lines()
    assert gauges(node) == {}


def test_pods_without_options_say_nothing_of_it(node_of, labelled, rwop, machine_without):
    node = node_of(labelled, selinux=machine_without)
    rwop(node.api)
    node.mount_pod(pod(), timeout=20)
    assert status_of(node).selinux == ""
