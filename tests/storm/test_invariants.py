"""A storm that would see nothing would prove nothing: what is amiss is told, whatever it is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from storm.invariants import problems, rest
from storm.kept import KeptMounts
from storm.wishes import CLAIMED, KINDS, Pod, Volume
from storm.world import World

from volumehost.mount import loop, syscalls

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One pod with volumes of every kind, mounted; nothing of it outlives the module."""
    with World(1) as made:
        made.want(Pod("pod", tuple(Volume(kind, kind, kind if kind in CLAIMED else "") for kind in KINDS)))
        rest(made)
        made.write(list(made.pods.values()))
        yield made


def told(world: World, part: str) -> bool:
    return any(part in each for each in problems(world))


def test_all_is_well(world: World) -> None:
    assert problems(world) == []
    assert world.data_problems(list(world.pods.values())) == []
    assert world.ledger.files_checked == len(KINDS)


def test_a_mount_too_many(world: World) -> None:
    path = world.expected().paths["pod", "memory"]
    syscalls.mount("more", path, "tmpfs", 0, "")
    assert told(world, f"2 mounts at {path}")
    syscalls.umount2(path, 0)
    stray = f"{world.place.root}/pods/stray"
    os.mkdir(stray)
    assert told(world, f"{stray} is of no use")
    syscalls.mount("stray", stray, "tmpfs", 0, "")
    assert told(world, f"mount at {stray}")
    syscalls.umount2(stray, 0)
    os.rmdir(stray)
    assert problems(world) == []


def test_a_mount_too_few_and_another_one_in_its_place(world: World) -> None:
    kept = KeptMounts()
    kept.learn(world.expected().mounts_of, world.place.mount_ids())
    assert kept.problems(world.place.mount_ids()) == []
    path = world.expected().paths["pod", "fake"]
    (staged,) = [m for m in world.place.mounts() if m.path.endswith("/globalmount") and "/fake." in m.path]
    syscalls.umount2(path, 0)
    assert told(world, f"nothing is mounted at {path}")
    assert any("there is nothing" in each for each in kept.problems(world.place.mount_ids()))
    syscalls.mount(staged.path, path, "", syscalls.MS_BIND, "")
    assert problems(world) == []
    assert any("there is another mount" in each for each in kept.problems(world.place.mount_ids()))


def test_files_processes_loop_devices_and_objects_too_many(world: World) -> None:
    temporary = f"{world.place.root}/plugins/kubernetes.io/csi/volumeDevices/left.new"
    with open(temporary, "w") as file:
        file.write("half")
    assert told(world, f"{temporary} is of no use")
    os.unlink(temporary)
    image = f"{world.place.base}/n/left.img"
    with open(image, "wb") as file:
        file.truncate(1 << 20)
    device = loop.attach(image)
    assert told(world, "loop devices, not")
    loop.detach(device)
    os.unlink(image)
    process = world.start_command("agent", "--grace", "1s")
    assert told(world, f"process {process.pid}")
    process.kill()
    process.wait()
    world.objects.create(Pod("nobodys", (Volume("scratch", "scratch"),)).manifest(""))
    assert told(world, "pod nobodys is still in the store")
    world.objects.end_pod("nobodys")
    rest(world)


def test_data_that_is_lost_or_changed(world: World) -> None:
    pods = list(world.pods.values())
    path = world.expected().paths["pod", "loop"]
    (name,) = [name for name in os.listdir(path) if name.startswith("data-")]
    os.rename(f"{path}/{name}", f"{path}/aside")
    assert any("is lost" in each for each in world.data_problems(pods))
    with open(f"{path}/{name}", "w") as file:
        file.write("changed")
    assert any("has other content" in each for each in world.data_problems(pods))
    os.rename(f"{path}/aside", f"{path}/{name}")
    assert world.data_problems(pods) == []
