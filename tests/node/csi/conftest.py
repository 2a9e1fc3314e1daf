"""The volume manager with the CSI plugin and a scriptable driver on a real socket; the manager provisions."""

import contextlib
import shutil
import tempfile

import pytest

from volumehost import VolumeManager
from volumehost.loader.events import NoProber
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import FakeDriver

NAME = "fake.csi.example.com"


@pytest.fixture
def sockets():
    """A directory whose name is short enough for sockets."""
    directory = tempfile.mkdtemp(prefix="csi-")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def driver(sockets, tmp_path):
    """A driver that mounts for real, serving; it does not register by itself."""
    data = tmp_path / "driver-data"
    data.mkdir()
    with FakeDriver(f"unix://{sockets}/csi.sock", name=NAME, mounts="bind", data_dir=str(data), block="loop") as made:
        yield made


@pytest.fixture
def manager(root, driver):
    """Makes managers with the CSI plugin; the first one registers the driver and has the objects that go with it."""
    with contextlib.ExitStack() as stack:

        def make(*, enter=True, register=True, attach_required=True, republish=False, driver_object=True, **options):
            options = {"plugins": [CSIPlugin()], "prober": NoProber(), "node_name": "here", **options}
            made = VolumeManager(options.pop("root", root), **options)
            if not enter:
                return made
            stack.enter_context(made)
            _prepare(made, driver if register else None, attach_required, republish, driver_object)
            return made

        yield make


def _prepare(node, driver, attach_required=True, republish=False, driver_object=True):
    if driver is not None:
        node.drivers.register(NAME, driver.endpoint)
    modes = ["Persistent", "Ephemeral"]
    spec = {"attachRequired": attach_required, "requiresRepublish": republish, "volumeLifecycleModes": modes}
    spec["podInfoOnMount"] = True  # tells a driver which volumes are ephemeral
    objects = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fake"},
            "provisioner": NAME,
            "allowVolumeExpansion": True,
            "reclaimPolicy": "Delete",
        }
    ]
    if driver_object:
        objects.append(driver_object_of(spec))
    for each in objects:
        node.api.create(each)


def driver_object_of(spec):
    """The CSIDriver object."""
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": NAME}, "spec": spec}


@pytest.fixture
def claim():
    """Puts a claim for the driver into an API."""

    def make(api, name="claim", *, mode="Filesystem", access="ReadWriteOnce", size="16Mi", storage_class="fake"):
        return api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "accessModes": [access],
                    "volumeMode": mode,
                    "storageClassName": storage_class,
                    "resources": {"requests": {"storage": size}},
                },
            }
        )

    return make


@pytest.fixture
def pod():
    """A pod with volumes: claims mounted (``claims``), claims as devices (``devices``), and others as they are."""

    def make(name="web", *, claims=("claim",), devices=(), volumes=()):
        listed = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in (*claims, *devices)]
        mounted = [*claims, *(volume["name"] for volume in volumes)]
        container = {
            "name": "c",
            "image": "i",
            "volumeMounts": [{"name": each, "mountPath": f"/{each}"} for each in mounted],
            "volumeDevices": [{"name": each, "devicePath": f"/dev/{each}"} for each in devices],
        }
        return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": [*listed, *volumes]}}

    return make


@pytest.fixture
def node_calls(driver):
    """The calls of the node service that change something, in order, with their results."""

    def calls(*, codes=False):
        names = {f"Node{verb}Volume" for verb in ("Stage", "Publish", "Unpublish", "Unstage", "Expand")}
        names |= {"ControllerPublishVolume", "ControllerUnpublishVolume"}
        return [(call.name, call.code) if codes else call.name for call in driver.calls() if call.name in names]

    return calls
