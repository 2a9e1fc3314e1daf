"""Objects that installed drivers bring with them, and the plane of a node as it is put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from volumehost import hookimpl
from volumehost.api.objects import CSIDriver, Event, PersistentVolumeClaim, StorageClass, VolumeAttributesClass
from volumehost.api.store import EmbeddedStore
from volumehost.control.plane import ControlPlane
from volumehost.control.provisioning.provided import provide, provide_all
from volumehost.errors import ManifestError, ObjectNotFoundError, StorageDriverUnavailableError
from volumehost.loader.manager import VolumePluginManager
from volumehost.storage_driver import DriverOrigin, DriverState, DriverStatus
from volumehost.testing.storage_driver import FakeStorageDriver

NAME = "driver.example.com"
BY, DIGEST = "volumehost.io/provided-by", "volumehost.io/provided-digest"

CSI_DRIVER = f"""
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {{name: {NAME}}}
spec: {{attachRequired: false}}
"""
CLASS = f"""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: fast}}
provisioner: {NAME}
parameters: {{tier: TIER}}
"""


def status(manifest: Path | str, version: str = "1.0") -> DriverStatus:
    return DriverStatus(
        name=NAME,
        origin=DriverOrigin.INSTALLED,
        state=DriverState.STOPPED,
        distribution="acme-driver",
        version=version,
        manifest=str(manifest),
    )


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "csi-driver.yaml"
    path.write_text(f"{CSI_DRIVER}---{CLASS.replace('TIER', 'hot')}")
    return path


def test_missing_objects_are_made_and_marked(world: Any, manifest: Path) -> None:
    provide(world.api, status(manifest))
    made = world.api.get(StorageClass, "fast")
    assert made.parameters == {"tier": "hot"}
    assert made.metadata.annotations[BY] == "acme-driver/1.0"
    assert world.api.get(CSIDriver, NAME).spec.attach_required is False


def test_nothing_is_written_the_second_time(world: Any, manifest: Path) -> None:
    provide(world.api, status(manifest))
    before = world.api.list(StorageClass).resource_version
    provide(world.api, status(manifest))
    assert world.api.list(StorageClass).resource_version == before


def test_what_the_user_made_is_the_users(world: Any, make: Any, manifest: Path) -> None:
    world.api.create(make.storage_class(parameters={"tier": "mine"}))
    provide(world.api, status(manifest))
    provide(world.api, status(manifest, "2.0"))
    assert world.api.get(StorageClass, "fast").parameters == {"tier": "mine"}


def test_an_update_brings_what_nobody_changed_up_to_date(world: Any, manifest: Path) -> None:
    """Parameters of a class cannot be changed in place."""
    provide(world.api, status(manifest))
    manifest.write_text(manifest.read_text().replace("hot", "cold").replace("false", "true"))
    provide(world.api, status(manifest, "2.0"))
    assert world.api.get(StorageClass, "fast").parameters == {"tier": "cold"}
    assert world.api.get(CSIDriver, NAME).spec.attach_required is True
    assert world.api.get(StorageClass, "fast").metadata.annotations[BY] == "acme-driver/2.0"
    manifest.write_text(manifest.read_text().replace("cold", "warm"))
    provide(world.api, status(manifest, "3.0"))
    assert world.api.get(StorageClass, "fast").parameters == {"tier": "warm"}


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        {"metadata": {"labels": {"mine": "yes"}}},
        {"allowVolumeExpansion": True},
    ],
)
def test_an_update_leaves_alone_what_the_user_changed(world: Any, manifest: Path, change: Any) -> None:
    provide(world.api, status(manifest))
    world.api.patch(StorageClass, "fast", change)
    manifest.write_text(manifest.read_text().replace("hot", "cold"))
    provide(world.api, status(manifest, "2.0"))
    assert world.api.get(StorageClass, "fast").parameters == {"tier": "hot"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\n", "holds a Secret"),
        (CSI_DRIVER.replace(NAME, "other.example.com"), "of another driver"),
        (CSI_DRIVER.replace("}", ", finalizers: [a.example.com/b]}", 1), "finalizers"),
        ("{", "csi-driver.yaml"),
    ],
)
def test_a_manifest_that_may_not_be_makes_nothing(world: Any, manifest: Path, text: str, reason: str) -> None:
    manifest.write_text(f"{CLASS}---\n{text}")
    with pytest.raises(ManifestError) as caught:
        provide(world.api, status(manifest))
    assert reason in str(caught.value)
    assert NAME in str(caught.value)
    assert "acme-driver" in str(caught.value)
    assert world.api.list(StorageClass).items == []


def test_an_invalid_object_is_told_with_its_place(world: Any, manifest: Path) -> None:
    manifest.write_text(CLASS.replace("TIER", "hot") + "reclaimPolicy: Maybe\n")
    with pytest.raises(ManifestError, match="Maybe"):
        provide(world.api, status(manifest))


def test_one_driver_that_brings_nonsense_costs_the_others_nothing(world: Any, tmp_path: Path, manifest: Path) -> None:
    provide_all(world.api, [status(tmp_path / "missing.yaml"), status(""), status(manifest)])
    assert world.api.get(StorageClass, "fast")


class Drivers:
    """The drivers of a plugin; each is there once somebody says so."""

    def __init__(self, manifest: Path) -> None:
        self.driver_object = FakeStorageDriver(NAME)
        self.manifest = manifest
        self.installed = True
        self.ready = True
        self.started = 0
        self.listeners: list[Callable[[str], None]] = []

    def start(self) -> None:
        self.started += 1

    def statuses(self) -> Sequence[DriverStatus]:
        return [status(self.manifest)] if self.installed else []

    def driver(self, name: str, *, timeout: float) -> FakeStorageDriver:
        if not self.ready or name != NAME:
            raise StorageDriverUnavailableError("not registered yet", driver=name)
        return self.driver_object

    def on_change(self, changed: Callable[[str], None]) -> None:
        self.listeners.append(changed)

    def change(self, **now: bool) -> None:
        for name, value in now.items():
            setattr(self, name, value)
        for listener in self.listeners:
            listener(NAME)


class FrontPlugin:
    """A plugin that fronts drivers and serves no volume itself."""

    def __init__(self, drivers: Drivers) -> None:
        self.drivers = drivers

    @hookimpl
    def get_plugin_name(self) -> str:
        return "example.com/front"

    @hookimpl
    def get_volume_name(self, spec: Any) -> str:
        raise NotImplementedError

    @hookimpl
    def can_support(self, spec: Any) -> bool:
        return False

    @hookimpl
    def new_mounter(self, spec: Any, pod: Any) -> Any:
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def get_storage_drivers(self) -> Any:
        return self.drivers


@pytest.fixture
def drivers(manifest: Path) -> Drivers:
    return Drivers(manifest)


@pytest.fixture
def node_plane(world: Any, drivers: Drivers) -> Any:
    world.plugins.init_plugins([FrontPlugin(drivers)])
    plane = ControlPlane.for_node(world.api, world.plugins, "node-1")
    world.planes.append(plane)
    return plane


def test_the_plane_of_a_node_provisions_with_what_is_installed(
    world: Any, make: Any, drivers: Drivers, node_plane: ControlPlane
) -> None:
    """The class that the driver brings is there before anything looks for it."""
    world.api.create(make.claim())
    assert drivers.listeners == []
    node_plane.start()
    assert world.api.get(StorageClass, "fast")
    world.wait(world.bound)
    assert drivers.started == 1
    world.settle()
    assert node_plane.stop(30)
    events = world.api.list(Event).items
    assert [event.reason for event in events] == ["ProvisioningSucceeded"]
    assert events[0].source.component == "persistentvolume-controller"


def test_br_27_a_driver_that_registers_late_ends_the_wait(
    world: Any, make: Any, drivers: Drivers, node_plane: ControlPlane
) -> None:
    drivers.ready = False
    world.api.create(make.claim())
    node_plane.start()
    world.wait(lambda: any("not registered yet" in line for line in node_plane.explain(world.claim())))
    drivers.change(ready=True)
    world.wait(world.bound)


def test_a_driver_that_is_installed_while_the_plane_runs_brings_its_objects(
    world: Any, make: Any, drivers: Drivers, node_plane: ControlPlane
) -> None:
    drivers.installed = False
    world.api.create(make.claim())
    node_plane.start()
    world.wait(lambda: bool(node_plane.explain(world.claim())))
    with pytest.raises(ObjectNotFoundError):
        world.api.get(StorageClass, "fast")
    drivers.change(installed=True)
    world.wait(world.bound)


def test_a_wrong_manifest_shows_where_somebody_asks(
    world: Any, manifest: Path, drivers: Drivers, node_plane: ControlPlane
) -> None:
    node_plane.start()
    manifest.write_text("kind: Nothing")
    drivers.change()
    driver = world.api.get(CSIDriver, NAME)
    world.wait(lambda: any("driver objects" in line for line in node_plane.explain(driver)))


def test_putting_a_plane_together_reads_and_imports_nothing(tmp_path: Path, clean_python: Callable[[str], str]) -> None:
    """A host whose pods use no claims must not pay for it."""
    told = clean_python(
        "import sys\n"
        "from volumehost.control.plane import ControlPlane\n"
        "plane = ControlPlane.for_node(None, None, 'n')\n"
        "assert plane.stop(0)\n"
        "assert not [n for n in sys.modules if n.startswith('volumehost.control.') and n.split('.', 2)[2] not in\n"
        "            {'plane', 'machinery', 'machinery.progress', 'assembly'}], sorted(sys.modules)\n"
        "print('cheap')\n"
    )
    assert told == "cheap\n"


@pytest.fixture
def clean_python() -> Callable[[str], str]:
    import subprocess
    import sys

    def run(code: str) -> str:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_plugins_without_drivers_are_no_trouble(tmp_path: Path, make: Any) -> None:
    plugins = VolumePluginManager()
    plugins.init_plugins()
    with EmbeddedStore(str(tmp_path / "s")) as api:
        api.create(make.storage_class())
        api.create(make.claim())
        plane = ControlPlane.for_node(api, plugins, "n")
        plane.start()
        claim = api.get(PersistentVolumeClaim, "data")
        plane.wait_until(lambda: bool(plane.explain(claim)), 30, "an explanation")
        assert any(f"this host has no driver {NAME}" in line for line in plane.explain(claim))
        assert plane.stop(30)
    plugins.close()


def test_an_attributes_class_may_come_along(world: Any, manifest: Path) -> None:
    manifest.write_text(
        "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\n"
        f"metadata: {{name: gold}}\ndriverName: {NAME}\nparameters: {{iops: '9'}}\n"
    )
    provide(world.api, status(manifest))
    assert world.api.get(VolumeAttributesClass, "gold").parameters == {"iops": "9"}
