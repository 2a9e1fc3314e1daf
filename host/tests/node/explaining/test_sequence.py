"""The sequence of a volume against the operations that take it through: every step has its phase, in the same order."""

import ast
import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost import node
from volumehost.node.explaining.sequence import (
    MOUNTING_OPERATIONS,
    VolumeKind,
    index_of,
    mount_sequence,
    phase_at,
    unmount_sequence,
)

KINDS = st.builds(
    VolumeKind,
    claim=st.sampled_from(["", "default/data"]),
    made_for_pod=st.booleans(),
    provisioner=st.sampled_from(["", "csi.example.com"]),
    persistent_volume=st.sampled_from(["", "pv"]),
    plugin=st.sampled_from(["", "example.com/nfs"]),
    by=st.sampled_from(["", "driver csi.example.com"]),
    block=st.booleans(),
    attaches=st.booleans(),
    mounts_device=st.booleans(),
    group=st.sampled_from([None, 0, 2000]),
    grow_to=st.sampled_from(["", "2Gi"]),
    shared_with=st.sampled_from([(), ("default/other",)]),
)
ALL = VolumeKind(claim="default/data", provisioner="p", attaches=True, mounts_device=True, grow_to="2Gi")
BLOCK = VolumeKind(claim="default/data", attaches=True, block=True, grow_to="2Gi")
SEQUENCES = [mount_sequence(ALL), mount_sequence(BLOCK), unmount_sequence(ALL), unmount_sequence(BLOCK)]


def _steps_in_the_source():
    """The names in every ``steps.enter("...")`` of the node."""
    found = set()
    for path in Path(inspect.getfile(node)).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "enter" and len(call.args) == 1:
                name = call.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.add(name.value)
    return found


def test_every_step_of_every_operation_has_its_phase_and_no_phase_has_another():
    known = {step for phases in SEQUENCES for phase in phases for _, step in phase.steps}
    assert known == _steps_in_the_source()


def test_every_operation_has_its_phases():
    from volumehost.node.cluster import verify_operation
    from volumehost.node.operations import (
        attach_operations,
        device_operations,
        expand_operation,
        map_operation,
        mount_operation,
        unmap_operation,
        unmount_operation,
    )

    names = {
        attach_operations.AttachOperation.name,
        verify_operation.VerifyOperation.name,
        attach_operations.DetachOperation.name,
        device_operations.UnmountDeviceOperation.name,
        expand_operation.ExpandOperation.name,
        map_operation.MapOperation.name,
        mount_operation.MountOperation.name,
        unmap_operation.UnmapOperation.name,
        unmap_operation.UnmapDeviceOperation.name,
        unmount_operation.UnmountOperation.name,
    }
    assert {operation for phases in SEQUENCES for phase in phases for operation, _ in phase.steps} == names
    assert names > MOUNTING_OPERATIONS


@given(KINDS)
def test_a_sequence_names_each_phase_once_and_each_step_in_one_phase(kind):
    for phases in (mount_sequence(kind), unmount_sequence(kind)):
        names = [phase.name for phase in phases]
        assert len(set(names)) == len(names)
        steps = [step for phase in phases for step in phase.steps]
        assert len(set(steps)) == len(steps)
        assert all(phase.text and phase.text == phase.text.strip() for phase in phases)
        for index, phase in enumerate(phases):
            assert index_of(phases, phase.name) == index
            assert all(phase_at(phases, *step) == index for step in phase.steps)


@given(KINDS)
def test_only_what_a_volume_has_is_in_its_sequence(kind):
    names = {phase.name for phase in mount_sequence(kind)}
    assert ("claim" in names) == bool(kind.claim)
    assert ("provision" in names) == bool(kind.claim and kind.provisioner)
    assert ("attach" in names) == kind.attaches == ("wait-for-device" in names)
    assert ("mount-device" in names) == (kind.block or kind.mounts_device)
    assert ("expand" in names) == bool(kind.grow_to)
    back = {phase.name for phase in unmount_sequence(kind)}
    assert ("detach" in back) == (kind.attaches and not kind.shared_with)
    assert ("subpaths" in back) == (not kind.block)


def test_an_operation_without_a_step_yet_is_at_its_first_phase():
    phases = mount_sequence(ALL)
    assert phases[phase_at(phases, "volume_mount", "")].name == "check"
    assert phases[phase_at(phases, "volume_attach", "")].name == "attach"
    assert phase_at(phases, "volume_detach", "") is None
    assert phase_at(phases, "volume_mount", "no such step") is None


class _Observed:
    """The steps that a manager took, each once."""

    def __init__(self):
        self.steps = []

    def __call__(self, operation, step, volume, pod_uid):
        if (operation, step) not in self.steps:
            self.steps.append((operation, step))

    def phases(self, sequence):
        found = []
        for operation, step in self.steps:
            index = phase_at(sequence, operation, step)
            assert index is not None, (operation, step)
            if index not in found:
                found.append(index)
        return found


@pytest.mark.root
def test_what_really_happens_follows_the_sequence(manager, bind, disk, nfs, claimed, pod_with, claimed_volume):
    for plugin, volume, kind in (
        (bind(), nfs("v"), VolumeKind()),
        (disk(), claimed_volume(), VolumeKind(claim="default/claim", attaches=True, mounts_device=True)),
    ):
        observed = _Observed()
        node = manager(plugin, observer=observed)
        if kind.claim:
            claimed(node.api)
        node.mount_pod(pod_with(volume), timeout=20)
        there, observed.steps = observed.phases(mount_sequence(kind)), []
        assert there == sorted(there)
        node.unmount_pod("web", timeout=20)
        back = observed.phases(unmount_sequence(kind))
        assert back == sorted(back)
        assert len(there) == sum(bool(phase.steps) for phase in mount_sequence(kind))
        assert len(back) == sum(bool(phase.steps) for phase in unmount_sequence(kind))
        node.__exit__(None, None, None)
