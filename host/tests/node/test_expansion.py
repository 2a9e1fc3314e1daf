"""Growing volumes on the node: EXPN-01 to -40, SCEN-16, BR-44."""

import pytest

from volumehost import hookimpl
from volumehost.api.objects import Condition, Event, PersistentVolume, PersistentVolumeClaim
from volumehost.errors import (
    FailedPreconditionError,
    InfeasibleError,
    OperationError,
    OperationNotSupportedError,
    UncertainProgressError,
    VolumesFailedError,
)

pytestmark = pytest.mark.root

GIB = 1 << 30


@pytest.fixture
def growing(disk):
    """A disk that can be grown on the node."""

    class Growing(disk):
        def __init__(self):
            super().__init__()
            self.expansions = []

        @hookimpl
        def requires_fs_resize(self):
            return True

        @hookimpl
        def node_expand(self, resize_options):
            self.step("node_expand")
            self.expansions.append(resize_options)
            return True

    return Growing()


def _pod(name="web", **source):
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "claim", **source}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": [volume]}}


def _raise(error):
    def action():
        raise error

    return action


def _claim(node):
    return node.api.get(PersistentVolumeClaim, "claim", "default")


@pytest.fixture
def bound(claimed):
    """A claim of 1Gi that has what it asked for."""

    def make(api, **fields):
        claim = claimed(api, **fields)
        claim.status.capacity = {"storage": "1Gi"}
        return api.replace_status(claim)

    return make


def _grow(node, size="2Gi", *, state="NodeResizePending", allocated=None, capacity=None):
    """What the controller does: the volume first, then the claim's status tells that the node is to follow."""
    volume = node.api.get(PersistentVolume, "pv-claim")
    volume.spec.capacity = {"storage": size}
    node.api.replace(volume)
    claim = _claim(node)
    claim.spec.resources.requests = {"storage": size}
    claim = node.api.replace(claim)
    if state or allocated:
        claim.status.allocated_resources = {"storage": allocated or size}
    claim.status.allocated_resource_statuses = {"storage": state} if state else {}
    if capacity:
        claim.status.capacity = {"storage": capacity}
    node.api.replace_status(claim)


def _sync(node):
    """What a change of the claim brings about by itself once claims are followed."""
    mounting = node._now.mounting
    for record in node._now.parts.populator.records():
        mounting.resolve(record)


def _volume(node):
    actual = node._now.parts.services.actual
    (name,) = actual.volumes()
    return actual.get_volume(name)


def _reasons(node):
    node.host.flush_events(10)
    return {(event.involved_object.kind, event.type, event.reason) for event in node.api.list(Event).items}


# --- online -----------------------------------------------------------------------------------------------------


def test_scen16_a_claim_that_grows_while_it_is_mounted_is_grown_on_the_node_once(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    status = node.mount_pod(_pod(), timeout=30)
    assert growing.expansions == []
    _grow(node)
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    (options,) = growing.expansions
    assert (options.old_size, options.new_size) == (GIB, 2 * GIB)
    assert options.device_mount_path == status.volumes[0].path
    assert options.device_stage_path == growing.global_path(options.volume_spec)
    assert options.device_path == "/dev/examplep1"
    claim = _claim(node)
    assert claim.status.allocated_resource_statuses == {}
    assert claim.status.conditions == []
    _sync(node)
    _sync(node)
    until(lambda: not node._now.parts.pending.running())
    assert len(growing.expansions) == 1
    assert _volume(node).size == 2 * GIB
    assert ("Pod", "Normal", "FileSystemResizeSuccessful") in _reasons(node)
    assert ("PersistentVolumeClaim", "Normal", "FileSystemResizeSuccessful") in _reasons(node)


def test_a_change_of_the_claim_is_enough_once_claims_are_followed(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    node._now.parts.claims.begin()
    _grow(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    assert len(growing.expansions) == 1


def test_expn34_in_progress_is_written_down_before_the_call(manager, growing, bound, until):
    node, seen = manager(growing, controllers=False), []
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    growing.trouble["node_expand"] = lambda: seen.append(_claim(node).status.allocated_resource_statuses)
    _grow(node)
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    assert seen == [{"storage": "NodeResizeInProgress"}]


@pytest.mark.parametrize("state", ["ControllerResizeInProgress", "NodeResizeInfeasible"])
def test_expn31_what_the_claim_does_not_allow_waits_until_it_does(manager, growing, bound, until, state):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    _grow(node, state=state)
    _sync(node)
    until(lambda: _volume(node).resize_hold.value == "claim")
    assert growing.expansions == []
    _grow(node, state="NodeResizePending")
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    assert len(growing.expansions) == 1


@pytest.mark.parametrize("allocated", [None, "2Gi"])
def test_br44_the_node_is_not_called_when_the_controller_has_finished_the_claim(
    manager, growing, bound, until, allocated
):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    _grow(node, state="", allocated=allocated, capacity="2Gi")
    _sync(node)
    until(lambda: _volume(node).size == 2 * GIB)
    assert growing.expansions == []


def test_expn31_of_a_volume_of_several_nodes_each_node_is_called_unless_the_claim_says_that_none_need_be(
    manager, growing, bound, until
):
    node = manager(growing, controllers=False)
    modes = {"accessModes": ["ReadWriteMany"]}
    bound(node.api, claim=dict(modes), volume=dict(modes))
    node.mount_pod(_pod(), timeout=30)
    _grow(node, state="", allocated="2Gi", capacity="2Gi")
    _sync(node)
    until(lambda: _volume(node).size == 2 * GIB)
    assert len(growing.expansions) == 1
    claim = _claim(node)
    claim.metadata.annotations = {"volume.kubernetes.io/node-expansion-not-required": "true"}
    node.api.replace(claim)
    _grow(node, "3Gi", state="", allocated="3Gi", capacity="3Gi")
    _sync(node)
    until(lambda: _volume(node).size == 3 * GIB)
    assert len(growing.expansions) == 1


def test_expn35_not_supported_is_done_when_the_claim_has_the_size_already(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    modes = {"accessModes": ["ReadWriteMany"]}
    bound(node.api, claim=dict(modes), volume=dict(modes))
    node.mount_pod(_pod(), timeout=30)
    growing.trouble["node_expand"] = _raise(OperationNotSupportedError("UNIMPLEMENTED"))
    _grow(node, state="", allocated="2Gi", capacity="2Gi")
    _sync(node)
    until(lambda: _volume(node).size == 2 * GIB)
    assert growing.count("node_expand") == 1


def test_scen16_a_driver_that_cannot_grow_what_is_in_use_is_asked_once_and_again_at_the_next_mount(
    manager, growing, bound, until
):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    growing.trouble["node_expand"] = _raise(FailedPreconditionError("in use"))
    _grow(node)
    _sync(node)
    until(lambda: _volume(node).resize_hold.value == "in-use")
    until(lambda: [condition.message for condition in _claim(node).status.conditions] == ["in use"])
    _sync(node)
    until(lambda: not node._now.parts.pending.running())
    assert growing.count("node_expand") == 1
    assert node.status()[0].ready
    del growing.trouble["node_expand"]
    node.unmount_pod("web", timeout=30)
    node.mount_pod(_pod(), timeout=30)
    assert _claim(node).status.capacity == {"storage": "2Gi"}


def test_expn35_an_infeasible_expansion_is_marked_and_not_tried_again(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    growing.trouble["node_expand"] = _raise(InfeasibleError("OUT_OF_RANGE: too large"))
    _grow(node)
    _sync(node)
    until(lambda: _claim(node).status.allocated_resource_statuses == {"storage": "NodeResizeInfeasible"})
    (condition,) = _claim(node).status.conditions
    assert (condition.type, condition.status) == ("NodeResizeError", "True")
    assert "too large" in condition.message
    until(lambda: _volume(node).resize_hold.value == "claim", 30)
    assert growing.count("node_expand") == 1
    assert ("Pod", "Warning", "VolumeResizeFailed") in _reasons(node)
    assert node.status()[0].ready


def test_expn32_after_a_final_failure_another_wish_makes_the_next_one_infeasible(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    growing.trouble["node_expand"] = _raise(OperationError("INTERNAL"))
    _grow(node)
    _sync(node)
    until(lambda: growing.count("node_expand") == 1 and _volume(node).resize_failed)
    assert _claim(node).status.allocated_resource_statuses == {"storage": "NodeResizeInProgress"}
    claim = _claim(node)
    claim.spec.resources.requests = {"storage": "3Gi"}
    node.api.replace(claim)
    until(lambda: _claim(node).status.allocated_resource_statuses == {"storage": "NodeResizeInfeasible"}, 30)


def test_exp12_an_uncertain_failure_is_no_final_one_and_is_repeated(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    failing = [1]

    def late():
        if failing:
            failing.pop()
            raise UncertainProgressError("DEADLINE_EXCEEDED")

    growing.trouble["node_expand"] = late
    _grow(node)
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"}, 30)
    assert _claim(node).status.conditions == []
    assert growing.count("node_expand") == 2


def test_expn40_without_recovery_data_the_claim_gets_its_size_from_the_node(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    _grow(node, state="")
    claim = _claim(node)
    claim.status.allocated_resources = {}
    node.api.replace_status(claim)
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    assert len(growing.expansions) == 1


def test_expn36_a_success_leaves_nothing_of_the_expansion_in_the_claim(manager, growing, bound, until):
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    _grow(node, state="")  # not yet the node's turn
    claim = _claim(node)
    names = ("Resizing", "FileSystemResizePending", "NodeResizeError", "example.com/other")
    claim.status.conditions = [Condition(type=name, status="True") for name in names]
    claim.status.allocated_resource_statuses = {"storage": "NodeResizePending", "example.com/other": "kept"}
    node.api.replace_status(claim)
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    status = _claim(node).status
    assert [condition.type for condition in status.conditions] == ["example.com/other"]
    assert status.allocated_resource_statuses == {"example.com/other": "kept"}
    assert ("PersistentVolumeClaim", "Normal", "FileSystemResizeSuccessful") in _reasons(node)
    assert ("Pod", "Normal", "FileSystemResizeSuccessful") in _reasons(node)


# --- during mount -----------------------------------------------------------------------------------------------


def test_br44_an_expansion_that_began_while_nothing_was_mounted_is_done_at_the_next_mount(manager, growing, bound):
    node = manager(growing, controllers=False)
    bound(node.api)
    _grow(node)
    node.mount_pod(_pod(), timeout=30)
    assert [(options.old_size, options.new_size) for options in growing.expansions] == [(GIB, 2 * GIB)]
    steps = [call[0] for call in growing.calls]
    assert steps.index("set_up") < steps.index("node_expand")
    assert _claim(node).status.capacity == {"storage": "2Gi"}
    assert _volume(node).size == 2 * GIB


def test_br44_an_expansion_that_a_crash_interrupted_goes_on_after_the_restart(manager, growing, bound, disk):
    with manager(growing, enter=False, controllers=False) as node:
        bound(node.api)
        node.mount_pod(_pod(), timeout=30)
        _grow(node, state="NodeResizeInProgress")
    node = manager(growing, controllers=False)
    node.mount_pod(_pod(), timeout=30)
    assert len(growing.expansions) == 1
    assert _claim(node).status.allocated_resource_statuses == {}


def test_br44_what_was_mounted_before_the_manager_came_is_grown_too(manager, growing, bound, until):
    with manager(growing, enter=False, controllers=False) as before:
        bound(before.api)
        before.mount_pod(_pod(), timeout=30)
    node = manager(growing, controllers=False)
    node.mount_pod(_pod(), timeout=30)
    _grow(node)
    _sync(node)
    until(lambda: _claim(node).status.capacity == {"storage": "2Gi"})
    (options,) = growing.expansions
    assert (options.old_size, options.new_size) == (GIB, 2 * GIB)


def test_expn20_what_is_used_read_only_does_not_grow(manager, growing, bound):
    node = manager(growing, controllers=False)
    bound(node.api)
    _grow(node)
    node.mount_pod(_pod(readOnly=True), timeout=30)
    _sync(node)
    assert growing.expansions == []
    assert {
        ("Pod", "Warning", "FileSystemResizeFailed"),
        ("PersistentVolumeClaim", "Warning", "FileSystemResizeFailed"),
    } <= (_reasons(node))


def test_expn21_that_it_is_not_allowed_now_does_not_keep_the_pod_from_its_volume(manager, growing, bound):
    node = manager(growing, controllers=False)
    bound(node.api)
    _grow(node, state="ControllerResizeInProgress")
    assert node.mount_pod(_pod(), timeout=30).ready
    assert growing.expansions == []


def test_exp14_a_failure_leaves_the_mount_uncertain_and_the_device_mounted(manager, growing, bound, mounts):
    node = manager(growing, controllers=False)
    bound(node.api)
    _grow(node)
    growing.trouble["node_expand"] = _raise(OperationError("INTERNAL"))
    with pytest.raises(VolumesFailedError, match=r"MountVolume\.Setup failed while expanding volume.*INTERNAL"):
        node.mount_pod(_pod(), timeout=30, attempts=1)
    volume = _volume(node)
    assert volume.device_state.value == "mounted"
    assert [mount.state.value for mount in volume.pods.values()] == ["uncertain"]
    del growing.trouble["node_expand"]
    node.unmount_pod("web", timeout=30)
    assert growing.count("tear_down") == growing.count("unmount_device") == 1
    assert mounts() == []


def test_expn35_a_refresh_does_not_ask_again_what_is_refused_while_in_use(manager, growing, bound, until):
    """BR-38: and what goes wrong with the growing of a mounted volume leaves the mount as it is."""
    growing.remount = True
    node = manager(growing, controllers=False)
    bound(node.api)
    node.mount_pod(_pod(), timeout=30)
    growing.trouble["node_expand"] = _raise(FailedPreconditionError("in use"))
    _grow(node)
    _sync(node)
    until(lambda: _volume(node).resize_hold.value == "in-use")
    growing.trouble["node_expand"] = _raise(OperationError("INTERNAL"))
    before = growing.count("set_up")
    node.mount_pod(_pod(), timeout=30)
    assert growing.count("set_up") == before + 1
    assert growing.count("node_expand") == 1
    assert [mount.state.value for mount in _volume(node).pods.values()] == ["mounted"]
