"""``expand`` and ``snapshot``: the program, a real store, a plugin whose storage driver is a fake that remembers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.objects import PersistentVolumeClaim, VolumeSnapshot
from volumehost.api.store import EmbeddedStore
from volumehost.cli import main
from volumehost.hosts.layout import Layout
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.testing.storage_driver import FakeStorageDriver

pytestmark = pytest.mark.root

DRIVER = "csi.acme.example.com"
V1 = "snapshot.storage.k8s.io/v1"

TOP = f"""
import os
from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin, DriverState, DriverStatus
from volumehost.testing.storage_driver import FakeStorageDriver

class Drivers:
    def __init__(self):
        self.fake = FakeStorageDriver("{DRIVER}", state_file=os.environ["ACME_STATE"], expansion_needs_node=False)
        for failure in filter(None, os.environ.get("ACME_FAIL", "").split(",")):
            method, code = failure.split(":")
            self.fake.fail(method, code, times=1000, message="the array is full")
    def start(self): pass
    def on_change(self, changed): pass
    def statuses(self):
        return [DriverStatus("{DRIVER}", DriverOrigin.COMMAND, DriverState.READY)]
    def driver(self, name, *, timeout):
        if name != "{DRIVER}":
            raise StorageDriverUnavailableError("no such driver", driver=name)
        return self.fake
"""

HOOK = """
    @hookimpl
    def get_storage_drivers(self):
        self.drivers = getattr(self, "drivers", None) or Drivers()
        return self.drivers
"""


class Place:
    """The program with the plugin, its store, and the driver as it is afterwards."""

    def __init__(self, volumehost: Any, site: Any, source: str, state: Path) -> None:
        site.install("acme-storage", source)
        self._volumehost = volumehost
        self._environment = {**site.environment, "ACME_STATE": str(state)}
        self._state = str(state)
        root = prepare_root_dir(str(volumehost.root_dir))
        self.store = EmbeddedStore(Layout(root).store_file())

    def __call__(self, *arguments: str, fail: str = "", **options: Any) -> Any:
        return self._volumehost(*arguments, environment={**self._environment, "ACME_FAIL": fail}, **options)

    def here(self, *arguments: str) -> int:
        """The exit code of a command that ends before anything is managed, run in this process."""
        return main(["--root-dir", str(self._volumehost.root_dir), *arguments])

    @property
    def driver(self) -> FakeStorageDriver:
        return FakeStorageDriver(DRIVER, state_file=self._state)

    def claim(self, name: str = "data") -> PersistentVolumeClaim:
        return self.store.get(PersistentVolumeClaim, name, "default")


@pytest.fixture
def place(volumehost: Any, site: Any, plugin_source: Any, tmp_path: Path) -> Iterator[Place]:
    """A place with a claim that is bound to a volume of 1Gi."""
    state = tmp_path / "driver.json"
    FakeStorageDriver(DRIVER, state_file=str(state)).add_volume("vol-1", 2**30)
    source = plugin_source("acme.example.com/storage", top=TOP) + HOOK
    place = Place(volumehost, site, source, state)
    store = place.store
    store.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "acme"},
            "provisioner": DRIVER,
            "allowVolumeExpansion": True,
        }
    )
    store.create(
        {
            "apiVersion": V1,
            "kind": "VolumeSnapshotClass",
            "metadata": {
                "name": "acme",
                "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"},
            },
            "driver": DRIVER,
            "deletionPolicy": "Delete",
        }
    )
    size = {"storage": "1Gi"}
    claim = store.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": size},
                "storageClassName": "acme",
                "volumeName": "pv",
            },
        }
    )
    store.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": size,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "acme",
                "csi": {"driver": DRIVER, "volumeHandle": "vol-1"},
                "claimRef": {"name": "data", "namespace": "default", "uid": claim.metadata.uid},
            },
        }
    )
    claim.status.phase, claim.status.capacity = "Bound", size
    store.replace_status(claim)
    with store:
        yield place


# --- expand -----------------------------------------------------------------------------------------------------------


def test_expand(place: Place) -> None:
    done = place("expand", "data", "2Gi")
    assert (done.code, done.out) == (0, "persistentvolumeclaim/data has 2Gi\n"), done.err
    assert place.driver.volumes["vol-1"] == 2**31
    again = place("expand", "pvc/data", "2048Mi", "-o", "json")
    assert again.code == 0
    assert again.json() == {
        "namespace": "default", "name": "data", "requested": "2Gi", "capacity": "2Gi", "state": "",
    }  # fmt: skip


def test_expand_without_waiting(place: Place) -> None:
    done = place("expand", "data", "2Gi", "--no-wait")
    assert (done.code, done.out) == (0, "persistentvolumeclaim/data asked for 2Gi\n")
    assert place.driver.volumes["vol-1"] == 2**30
    assert place("expand", "data", "2Gi", "-o", "name").lines() == ["persistentvolumeclaim/data"]
    assert place.driver.volumes["vol-1"] == 2**31


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("data", "500Mi"), 1, "it has 1Gi already, and a volume cannot shrink to 500Mi"),
        (("absent", "2Gi"), 3, "there is no persistentvolumeclaim default/absent"),
        (("data", "2GB"), 2, "its suffix is not one of"),
        (("data", "0"), 2, "whole number of bytes above zero"),
        (("data", "1.5"), 2, "whole number of bytes above zero"),
        (("data",), 2, "missing argument 'SIZE'"),
    ],
)
def test_expand_refuses(
    place: Place, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert place.here("expand", *arguments) == code
    assert message in capsys.readouterr().err
    assert place.claim().spec.resources.requests == {"storage": "1Gi"}


def test_expand_of_a_class_that_does_not_allow_it(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    from volumehost.api.objects import StorageClass

    place.store.patch(StorageClass, "acme", {"allowVolumeExpansion": False})
    assert place.here("expand", "data", "2Gi") == 1
    told = capsys.readouterr().err
    assert "storage class acme does not allow that volumes grow" in told
    assert "hint: set allowVolumeExpansion: true" in told
    assert place.claim().spec.resources.requests == {"storage": "1Gi"}


@pytest.mark.parametrize("code", ["OUT_OF_RANGE", "INTERNAL"])
def test_expand_that_fails_and_is_taken_back(place: Place, code: str) -> None:
    done = place("expand", "data", "9Gi", fail=f"expand_volume:{code}")
    assert done.code == 1
    assert "the array is full" in done.err
    assert place.claim().status.capacity == {"storage": "1Gi"}
    back = place("expand", "data", "2Gi")
    assert (back.code, back.out) == (0, "persistentvolumeclaim/data has 2Gi\n"), back.err


def test_expand_that_takes_too_long(place: Place) -> None:
    done = place("expand", "data", "2Gi", "--timeout", "300ms", fail="expand_volume:DEADLINE_EXCEEDED")
    assert done.code == 4
    assert "waiting for claim default/data to have 2Gi: not so after 0.3 s" in done.err


def test_nothing_is_made_where_nothing_is(volumehost: Any) -> None:
    for arguments in (("expand", "data", "2Gi"), ("snapshot", "create", "m", "--from", "data")):
        done = volumehost(*arguments)
        assert done.code == 3
        assert "does not exist" in done.err
        assert not volumehost.root_dir.exists()


# --- snapshot ---------------------------------------------------------------------------------------------------------


def test_snapshot_there_and_back(place: Place) -> None:
    made = place("snapshot", "create", "monday", "--from", "data")
    assert (made.code, made.out) == (0, "volumesnapshot/monday ready\n"), made.err
    listed = place("snapshot", "list")
    head, row = listed.lines()
    assert head.split() == ["NAME", "CLAIM", "SIZE", "CLASS", "AGE", "STATE"]
    assert (row.split()[:4], row.split()[-1]) == (["monday", "data", "1Gi", "acme"], "ready")
    restored = place("snapshot", "restore", "monday", "copy", "-o", "json")
    assert restored.code == 0, restored.err
    told = restored.json()
    assert (told["name"], told["snapshot"], told["phase"], told["capacity"]) == ("copy", "monday", "Bound", "1Gi")
    assert len(place.driver.volumes) == 2
    deleted = place("snapshot", "delete", "monday")
    assert (deleted.code, deleted.out) == (0, "volumesnapshot/monday deleted\n"), deleted.err
    assert place.driver.snapshots == []
    empty = place("snapshot", "list")
    assert (empty.code, empty.out) == (0, "")
    assert "No snapshots found" in empty.err


def test_snapshot_without_waiting(place: Place) -> None:
    done = place("snapshot", "create", "monday", "--from", "data", "--no-wait")
    assert (done.code, done.out) == (0, "volumesnapshot/monday asked for\n")
    assert place.driver.snapshots == []
    assert "not ready" in place("snapshot", "list").out
    place("expand", "data", "2Gi")  # whoever runs the controllers next does it
    assert place("snapshot", "delete", "monday", "-o", "json").json() == {"deleted": ["default/monday"]}
    assert place.driver.snapshots == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("create", "m", "--from", "absent"), 3, "there is no persistentvolumeclaim default/absent"),
        (("create", "m"), 2, "give either --from PVC, or --handle and --driver"),
        (("create", "m", "--handle", "h"), 2, "--handle and --driver belong together"),
        (("create", "Bad Name", "--from", "data"), 1, "metadata.name"),
        (("restore", "absent", "copy"), 3, "there is no volumesnapshot default/absent"),
        (("delete", "absent"), 3, "there is no volumesnapshot default/absent"),
        (("delete",), 2, "missing argument"),
    ],
)
def test_snapshot_refuses(
    place: Place, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert place.here("snapshot", *arguments) == code
    assert message in capsys.readouterr().err
    assert not place.store.list(VolumeSnapshot).items


def test_a_class_that_is_not_there(place: Place) -> None:
    done = place("snapshot", "create", "m", "--from", "data", "--class", "absent")
    assert done.code == 1
    assert "there is no VolumeSnapshotClass absent" in done.err


def test_a_snapshot_that_fails(place: Place) -> None:
    done = place("snapshot", "create", "monday", "--from", "data", fail="create_snapshot:INTERNAL")
    assert done.code == 1
    assert "the array is full" in done.err
    assert "not ready: " in place("snapshot", "list").out
    assert place("snapshot", "create", "monday", "--from", "data").code == 1  # it is there
    assert place("snapshot", "delete", "monday").code == 0


def test_restore_needs_room(place: Place) -> None:
    place("snapshot", "create", "monday", "--from", "data")
    done = place("snapshot", "restore", "monday", "copy", "--size", "1Mi")
    assert done.code == 1
    assert "1Mi is too small: the snapshot needs 1Gi" in done.err
    larger = place("snapshot", "restore", "monday", "copy", "--size", "3Gi", "--class", "acme")
    assert larger.code == 0, larger.err
    assert place.claim("copy").spec.resources.requests == {"storage": "3Gi"}


def test_what_the_driver_has_can_be_taken_over(place: Place) -> None:
    place.driver.create_snapshot("vol-1", "by-hand", {}, {})
    listed = place("snapshot", "list", "--driver", DRIVER, "-o", "json").json()
    assert [(each["handle"], each["volume"], each["snapshot"]) for each in listed["snapshots"]] == [
        ("snap-1", "vol-1", "")
    ]
    taken = place("snapshot", "create", "old", "--handle", "snap-1", "--driver", DRIVER)
    assert (taken.code, taken.out) == (0, "volumesnapshot/old ready\n"), taken.err
    assert "default/old" in place("snapshot", "list", "--driver", DRIVER).out
    assert place("snapshot", "delete", "old").code == 0
    assert place.driver.snapshots == ["snap-1"]  # it was there before
    absent = place("snapshot", "list", "--driver", "csi.absent.example.com")
    assert absent.code == 3
    assert "known drivers" in absent.err


def test_every_shape_is_as_documented(place: Place) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli-output.md").read_text()
    found = re.findall(r"^## `([^`]+)`$.*?^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    documented = {heading: json.loads(text) for heading, text in found}
    printed = {
        "expand": place("expand", "data", "2Gi", "-o", "json").json(),
        "snapshot create": place("snapshot", "create", "monday", "--from", "data", "-o", "json").json(),
        "snapshot list": place("snapshot", "list", "-o", "json").json(),
        "snapshot list --driver": place("snapshot", "list", "--driver", DRIVER, "-o", "json").json(),
        "snapshot restore": place("snapshot", "restore", "monday", "copy", "-o", "json").json(),
        "snapshot delete": place("snapshot", "delete", "monday", "-o", "json").json(),
    }
    for heading, real in printed.items():
        assert list(documented[heading]) == list(real), heading
    (of_driver,) = printed["snapshot list --driver"]["snapshots"]
    assert list(documented["snapshot list --driver"]["snapshots"][0]) == list(of_driver)
    assert list(documented["snapshot create"]) == list(printed["snapshot list"]["snapshots"][0])


def test_completion(place: Place) -> None:
    place("snapshot", "create", "monday", "--from", "data")
    environment = {"_VOLUMEHOST_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    done = place._volumehost(environment={**environment, "COMP_WORDS": "volumehost snapshot delete "})
    assert "monday" in done.out
    done = place._volumehost(environment={**environment, "COMP_WORDS": "volumehost expand ", "COMP_CWORD": "2"})
    assert "data" in done.out
    snapshots = place.store.list(VolumeSnapshot).items
    assert json.dumps([each.metadata.name for each in snapshots]) == '["monday"]'
