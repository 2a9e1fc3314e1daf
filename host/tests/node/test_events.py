"""Each event of the node: what brings it about, on which object, with which type and words (section 19, EVENT-01 to
-03). Those of growing volumes are in test_expansion.py, of raw block volumes in block/test_events.py, of volumes'
conditions in metrics/test_volume_stats.py, of slow ownership changes in the sdk's tests."""

from dataclasses import dataclass, field

import pytest

from volumehost import hookimpl
from volumehost.api.objects import Event
from volumehost.errors import FormatError, OperationError, VolumeHostError

pytestmark = pytest.mark.root


@dataclass
class Case:
    """One cause, and all events that come of it: (kind, name, type, reason) to the beginning of the message."""

    trouble: dict = field(default_factory=dict)
    events: dict = field(default_factory=dict)
    pod: str = "claimed"
    unmount: bool = False
    volume: dict = field(default_factory=dict)
    claims: bool = True


def fail(error):
    def action():
        raise error

    return action


SUCCEEDED = {("Pod", "web", "Normal", "SuccessfulAttachVolume"): 'AttachVolume.Attach succeeded for volume "pv-claim"'}
ELSEWHERE = {
    "nodeAffinity": {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}]}
            ]
        }
    }
}

CASES = {
    "MOUNTOP-13: a filesystem volume that is mounted and unmounted": Case(unmount=True, events=SUCCEEDED),
    "MOUNTOP-13: set-up fails": Case(
        trouble={"set_up": fail(OperationError("no such export"))},
        events={
            **SUCCEEDED,
            ("Pod", "web", "Warning", "FailedMount"): 'MountVolume.SetUp failed for volume "pv-claim" : no such export',
        },
    ),
    "MOUNTOP-07: the device cannot be mounted": Case(
        trouble={"mount_device": fail(OperationError("bad magic"))},
        events={
            **SUCCEEDED,
            (
                "Pod",
                "web",
                "Warning",
                "FailedMount",
            ): 'MountVolume.MountDevice failed for volume "pv-claim" : bad magic',
        },
    ),
    "OPERR-01: it has another filesystem than is asked for": Case(
        trouble={"mount_device": fail(FormatError("wanted xfs, found ext4", kind="FilesystemMismatch"))},
        events={
            **SUCCEEDED,
            ("Pod", "web", "Warning", "FailedMount"): 'MountVolume.MountDevice failed for volume "pv-claim" : wanted',
            ("PersistentVolume", "pv-claim", "Warning", "FailedMountOnFilesystemMismatch"): "MountVolume.MountDevice",
        },
    ),
    "MOUNTOP-02: the volume is for another node": Case(
        volume=ELSEWHERE,
        events={
            **SUCCEEDED,
            ("Pod", "web", "Warning", "FailedMount"): 'MountVolume.NodeAffinity check failed for volume "pv-claim" : ',
        },
    ),
    "ATTACH-02: it cannot be attached": Case(
        trouble={"attach": fail(OperationError("no path"))},
        events={
            ("Pod", "web", "Warning", "FailedAttachVolume"): (
                'AttachVolume.Attach failed for volume "pv-claim" : no path'
            )
        },
    ),
    "VM-07: the node is at its limit": Case(
        trouble={"attach": fail(OperationError("too many")), "exhausted": True},
        events={
            ("Pod", "web", "Warning", "FailedAttachVolume"): "AttachVolume.Attach failed",
            ("Pod", "web", "Warning", "VolumeAttachmentLimitExceeded"): (
                "this node cannot take another volume like pv-claim of example.com/disk"
            ),
        },
    ),
    "UNMOUNT-05: the reverse fails": Case(
        trouble={"tear_down": fail(OperationError("busy"))}, unmount=True, events=SUCCEEDED
    ),
    "UNMDEV-06: the device cannot be unmounted": Case(
        trouble={"unmount_device": fail(OperationError("busy"))}, unmount=True, events=SUCCEEDED
    ),
    "DETACH-03: it cannot be detached": Case(
        trouble={"detach": fail(OperationError("busy"))}, unmount=True, events=SUCCEEDED
    ),
    "VM-08: the claim is not there": Case(
        claims=False,
        events={
            ("Pod", "web", "Warning", "FailedMount"): (
                "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
                "failed to process volumes=[v]: "
            )
        },
    ),
    "VM-08: two volumes of three": Case(
        pod="several",
        events={
            **SUCCEEDED,
            ("Pod", "web", "Warning", "FailedMount"): (
                "Unable to attach or mount volumes: unmounted volumes=[gone other v], unattached volumes=[v], "
                "failed to process volumes=[gone other]: "
            ),
        },
    ),
}


@pytest.fixture
def pods(make_pod):
    def claim(name):
        return {"name": name, "persistentVolumeClaim": {"claimName": "claim" if name == "v" else name}}

    iscsi = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}
    return {
        "claimed": make_pod(claim("v")),
        "several": make_pod(claim("v"), claim("gone"), {"name": "other", "iscsi": iscsi}),
    }


@pytest.fixture
def plugin(disk):
    class Full(disk):
        @hookimpl
        def verify_exhausted_resource(self, spec):
            return bool(self.trouble.get("exhausted"))

    return Full()


def told(node):
    """Every event: (kind, name, type, reason) to the message; each must have been reported by the kubelet."""
    node.host.flush_events(10)
    found = {}
    for event in node.api.list(Event).items:
        assert (event.source.component, event.source.host) == ("kubelet", "here")  # EVENT-01
        involved = event.involved_object
        found[involved.kind, involved.name, event.type, event.reason] = event.message
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_event_of_the_node(manager, plugin, claimed, pods, case):
    plugin.trouble = {} if case.unmount else dict(case.trouble)
    node = manager(plugin, controllers=False, node_name="here")
    if case.claims:
        claimed(node.api, volume=dict(case.volume))
    try:
        node.mount_pod(pods[case.pod], timeout=20, attempts=1)
    except VolumeHostError:
        assert not case.unmount
    if case.unmount:
        plugin.trouble = dict(case.trouble)
        try:
            node.unmount_pod("web", timeout=0.2)
        except VolumeHostError:
            assert case.trouble
        plugin.trouble = {}
    found = told(node)
    assert found.keys() == case.events.keys()
    for key, beginning in case.events.items():
        assert found[key].startswith(beginning)
        assert "UniqueName" not in found[key], "EVENT-03: no details of the host"


def test_vm08_a_claim_that_is_being_looked_after_is_no_event_of_the_pod(manager, plugin, claimed, pods):
    node = manager(plugin, node_name="here")
    claimed(node.api, phase="Pending", claim={"storageClassName": "later"}, reference=False)
    node.sync_pod(node.api.create(pods["claimed"]))
    node.host.flush_events(10)
    assert [event for event in node.api.list(Event).items if event.involved_object.kind == "Pod"] == []


def test_verifyatt01_what_is_still_attached_after_a_restart_is_no_news(manager, plugin, claimed, pods):
    with manager(plugin, controllers=False, node_name="here", enter=False) as node:
        claimed(node.api)
        node.mount_pod(pods["claimed"], timeout=20)
    node = manager(plugin, controllers=False, node_name="here")
    node.mount_pod(pods["claimed"], timeout=20)
    node.host.flush_events(10)
    (event,) = node.api.list(Event).items
    assert (event.reason, event.count) == ("SuccessfulAttachVolume", 1)
