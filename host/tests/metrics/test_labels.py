"""The plugin's name for metrics, and the labels of an operation (UTIL-14)."""

from dataclasses import dataclass

import pytest

from volumehost import Spec
from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, Volume
from volumehost.node.execution.operation_metrics import full_plugin_name, labels_of
from volumehost.node.execution.pending import OperationKey
from volumehost.node.state.actual import ActualState
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, MountState

CSI = "kubernetes.io/csi"


def inline(**source):
    return Spec.from_volume(to_object(Volume, {"name": "v", **source}))


def persistent(migrated=False):
    source = {"csi": {"driver": "disk.example.com", "volumeHandle": "h"}}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    volume = to_object(PersistentVolume, {"metadata": {"name": "pv"}, "spec": spec})
    return Spec(persistent_volume=volume, migrated=migrated)


@pytest.mark.parametrize(
    ("plugin", "spec", "name"),
    [
        (CSI, persistent(), f"{CSI}:disk.example.com"),
        (CSI, inline(csi={"driver": "inline.example.com"}), f"{CSI}:inline.example.com"),
        (CSI, None, CSI),
        (CSI, Spec(), CSI),
        ("example.com/nfs", inline(nfs={"server": "s", "path": "/"}), "example.com/nfs"),
    ],
)
def test_util14_the_name_of_a_csi_volume_has_its_driver(plugin, spec, name):
    assert full_plugin_name(plugin, spec) == name


@dataclass
class Operation:
    """What labels are taken of."""

    key: OperationKey
    plugin_name: str = CSI
    spec: Spec | None = None


@pytest.fixture
def actual():
    return ActualState(lambda _volume, _pod: None)


def known(spec, *, from_directory=False):
    volume = AttachedVolume("v", CSI, spec, Attachability.FALSE)
    mount = MountedVolume("v", "uid", "web", "default", CSI, "pv", MountState.UNCERTAIN, from_directory=from_directory)
    return [volume], [mount]


def test_an_operation_is_labelled_by_its_own_spec(actual):
    labels = labels_of(Operation(OperationKey("v"), spec=persistent(migrated=True)), actual)
    assert labels == (f"{CSI}:disk.example.com", True, False)


def test_a_teardown_without_a_spec_is_labelled_by_that_of_the_volume(actual):
    actual.enter(*known(persistent()))
    assert labels_of(Operation(OperationKey("v", "uid")), actual) == (f"{CSI}:disk.example.com", False, False)


@pytest.mark.parametrize("from_directory", [True, False])
def test_recon40_what_no_plugin_could_make_a_volume_of(actual, from_directory):
    actual.enter(*known(None, from_directory=from_directory))
    assert labels_of(Operation(OperationKey("v", "uid")), actual) == (CSI, False, from_directory)
    assert labels_of(Operation(OperationKey("gone", "uid")), actual) == (CSI, False, False)
