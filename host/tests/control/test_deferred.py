"""Controllers that are loaded when there is something for them to do, and are then what they would have been before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from volumehost.api.objects import CSINode, ObjectMeta, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from volumehost.control.assembly import all_controllers
from volumehost.control.machinery.controller import Key


@pytest.fixture
def controllers(world):
    return {each.name: each for each in all_controllers(world.context())}


def attachment(name="a"):
    source = VolumeAttachmentSource(persistent_volume_name="v")
    spec = VolumeAttachmentSpec(attacher="driver.example.com", node_name="n", source=source)
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec)


def test_each_says_of_itself_what_its_controller_says(controllers):
    assert len(controllers) == 10
    for name, deferred in controllers.items():
        controller = deferred.controller
        assert (controller.name, controller.kind) == (name, deferred.kind)
        assert set(deferred.watches()) == set(controller.watches()), name


def test_what_only_may_affect_a_key_that_is_there_makes_no_controller(controllers):
    attacher = controllers["attacher"]
    watches = attacher.watches()
    assert list(watches[CSINode](CSINode(metadata=ObjectMeta(name="n")))) == []
    assert attacher._made is None
    assert list(watches[VolumeAttachment](attachment())) == [Key("a")]
    assert attacher._made is attacher.controller


def test_a_plane_without_claims_or_snapshots_loads_no_controller_of_them(tmp_path):
    """Nodes and classes are in every API; what is loaded then is the plane and the controller of driver objects."""
    program = f"""
import sys
from volumehost.api.objects import Node, ObjectMeta, StorageClass
from volumehost.api.store import EmbeddedStore
from volumehost.control.plane import ControlPlane
from volumehost.loader.manager import VolumePluginManager

with EmbeddedStore({str(tmp_path / "api.db")!r}) as api:
    api.create(Node(metadata=ObjectMeta(name="n")))
    api.create(StorageClass(metadata=ObjectMeta(name="c"), provisioner="driver.example.com"))
    plane = ControlPlane.for_node(api, VolumePluginManager(), "n")
    plane.start()
    plane.wait_until(plane.settled, 30, "the plane")
    print(*sys.modules)
    assert plane.stop(10)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {name.partition("volumehost.control.")[2] for name in done.stdout.split()} - {""}
    machinery = ("changes", "controller", "deferred", "gate", "own_writes", "progress", "queue", "workers")
    assert loaded - {"provisioning", "machinery"} == {
        *(f"machinery.{name}" for name in machinery),
        *("assembly", "drivers", "plane", "provisioning.provided", "writes"),
    }
