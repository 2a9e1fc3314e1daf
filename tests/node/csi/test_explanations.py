"""Why a CSI volume is not mounted, and what would be done for it (BR-83, with a driver that really answers so)."""

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost.loader.events import NoProber
from volumehost.node.explaining.explain import explain_recorded
from volumehost.node.explaining.plan import planner
from volumehost.node.explaining.sequence import VolumeKind, mount_sequence, phase_at
from volumehost.node.populating.pod_objects import apply_pod
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

NAME = "fake.csi.example.com"
STAGED = VolumeKind(claim="c", provisioner=NAME, attaches=True, mounts_device=True)


def _explain(node, name="web"):
    return node.explain(node.api.get(Pod, name, "default"))


def _volume(told, name):
    return next(volume for volume in told.volumes if volume.volume == name)


def _here(volume):
    return [point.name for point in volume.sequence if point.state == "here"]


def _handle(node, claim):
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

    bound = node.api.get(PersistentVolumeClaim, claim, "default").spec.volume_name
    return node.api.get(PersistentVolume, bound).spec.csi.volume_handle


def test_br83_one_of_three_volumes_fails_in_the_driver(manager, driver, claim, pod, root, unready):
    """The wait times out: volume, plugin, operation, attempts, last error, next retry, in the error and afterwards."""
    with manager(enter=False) as node:
        _prepare(node, driver)
        for name in ("one", "two", "three"):
            claim(node.api, name)
        node.mount_pod(pod(claims=("one", "two", "three")), timeout=60)
        node.unmount_pod("web", timeout=60)
        driver.script(
            Rule("NodeStageVolume", times=None, volume_id=_handle(node, "two"), code="PERMISSION_DENIED",
                 message="bad key")
        )  # fmt: skip
        caught = unready(node, pod(claims=("one", "two", "three")), r"unmounted volumes=\[two\](?s:.*)next retry in")
        told = _explain(node)
        (line,) = [each for each in node.status() if each.name == "web"]
    (detail,) = caught.value.details
    head = detail.splitlines()[0]
    for words in ("volume two (kubernetes.io/csi", "failed, operation volume_mount", "attempt", "at step mount-device",
                  "next retry in"):  # fmt: skip
        assert words in head, head
    assert "NodeStageVolume with PERMISSION_DENIED: bad key" in detail
    assert told.summary == "1 of 3 volumes is not mounted"
    volume = _volume(told, "two")
    assert _here(volume) == ["mount-device"]
    assert volume.source.startswith("claim default/two, persistent volume pvc-")
    assert volume.source.endswith(f"driver {NAME}")
    assert any("credentials" in advice for advice in volume.advice)
    (status,) = [each for each in line.volumes if not each.ready]
    assert "\n" not in status.explain()
    assert "PERMISSION_DENIED: bad key" in status.explain()
    recorded = _volume(explain_recorded(root, None, "default", "web"), "two")
    assert (recorded.error, recorded.advice) == (volume.error, volume.advice)
    assert [point.state for point in recorded.sequence] == [point.state for point in volume.sequence]


def _prepare(node, driver):
    node.drivers.register(NAME, driver.endpoint)
    node.api.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fake"},
                     "provisioner": NAME, "parameters": {"tier": "gold", "adminPassword": "hunter2"}})  # fmt: skip
    node.api.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": NAME},
                     "spec": {"attachRequired": True}})  # fmt: skip


def test_a_claim_that_the_driver_refuses(manager, driver, claim, pod, unready):
    driver.script(Rule("CreateVolume", times=None, code="RESOURCE_EXHAUSTED", message="the pool is full"))
    node = manager()
    claim(node.api)
    caught = unready(node, pod(), "the pool is full")
    volume = _volume(_explain(node), "claim")
    assert _here(volume) == ["provision"]
    assert volume.attempts >= 1
    assert any("the pool is full" in line for line in volume.error)
    assert any("limit" in line for line in volume.advice)
    assert "the pool is full" in caught.value.details[0]


def test_an_attachment_that_fails_has_the_attachers_words(manager, driver, claim, pod, until):
    driver.script(Rule("ControllerPublishVolume", times=None, code="INTERNAL", message="no such node"))
    node = manager()
    claim(node.api)
    with pytest.raises((VolumesFailedError, WaitTimeoutError)):
        node.mount_pod(pod(), timeout=1.5)
    until(lambda: _explain(node).volumes[0].waits_for)
    volume = _volume(_explain(node), "claim")
    assert _here(volume) == ["attach"]
    assert any(line.startswith("VolumeAttachment csi-") and NAME in line for line in volume.waits_for)
    assert any("no such node" in line for line in volume.error)


def test_br27_a_driver_that_is_not_registered(manager, pod, unready):
    node = manager(register=False, attach_required=False)
    inline = {"name": "scratch", "csi": {"driver": NAME}}
    unready(node, pod(claims=(), volumes=[inline]), "waiting")
    volume = _volume(_explain(node), "scratch")
    assert (volume.state, _here(volume)) == ("waiting", ["set-up"])
    assert f"driver {NAME}, which is not registered; it is heard when it comes" in volume.waits_for
    assert volume.advice


def test_a_call_that_hangs_is_told_with_its_age(manager, driver, claim, pod, until, unready):
    driver.script(Rule("NodePublishVolume", hang=True))
    node = manager(attach_required=False)
    claim(node.api)
    unready(node, pod(), "at step set-up")
    until(lambda: _volume(_explain(node), "claim").hangs)
    volume = _volume(_explain(node), "claim")
    assert (_here(volume), volume.step) == (["set-up"], "set-up")
    assert volume.age > 1
    driver.release()
    until(lambda: _explain(node).ready)


# --- plans ------------------------------------------------------------------------------------------------------


class _Observed:
    def __init__(self):
        self.steps = []

    def __call__(self, operation, step, volume, pod_uid):
        self.steps.append((operation, step))


def test_a_plan_for_a_claim_that_is_to_be_provisioned_is_what_happens_then(manager, driver, claim, pod, root, snapshot):
    observed = _Observed()
    with manager(enter=False) as node:
        _prepare(node, driver)
        claim(node.api)
    before = snapshot(root)
    calls = len(driver.calls())
    with planner(root, node_name="here", plugins=[CSIPlugin()], prober=NoProber()) as made:
        plan = made.mount(apply_pod(made.api, pod()))
    assert snapshot(root) == before
    assert len(driver.calls()) == calls
    assert plan.works, plan
    volume = _volume(plan, "claim")
    provision = volume.steps[0]
    assert provision.text == f"provision a volume for it, by driver {NAME}"
    assert provision.details["parameters"] == "adminPassword=***, tier=gold"
    assert (provision.details["storage class"], provision.details["size"]) == ("fake", "16Mi")
    with manager(enter=False, observer=observed) as node:
        node.mount_pod(pod(), timeout=60)
    sequence = mount_sequence(STAGED)
    phases = dict.fromkeys(sequence[phase_at(sequence, *step)].name for step in observed.steps)
    assert list(phases) == [step.phase for step in volume.steps if step.operation]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parameters": {"csi.storage.k8s.io/provisioner-secret-name": "s",
                         "csi.storage.k8s.io/provisioner-secret-namespace": "default"}}, "reading secret default/s"),
        ({"parameters": {"csi.storage.k8s.io/node-stage-secret-name": "s",
                         "csi.storage.k8s.io/node-stage-secret-namespace": "default"}}, "there is no secret default/s"),
        ({"parameters": {"csi.storage.k8s.io/nonsense": "x"}}, "the prefix csi.storage.k8s.io/ is reserved"),
        ({"provisioner": "other.csi.example.com"}, "neither a driver nor a plugin of that name"),
        ({"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["far"]}]}],
          "volumeBindingMode": "WaitForFirstConsumer"}, "in none of the topologies"),
    ],
)  # fmt: skip
def test_what_would_be_in_the_way_of_provisioning(manager, driver, claim, pod, root, changes, words):
    with manager(enter=False) as node:
        node.drivers.register(NAME, driver.endpoint)
    with planner(root, node_name="here", plugins=[CSIPlugin()], prober=NoProber()) as made:
        made.api.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fake"},
                         "provisioner": NAME, **changes})  # fmt: skip
        claim(made.api)
        plan = made.mount(apply_pod(made.api, pod()))
    assert not plan.works
    assert any(words in problem for problem in _volume(plan, "claim").problems), plan


def test_inline_volumes_need_their_drivers_object_and_the_driver(manager, driver, pod, root):
    inline = {"name": "scratch", "csi": {"driver": NAME, "nodePublishSecretRef": {"name": "s"}}}
    with planner(root, node_name="here", plugins=[CSIPlugin()], prober=NoProber()) as made:
        plan = made.mount(apply_pod(made.api, pod(claims=(), volumes=[inline])))
    problems = "\n".join(_volume(plan, "scratch").problems)
    assert f"driver {NAME} is neither installed nor registered" in problems
    assert f"there is no CSIDriver {NAME}, which inline volumes need" in problems
    assert "there is no secret default/s" in problems


def test_a_block_volume_has_its_map_paths(manager, driver, claim, pod, root):
    with manager(enter=False) as node:
        _prepare(node, driver)
        claim(node.api, mode="Block")
        with planner(root, node_name="here", plugins=[CSIPlugin()], prober=NoProber()) as made:
            plan = made.mount(apply_pod(made.api, pod(claims=(), devices=("claim",))))
    texts = {step.phase: step.text for step in _volume(plan, "claim").steps}
    assert f"at {root}/pods/<uid of the pod>/volumeDevices/kubernetes.io~csi/pvc-" in texts["set-up"]
    assert [step.operation for step in _volume(plan, "claim").steps if step.phase == "set-up"] == ["map_volume"]
