"""Growing a volume on the node (CSI-EXP)."""

from __future__ import annotations

import pytest

from volumehost import NodeResizeOptions
from volumehost.api.objects import SecretReference
from volumehost.errors import (
    FailedPreconditionError,
    InfeasibleError,
    OperationNotSupportedError,
    StorageDriverError,
    TransientOperationError,
    is_infeasible_error,
    is_operation_finished_error,
    is_uncertain_progress_error,
)


def options(spec, size=2):
    return NodeResizeOptions(spec, "/dev/x", "/mounted", "/staged", new_size=size, old_size=1)


def test_csi_exp_01_inline_volumes_do_not_grow(plugin, make_inline):
    with pytest.raises(OperationNotSupportedError, match="inline"):
        plugin.node_expand(options(make_inline()))


def test_csi_exp_03_a_driver_that_cannot_is_no_silent_success(plugin, node, make_pv):
    node.capabilities = ["STAGE_UNSTAGE_VOLUME"]
    with pytest.raises(OperationNotSupportedError, match="does not expand"):
        plugin.node_expand(options(make_pv()))
    assert "NodeExpandVolume" not in node.names()


def test_csi_exp_04_improved_a_missing_secret_is_transient(plugin, node, make_pv):
    spec = make_pv(node_expand_secret_ref=SecretReference(name="none", namespace="default"))
    with pytest.raises(TransientOperationError):
        plugin.node_expand(options(spec))
    assert "NodeExpandVolume" not in node.names()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("FAILED_PRECONDITION", FailedPreconditionError),
        ("INVALID_ARGUMENT", InfeasibleError),
        ("OUT_OF_RANGE", InfeasibleError),
        ("NOT_FOUND", InfeasibleError),
        ("UNIMPLEMENTED", OperationNotSupportedError),
        ("INTERNAL", StorageDriverError),
    ],
)
def test_csi_exp_09_to_11_edge_31_refusals(plugin, node, make_pv, code, kind):
    node.fail("NodeExpandVolume", code)
    with pytest.raises(kind) as caught:
        plugin.node_expand(options(make_pv()))
    assert is_operation_finished_error(caught.value)
    assert isinstance(caught.value, FailedPreconditionError) == (kind is FailedPreconditionError)
    assert is_infeasible_error(caught.value) == (kind is InfeasibleError)


@pytest.mark.parametrize("code", ["DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED"])
def test_csi_exp_12_improved_what_may_be_going_on_stays_uncertain(plugin, node, make_pv, code):
    node.fail("NodeExpandVolume", code)
    with pytest.raises(StorageDriverError) as caught:
        plugin.node_expand(options(make_pv()))
    assert is_uncertain_progress_error(caught.value)


def test_csi_exp_08_whatever_size_the_driver_answers_it_is_done(plugin, node, make_pv):
    from volumehost_csi_kit import csi

    node.script("NodeExpandVolume", lambda request, context: csi.NodeExpandVolumeResponse(capacity_bytes=-7))
    assert plugin.node_expand(options(make_pv())) is True
