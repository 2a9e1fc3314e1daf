"""Drivers that are not what they say: other names, empty node ids, capabilities that come, go, or were never there."""

from __future__ import annotations

import contextlib
import os

import pytest
from world import NAME, Life, World, driver_objects, refused, until

from volumehost.errors import StorageDriverError, WaitTimeoutError
from volumehost_csi_kit.fake import CONTROLLER_CAPABILITIES, NODE_CAPABILITIES, Rule

pytestmark = pytest.mark.root


def without(capabilities: tuple[str, ...], *names: str) -> list[str]:
    return [name for name in capabilities if name not in names]


def end(world: World, life: Life) -> None:
    life.unmount()
    life.delete()
    world.assert_nothing_left()


def test_a_driver_that_has_another_name_after_a_restart(world: World) -> None:
    """Nothing is sent to it under the name that it had; when it is itself again all goes on."""
    world.driver()
    world.begin()
    world.prepare()
    life, other = Life(world, "one"), Life(world, "two")
    life.mount()
    world.drivers[NAME].stop()
    stranger = world.replace_driver(NAME)
    impostor = type(stranger)(stranger.endpoint, stranger.directory, name="other.example.com", mounts="bind")
    before = len(stranger.calls())
    impostor.start()
    try:
        with pytest.raises(StorageDriverError, match=r"other\.example\.com"):
            world.manager.drivers.register(NAME, stranger.endpoint)
        world.end()
        world.begin()  # a host that starts looks at whom it talks to
        refused(life.unmount, "other.example.com")
        refused(other.mount, NAME)
        asked = {call.name for call in stranger.calls()[before:]}
        assert asked <= {"GetPluginInfo", "GetPluginCapabilities", "Probe", "NodeGetInfo"}, asked
    finally:
        impostor.stop()
    stranger.start()
    other.mount()
    other.unmount()
    other.delete()
    until(lambda: world.manager.status() == [], "the first pod is gone")
    life.delete()
    world.assert_nothing_left()


def test_an_empty_node_id_is_refused_and_its_reason_told(world: World) -> None:
    """BR-25: also where its registrar put a socket; it is asked again, and serves once it has one."""
    driver = world.driver(start=False, node_id="")
    driver.registration_dir = f"{world.root}/plugins_registry"
    world.begin(adopt=True)
    for each in driver_objects(NAME):
        world.manager.api.create(each)
    driver.start()
    life = Life(world, "data")
    refused(life.mount, NAME)
    told = until(lambda: [each.error for each in world.manager.drivers.statuses() if each.error], "its status tells")
    assert "node" in told[0]
    assert "id" in told[0]
    until(lambda: "registration refused" in driver.log(), "the driver is told")
    driver.configure(node_id="node-7")
    life.mount()
    end(world, life)


def test_two_drivers_with_one_name(world: World) -> None:
    """The one that serves stays; the other one is refused, and it is told why."""
    first = world.driver()
    world.begin()
    world.prepare()
    second = type(first)(f"unix://{world.sockets}/second.sock", f"{world.directory}/second", name=NAME)
    second.registration_dir = f"{world.root}/plugins_registry"
    life = Life(world, "data")
    life.mount()
    with second:
        world.manager.drivers.start()
        until(lambda: "refused" in second.log() or "is registered" in second.log(), "it was answered")
        (status,) = [each for each in world.manager.drivers.statuses() if each.name == NAME]
        serving = first if status.endpoint.endswith("/0.sock") else second
        assert serving is first
        assert "refused" in second.log()
        end(world, life)
        assert {call.name for call in second.calls()} <= {
            "GetPluginInfo",
            "NodeGetInfo",
            "GetPluginCapabilities",
            "Probe",
        }


def test_staging_is_gone_after_an_upgrade_while_a_volume_is_staged(world: World) -> None:
    """What was staged is unstaged all the same, or told; its mount never stays behind unseen."""
    world.driver()
    world.begin()
    world.prepare()
    life = Life(world, "data")
    life.mount()
    world.drivers[NAME].stop()
    world.replace_driver(NAME, node=without(NODE_CAPABILITIES, "STAGE_UNSTAGE_VOLUME")).start()
    world.end()
    world.begin()
    with contextlib.suppress(WaitTimeoutError):
        life.unmount(timeout=2)
        assert world.mounts() == []
    world.drivers[NAME].configure(node=list(NODE_CAPABILITIES))
    world.drivers[NAME].stop()
    world.drivers[NAME].start()
    world.end()
    world.begin()
    until(lambda: world.mounts() == [], "nothing is mounted")
    until(lambda: world.manager.status() == [], "the pod is gone")
    life.delete()
    world.assert_nothing_left()


@pytest.mark.parametrize(
    ("call", "capability"),
    [
        ("ControllerExpandVolume", "EXPAND_VOLUME"),
        ("CreateSnapshot", "CREATE_DELETE_SNAPSHOT"),
        ("CreateVolume", "CREATE_DELETE_VOLUME"),
        ("ControllerPublishVolume", "PUBLISH_UNPUBLISH_VOLUME"),
    ],
)
def test_a_capability_that_is_not_there(world: World, call: str, capability: str) -> None:
    """Not declared: never called, and where the user wants it, told."""
    world.driver(controller=without(CONTROLLER_CAPABILITIES, capability))
    world.begin()
    world.prepare()
    life = Life(world, "data")
    if call == "CreateVolume":
        refused(life.mount, NAME)
    else:
        life.mount()
    if call == "ControllerExpandVolume":
        life.wish()
        until(life.has, "the node alone has grown it")
    if call == "CreateSnapshot":
        life.snap()
        told = until(lambda: _snapshot_error(world, life), "the snapshot tells")
        assert NAME in told
        life.unsnap()
    end(world, life)
    assert call not in [name for name, _ in life.calls()]


def _snapshot_error(world: World, life: Life) -> str:
    from volumehost.api.objects import VolumeSnapshot

    error = world.manager.api.get(VolumeSnapshot, life.name, "default").status.error
    return error.message if error is not None else ""


def test_a_path_of_a_socket_that_is_too_long_for_the_kernel(world: World) -> None:
    """Longer than 107 bytes no address can be; through a shorter name of its directory the driver is reached."""
    deep = f"{world.directory}/{'d' * 120}"
    os.mkdir(deep)
    driver = world.driver(start=False)
    driver.endpoint = f"unix://{deep}/csi.sock"
    driver.start()
    world.begin()
    world.prepare()
    life = Life(world, "data")
    life.mount()
    end(world, life)


@pytest.mark.parametrize("reply", [{}, {"nodeId": "x" * 300}])
def test_an_answer_about_the_node_that_makes_no_sense(world: World, reply: dict[str, object]) -> None:
    driver = world.driver()
    driver.script(Rule("NodeGetInfo", times=None, reply=reply))
    world.begin()
    with pytest.raises(StorageDriverError) as caught:
        world.manager.drivers.register(NAME, driver.endpoint)
    assert NAME in str(caught.value)
    assert "node id" in str(caught.value)
    assert caught.value.driver == NAME
    driver.clear_script()
    world.prepare()
    life = Life(world, "data")
    life.mount()
    end(world, life)
