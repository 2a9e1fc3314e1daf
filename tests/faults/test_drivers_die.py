"""Drivers that die in the middle of calls, stay away, come back, and are replaced (BR-21, -27, -31)."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence

import pytest
from world import NAME, Life, World, driver_objects, refused, until

from volumehost.errors import WaitTimeoutError
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

CALLS = (
    *("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"),
    *("ControllerExpandVolume", "NodeExpandVolume", "CreateSnapshot", "DeleteSnapshot"),
    *("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume"),
)


@contextlib.contextmanager
def dying(world: World, name: str, when: str, calls: Sequence[str]) -> Iterator[list[str]]:
    """The driver dies in the first of each of the calls, and is started again; gives the calls that it died in."""
    driver = world.drivers[name]
    died: list[str] = []
    ended = threading.Event()

    def script() -> None:
        left = [call for call in calls if call not in died]
        driver.script(*(Rule(call, die=True, when=when) for call in left))  # type: ignore[arg-type]

    def watch() -> None:
        while not ended.wait(0.02):
            if driver.pid is None:
                driver.kill()
                # It was killed in the call that was begun last and has no end.
                died.append([call.name for call in driver.calls() if not call.code and call.name in calls][-1])
                driver.start()
                script()

    script()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield died
    finally:
        ended.set()
        watcher.join()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_that_dies_in_every_call_once(world: World, when: str) -> None:
    """Before it did the work, and after it, so that its answer is lost."""
    world.driver()
    world.begin()
    world.prepare()
    with dying(world, NAME, when, CALLS) as died:
        life = Life(world, "data")
        life.mount()
        life.wish()
        until(life.has, "the claim has grown")
        life.snap()
        until(life.has_snapshot, "the snapshot is ready")
        life.unsnap()
        until(life.snapshot_is_gone, "the snapshot is gone")
        life.unmount()
        life.delete()
        until(life.is_gone, "the volume is gone")
        world.assert_nothing_left()
    assert died == list(CALLS)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_that_dies_while_the_pod_goes(world: World, when: str) -> None:
    """BR-31. It comes back once the pod is to go; what it may have done is undone."""
    calls = CALLS[:4]
    world.begin()
    lives = {}
    for number, call in enumerate(calls):
        name = f"fake{number}.csi.example.com"
        world.driver(name)
        world.prepare(name)
        lives[call] = Life(world, f"life-{number}", driver=name)
        lives[call].fault(call, Rule(die=True, when=when))  # type: ignore[arg-type]
    for life in lives.values():
        refused(life.mount, life.driver_name)
    for life in lives.values():
        until(lambda life=life: life.driver.pid is None, "the driver is dead")
        with contextlib.suppress(WaitTimeoutError):
            life.unmount(timeout=0.3)
        life.delete()
        life.driver.kill()
        life.driver.start()
    for call, life in lives.items():
        until(life.is_gone, f"the volume of {call} is gone")
    world.assert_nothing_left()


def test_a_socket_that_is_gone_is_told_and_work_goes_on_when_it_is_back(world: World) -> None:
    world.driver()
    world.begin()
    world.prepare()
    life, other = Life(world, "one"), Life(world, "two")
    life.mount()
    world.drivers[NAME].kill()
    os.unlink(f"{world.sockets}/0.sock")
    (line,) = refused(life.unmount, "UNAVAILABLE", "next retry in")
    assert NAME in line
    assert "NodeUnpublishVolume" in line
    assert "UNAVAILABLE" in line
    assert "next retry in" in line
    (line,) = refused(other.mount, "UNAVAILABLE")
    assert NAME in line
    assert "CreateVolume" in line
    assert "UNAVAILABLE" in line
    world.drivers[NAME].start()
    other.mount()
    until(lambda: [status.name for status in world.manager.status()] == ["two"], "the first pod is gone")
    for each in (life, other):
        with contextlib.suppress(Exception):
            each.unmount()
        each.delete()
    world.assert_nothing_left()


def registration_dir(world: World) -> str:
    return f"{world.root}/plugins_registry"


def test_br27_work_that_comes_before_the_driver_has_registered_again(world: World) -> None:
    """The host restarts, a pod goes and a pod comes, and only then the driver registers by its socket."""
    driver = world.driver(start=False)
    driver.registration_dir = registration_dir(world)
    world.begin(adopt=True)
    driver.start()
    until(lambda: any(status.node_id for status in world.manager.drivers.statuses()), "it is registered")
    for each in driver_objects(NAME):
        world.manager.api.create(each)
    goes, stays = Life(world, "goes"), Life(world, "stays")
    comes = Life(world, "comes")
    goes.mount()
    (volume,) = stays.mount().volumes
    with open(f"{volume.path}/kept", "w") as file:
        file.write("content")
    world.end()
    driver.stop()
    world.begin(adopt=True)
    refused(goes.unmount, NAME)
    refused(comes.mount, NAME)
    assert {status.name: status.ready for status in world.manager.status()} == {
        "goes": False,
        "comes": False,
        "stays": True,
    }
    assert len(world.mounts()) == 4
    driver.start()
    until(lambda: "goes" not in [status.name for status in world.manager.status()], "the pod is gone")
    until(lambda: all(status.ready for status in world.manager.status()), "the others are mounted")
    with open(f"{volume.path}/kept") as file:
        assert file.read() == "content"
    stays.unmount()
    comes.unmount()
    for life in (goes, stays, comes):
        life.delete()
    world.assert_nothing_left()


def test_br21_an_upgrade_of_the_driver_keeps_mounts_and_its_new_capabilities_count(world: World) -> None:
    old = world.driver(start=False, version="1.0.0", expansion=[], node=["STAGE_UNSTAGE_VOLUME"])
    capabilities = ["STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"]
    old.registration_dir = registration_dir(world)
    world.begin(adopt=True)
    old.start()
    until(lambda: any(status.node_id for status in world.manager.drivers.statuses()), "it is registered")
    for each in driver_objects(NAME):
        world.manager.api.create(each)
    life = Life(world, "data")
    (volume,) = life.mount().volumes
    with open(f"{volume.path}/kept", "w") as file:
        file.write("content")
        file.flush()
        old.stop()
        new = world.replace_driver(NAME, version="2.0.0", expansion=["ONLINE"], node=capabilities)
        new.registration_dir = registration_dir(world)
        new.start()
        file.write(", and more")
    with open(f"{volume.path}/kept") as file:
        assert file.read() == "content, and more"
    life.wish()
    until(life.has, "the claim has grown")
    life.unmount()
    life.delete()
    world.assert_nothing_left()
