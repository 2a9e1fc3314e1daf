"""A disk that is full, and thousands of volumes."""

from __future__ import annotations

import os

import pytest

from volumehost.mount.mounter import LinuxMounter
from volumehost_loop_driver.errors import OutOfRangeError
from volumehost_loop_driver.records import VolumeRecord
from volumehost_loop_driver.volumes import Wanted

pytestmark = pytest.mark.root
MiB = 1 << 20


@pytest.fixture
def small_disk(place):
    """A directory on a disk of 16 MiB."""
    path = os.path.join(place, "disk")
    os.mkdir(path)
    LinuxMounter().mount("tmpfs", path, "tmpfs", ["size=16m"])
    yield path
    LinuxMounter().unmount(path)


def fill(path: str) -> None:
    with open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(MiB // 16))


def test_a_full_disk_is_told_and_costs_nothing(small_disk, start, client) -> None:
    process = start("--data-dir", os.path.join(small_disk, "data"))
    keeper = client.create("keeper", 8 * MiB, parameters={"provisioning": "thick"}).volume_id
    thick = {"parameters": {"provisioning": "thick"}, "volume_capabilities": [client.capability()]}
    code, message = client.fails("CreateVolume", name="big", **thick)
    assert (code, "free on the disk" in message) == ("RESOURCE_EXHAUSTED", True)
    with open(os.path.join(small_disk, "data/volumes", f"{keeper.removeprefix('vol-')}.img"), "r+b") as file:
        file.write(os.urandom(6 * MiB))
    filler = os.path.join(small_disk, "filler")
    with pytest.raises(OSError, match="No space"):
        fill(filler)
    before = sorted(os.listdir(os.path.join(small_disk, "data/volumes")))
    for method, fields in [
        ("CreateVolume", {"name": "thin", "volume_capabilities": [client.capability()]}),
        ("CreateSnapshot", {"name": "snap", "source_volume_id": keeper}),
    ]:
        code, message = client.fails(method, **fields)
        assert code == "RESOURCE_EXHAUSTED", message
    assert sorted(os.listdir(os.path.join(small_disk, "data/volumes"))) == before
    assert os.listdir(os.path.join(small_disk, "data/snapshots")) == []
    client.call("DeleteVolume", volume_id=keeper)
    assert os.listdir(os.path.join(small_disk, "data/volumes")) == []
    assert process.stop() == 0


def test_an_expansion_that_finds_no_room_leaves_the_volume_as_it_was(small_disk, make_parts) -> None:
    parts = make_parts(data="disk/data")
    id = parts.volumes.create(Wanted("one", required=8 * MiB, thick=True)).id
    with pytest.raises(OutOfRangeError, match="free on the disk"):
        parts.volumes.expand(id, 64 * MiB, 0)
    key = parts.state.volume(id).key
    # Also when the disk fills between the question and the deed.
    with pytest.raises(OSError, match="No space"):
        parts.state.images.grow(key, 64 * MiB, thick=True)
    assert parts.state.images.status(key).size == parts.state.volume(id).size == 8 * MiB
    parts.volumes.delete(id)
    parts.close()


def test_thousands_of_volumes_are_found_without_asking_the_disk(parts, monkeypatch) -> None:
    count = 3000
    for number in range(count):
        record = VolumeRecord(id=f"vol-{number:05}", key=f"{number:05}", name=f"name-{number}", size=MiB)
        parts.state.volumes._remember(record)
    listdir: list[object] = []
    monkeypatch.setattr(os, "listdir", lambda *a: listdir.append(a) or [])
    monkeypatch.setattr(os, "scandir", lambda *a: listdir.append(a) or iter(()))
    assert parts.volumes.create(Wanted("name-1234", required=MiB)).id == "vol-01234"
    assert parts.state.volume("vol-02999").name == "name-2999"
    page, token = parts.state.volumes.page("from:vol-02900", 10)
    assert (page[0].id, token) == ("vol-02900", "from:vol-02910")
    new = parts.create("new", MiB, "")
    parts.volumes.publish(new, "node-1", read_only=False)
    parts.volumes.unpublish(new, "node-1")
    parts.volumes.delete(new)
    assert not listdir, "no operation looks through a directory"
    assert parts.state.volumes.total_size == count * MiB


def test_a_start_with_thousands_of_records(make_parts) -> None:
    parts = make_parts()
    for number in range(1000):
        key = f"{number:05}"
        with open(parts.state.images.path(key), "wb") as file:
            file.truncate(MiB)
        with open(os.path.join(parts.state.volumes.directory, f"{key}.json"), "wb") as file:
            file.write(b'{"id":"vol-%05d","key":"%05d","name":"n%d","size":1048576}' % (number, number, number))
    again = parts.reopened()
    assert len(again.state.volumes.keys()) == 1000
    assert again.state.volumes.by_name("n999").id == "vol-00999"
    assert again.state.volumes.total_size == 1000 * MiB
