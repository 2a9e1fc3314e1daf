"""A driver written with the kit, as a process of its own, registers through the kit's registration server."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from volumehost_csi_kit.fake import FakeDriverProcess, Rule

pytestmark = pytest.mark.timeout(90)

NAME = "fake.csi.example.com"


@pytest.fixture
def driver(short_dir) -> Iterator[FakeDriverProcess]:
    driver = FakeDriverProcess(
        f"unix://{short_dir}/fake.sock",
        f"{short_dir}/fake",
        registration_dir=f"{short_dir}/plugins_registry",
        topology={"t/zone": "z"},
        max_volumes=4,
        node_id="n1",
    )
    os.makedirs(driver.registration_dir, exist_ok=True)
    yield driver
    driver.stop()


def test_it_registers_is_killed_comes_back_and_leaves(api_node, driver, wait_until) -> None:
    """CSI-RGR-01, -06, BR-21: kill -9 leaves the socket and the registration, mounts depend on it; an end does not."""
    driver.start()
    api_node.wait_registered(NAME)
    first = api_node.store.get(NAME)
    entry = wait_until(lambda: api_node.csi_node().spec.drivers, "the entry")[0]
    assert (entry.name, entry.node_id, entry.topology_keys, entry.allocatable.count) == (
        NAME, "n1", ["t/zone"], 4,
    )  # fmt: skip
    driver.kill()
    driver.start()
    wait_until(lambda: api_node.store.get(NAME) not in (None, first), "another instance")
    api_node.wait_idle()
    assert len(api_node.store.instances(NAME)) == 1
    driver.stop()
    api_node.wait_gone(NAME)
    wait_until(lambda: not api_node.csi_node().spec.drivers, "the entry gone")


def test_an_answer_that_never_comes_ends_with_the_driver(node, driver, wait_until) -> None:
    """CSI-REG-07, -08: the driver dies inside of NodeGetInfo; its next process registers."""
    driver.start()
    node.wait_registered(NAME)
    path = f"{driver.registration_dir}/{NAME}-reg.sock"
    driver.script(Rule("NodeGetInfo", hang=True))
    first = node.store.get(NAME)
    os.rename(path, f"{driver.registration_dir}/other-reg.sock")
    driver.wait_for("NodeGetInfo", 2)
    driver.kill()
    driver.start()
    wait_until(lambda: node.store.get(NAME) not in (None, first), "the new process registered")
