"""What would be done is told without doing it, and is what is done then."""

import os
import subprocess

import pytest

from volumehost.errors import ObjectNotFoundError, OperationError, VolumesFailedError
from volumehost.loader.events import NoProber
from volumehost.node.explaining.plan import planner
from volumehost.node.explaining.sequence import VolumeKind, mount_sequence, phase_at, unmount_sequence
from volumehost.node.populating.pod_objects import apply_pod

pytestmark = pytest.mark.root

SHARED = VolumeKind(claim="c", attaches=True, mounts_device=True)


@pytest.fixture
def plan(root):
    """Plans to mount a pod whose manifest counts as applied, or one that is in the store, by name."""

    def make(pod, *plugins, objects=()):
        with planner(root, node_name="here", plugins=plugins, prober=NoProber()) as made:
            for each in objects:
                made.api.create(each)
            if isinstance(pod, str):
                from volumehost.api.objects import Pod

                return made.mount(made.api.get(Pod, pod, "default"))
            return made.mount(apply_pod(made.api, pod))

    return make


@pytest.fixture
def plan_unmount(root):
    def make(name, *plugins):
        with planner(root, node_name="here", plugins=plugins, prober=NoProber()) as made:
            return made.unmount(name, "default")

    return make


class _Observed:
    """The phases of a sequence that a manager went through, in order."""

    def __init__(self):
        self.steps = []

    def __call__(self, operation, step, volume, pod_uid):
        self.steps.append((operation, step))

    def phases(self, sequence):
        names = [sequence[phase_at(sequence, *step)].name for step in self.steps]
        return list(dict.fromkeys(names))


def _phases(volume):
    return [step.phase for step in volume.steps if step.operation]


def _claim(name="claim", storage_class="", volume="", modes=("ReadWriteOnce",)):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": list(modes),
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
            **({"volumeName": volume} if volume else {}),
        },
    }


def _volume(name="pv", **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                 "nfs": {"server": "s", "path": "/x"}, **spec},
    }  # fmt: skip


def _class(name="fast", provisioner="csi.example.com", **fields):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, **fields}  # fmt: skip


def test_a_root_directory_that_is_not_there_is_not_made(bind, nfs, pod_with, plan, volume_of, root):
    plugin = bind()
    told = plan(pod_with(nfs("v")), plugin)
    assert told.works
    volume = volume_of(told)
    assert (volume.state, volume.plugin) == ("to-do", "example.com/bind")
    assert _phases(volume) == ["check", "set-up", "mounted"]
    (path,) = [step.text for step in volume.steps if step.phase == "set-up"]
    assert f"{root}/pods/<uid of the pod>/volumes/example.com~bind/v" in path
    assert not os.path.exists(root)
    assert {call[0] for call in plugin.calls} == {"can_support"}


def test_nothing_changes_and_the_plan_is_what_happens_then(
    manager, disk, claimed, pod_with, claimed_volume, plan, volume_of, root, mounts, snapshot
):
    plugin, observed = disk(), _Observed()
    with manager(plugin, enter=False) as node:
        claimed(node.api)
    before = snapshot(root)
    planned = disk()
    told = plan(pod_with(claimed_volume()), planned)
    assert snapshot(root) == before
    assert told.works
    # A plugin is asked for names and places, and told to do nothing.
    assert {call[0] for call in planned.calls} <= {"can_support", "get_device_mount_path"}
    with manager(plugin, enter=False, observer=observed) as node:
        status = node.mount_pod(pod_with(claimed_volume()), timeout=20)
    assert observed.phases(mount_sequence(SHARED)) == _phases(volume_of(told))
    (stage,) = [step.text for step in volume_of(told).steps if step.phase == "mount-device"]
    assert stage.rpartition(" at ")[2] in mounts()
    (mounted,) = status.volumes
    (path,) = [step.text for step in volume_of(told).steps if step.phase == "set-up"]
    assert mounted.path.replace(status.uid, "<uid of the pod>") in path


def test_what_is_mounted_needs_nothing_and_what_is_staged_is_not_staged_again(
    manager, disk, claimed, pod_with, claimed_volume, plan, volume_of
):
    plugin = disk()
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        node.mount_pod(pod_with(claimed_volume()), timeout=20)
    told = plan("web", disk())
    assert (told.works, volume_of(told).state, volume_of(told).steps) == (True, "done", ())
    assert told.lines()[0] == "plan to mount pod default/web: nothing is left to do"
    second = volume_of(plan(pod_with(claimed_volume(), name="second"), disk()))
    assert _phases(second) == ["check", "wait-for-device", "set-up", "mounted"]


def test_to_unmount_what_another_pod_has_leaves_it_on_the_node(
    manager, disk, claimed, pod_with, claimed_volume, plan_unmount, volume_of, root, snapshot
):
    plugin, observed = disk(), _Observed()
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        for name in ("one", "two"):
            node.mount_pod(pod_with(claimed_volume(), name=name), timeout=20)
    shared = volume_of(plan_unmount("one", disk()))
    assert _phases(shared) == ["subpaths", "tear-down"]
    assert shared.notes == ("pod default/two has it too, so it stays on the node",)
    with manager(plugin, enter=False) as node:
        node.unmount_pod("one", timeout=20)
    before = snapshot(root)
    told = plan_unmount("two", disk())
    assert snapshot(root) == before
    with manager(plugin, enter=False, observer=observed) as node:
        node.unmount_pod("two", timeout=20)
    assert _phases(volume_of(told)) == observed.phases(unmount_sequence(SHARED))


def test_what_keeps_a_volume_busy_is_in_the_way_of_unmounting_it(
    manager, bind, nfs, pod_with, plan_unmount, volume_of, until
):
    with manager(bind(), enter=False) as node:
        (mounted,) = node.mount_pod(pod_with(nfs("v")), timeout=20).volumes
    holder = subprocess.Popen(["sleep", "60"], cwd=mounted.path)
    try:
        until(lambda: os.readlink(f"/proc/{holder.pid}/cwd") == mounted.path)
        told = plan_unmount("web", bind())
    finally:
        holder.kill()
        holder.wait()
    assert not told.works
    assert any(f"process {holder.pid} (sleep)" in problem for problem in volume_of(told).problems)
    with pytest.raises(ObjectNotFoundError):
        plan_unmount("absent", bind())


def test_a_claim_is_bound_as_the_controllers_would(bind, pod_with, claimed_volume, plan, volume_of):
    objects = [_volume("big", capacity={"storage": "5Gi"}), _volume("small"), _claim()]
    volume = volume_of(plan(pod_with(claimed_volume()), bind(), objects=objects))
    assert volume.steps[0].text == "bind it to persistent volume small"
    assert volume.source == "claim default/claim, persistent volume small"


def test_a_claim_of_an_ephemeral_volume_is_made_for_its_pod(bind, pod_with, plan, volume_of):
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                         "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    pod = pod_with({"name": "v", "ephemeral": {"volumeClaimTemplate": template}})
    volume = volume_of(plan(pod, bind(), objects=[_volume()]))
    assert [step.phase for step in volume.steps][:2] == ["claim", "bind"]
    assert volume.steps[0].text == "make claim default/web-v for the pod"


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], "there is no persistentvolumeclaim default/claim"),
        ([_claim()], "it has no storage class"),
        ([_claim(storage_class="fast")], "there is no storageclass fast"),
        ([_claim(storage_class="fast"), _class(provisioner="kubernetes.io/no-provisioner")], "its class makes none"),
        ([_claim(storage_class="fast"), _class()], "neither a driver nor a plugin of that name"),
        ([_claim(volume="pv")], "persistentvolume pv, which claim default/claim names, is not there"),
        ([_claim(volume="pv"), _volume(capacity={"storage": "1Mi"})], "too small"),
        ([_claim(modes=("ReadWriteMany",)), _volume()], "pv: it does not offer ReadWriteMany"),
        ([_claim(), _volume(volumeMode="Block")], "pv: its volumeMode is Block"),
        ([_claim(), _volume(mountOptions=["ro"])], "takes none"),
        (
            [_claim(), _volume(nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}]}]}})],
            "node here cannot reach persistentvolume pv",
        ),
        ([_claim(), _volume(nfs=None, rbd={"monitors": ["m"], "image": "i"})], "no volume plugin matched"),
    ],
)  # fmt: skip
def test_what_would_be_in_the_way_of_a_claim(bind, pod_with, claimed_volume, plan, volume_of, objects, words):
    told = plan(pod_with(claimed_volume()), bind(), objects=objects)
    assert not told.works
    volume = volume_of(told)
    assert volume.state == "blocked"
    assert any(words in problem for problem in volume.problems), volume.problems
    assert told.lines()[0] == "plan to mount pod default/web: 1 of 1 volume would not work as things are"


def test_br42_a_volume_that_another_pod_has_is_in_the_way(
    manager, bind, claimed, pod_with, claimed_volume, plan, volume_of
):
    modes = {"accessModes": ["ReadWriteOncePod"]}
    with manager(bind(), enter=False) as node:
        claimed(node.api, claim=dict(modes), volume=dict(modes))
        node.mount_pod(pod_with(claimed_volume(), name="first"), timeout=20)
    told = plan(pod_with(claimed_volume(), name="second"), bind())
    assert volume_of(told).problems == ("pod default/first has the volume, and ReadWriteOncePod is for one pod",)
    assert plan("first", bind()).works


def test_pods_that_cannot_be_mounted(manager, bind, nfs, pod_with, plan):
    told = plan(pod_with(nfs("v"), nodeName="elsewhere"), bind())
    assert told.problems == ("it is for node elsewhere, and this is here",)
    from volumehost.api.objects import Pod

    with manager(bind(), enter=False) as node:
        apply_pod(node.api, pod_with(nfs("v")))
        node.api.delete(Pod, "web", "default")
    told = plan("web", bind())
    assert (told.works, told.problems) == (False, ("it is being deleted: unmount it first",))


def test_a_volume_that_no_container_uses_and_subpaths(bind, nfs, pod_with, plan, volume_of):
    pod = pod_with(nfs("v"))
    pod["spec"]["volumes"].append(nfs("idle"))
    pod["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = "logs"
    told = plan(pod, bind())
    assert volume_of(told, "idle").state == "unused"
    assert [step.text for step in volume_of(told).steps if step.phase == "subpath"] == [
        "for container c: bind its subPath logs, made if it is not there"
    ]


def test_a_group_and_growth_are_told(manager, disk, claimed, pod_with, claimed_volume, plan, volume_of):
    context = {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"}
    with manager(disk(), enter=False) as node:
        claimed(node.api)
    told = plan(pod_with(claimed_volume(), securityContext=context), disk())
    (text,) = [step.text for step in volume_of(told).steps if step.phase == "set-up"]
    assert text.endswith("its files are given to group 2000 (fsGroup, OnRootMismatch)")


def test_parameters_are_shown_without_what_may_be_a_secret():
    from volumehost.node.explaining.plan_provisioning import shown_parameters

    shown = shown_parameters({"type": "ssd", "adminPassword": "hunter2", "apiKey": "x1", "authToken": "t"})
    assert shown == "adminPassword=***, apiKey=***, authToken=***, type=ssd"


def test_the_plan_as_data(bind, nfs, pod_with, plan):
    data = plan(pod_with(nfs("v")), bind()).to_dict()
    assert (data["action"], data["works"], data["volumes"][0]["state"]) == ("mount", True, "to-do")
    assert set(data["volumes"][0]["steps"][0]) == {"phase", "text", "operation", "details"}


def test_a_store_that_cannot_be_read_is_an_error(bind, nfs, pod_with, plan, root):
    from volumehost.errors import StoreError

    os.makedirs(root)
    os.mkfifo(f"{root}/store.sqlite3")
    with pytest.raises(StoreError, match="not a regular file"):
        plan(pod_with(nfs("v")), bind())


def test_to_unmount_what_was_never_mounted_takes_nothing(
    manager, bind, disk, nfs, claimed, pod_with, claimed_volume, plan_unmount, volume_of
):
    def away():
        raise OperationError("away")

    plugin, attaching = bind(), disk()
    plugin.sources, attaching.sources = ("cephfs",), ("nfs",)
    plugin.trouble["set_up"] = attaching.trouble["set_up"] = away
    broken = {"name": "broken", "cephfs": {"monitors": ["m"], "path": "/x"}}
    with manager(plugin, attaching, enter=False) as node:
        claimed(node.api)
        with pytest.raises(VolumesFailedError):
            node.mount_pod(pod_with(broken, claimed_volume(), claimed_volume("no", "no")), timeout=20, attempts=1)
    told = plan_unmount("web", bind(), disk())
    assert [volume_of(told, name).state for name in ("broken", "no")] == ["done", "done"]
    assert _phases(volume_of(told)) == ["unmount-device", "detach"]


def test_br57_what_a_lost_journal_leaves_uncertain_is_planned_to_be_torn_down(
    manager, bind, nfs, pod_with, plan_unmount, root
):
    with manager(bind(), enter=False) as node:
        node.mount_pod(pod_with(nfs("v")), timeout=20)
    os.unlink(f"{root}/volumes.journal")
    (volume,) = plan_unmount("web", bind()).volumes
    assert (volume.state, [step.phase for step in volume.steps]) == ("to-do", ["subpaths", "tear-down"])
