"""What a driver can do is asked once for each registration (CSI-CLI-06 improved)."""

from __future__ import annotations

import pytest

from volumehost.errors import StorageDriverError, StorageDriverUncertainError
from volumehost_csi_kit.fake import Rule

FAKE = "fake.example.com"


def test_they_are_asked_once_and_hold_all_four_kinds(called, fake):
    first = called.capabilities()
    count = len(fake.calls("ControllerGetCapabilities"))
    assert called.capabilities() is first
    assert len(fake.calls("ControllerGetCapabilities")) == count == 1
    assert len(fake.calls("NodeGetCapabilities")) == 1
    assert "CONTROLLER_SERVICE" in first.plugin
    assert first.expansion == {"ONLINE"}
    assert first.controls("CLONE_VOLUME")
    assert "STAGE_UNSTAGE_VOLUME" in first.node
    assert not first.controls("NONE")


def test_the_node_client_shares_what_was_asked(called, fake):
    called.capabilities()
    assert called.node.has("VOLUME_MOUNT_GROUP")
    assert len(fake.calls("NodeGetCapabilities")) == 1


def test_a_driver_without_a_controller_is_not_asked_about_it(fake, new_drivers, root):
    fake.configure(controller=None, expansion=())
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    capabilities = drivers.driver(FAKE, timeout=30).capabilities()
    assert capabilities.controller == frozenset()
    assert not capabilities.controls("CREATE_DELETE_VOLUME")
    assert fake.calls("ControllerGetCapabilities") == []


def test_a_question_that_failed_is_asked_again(fake, new_drivers, root):
    fake.script(Rule("ControllerGetCapabilities", code="UNAVAILABLE", times=2))
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    driver = drivers.driver(FAKE, timeout=30)
    with pytest.raises(StorageDriverUncertainError):
        driver.capabilities()
    assert driver.capabilities().controls("CREATE_DELETE_VOLUME")


def test_capabilities_of_a_newer_specification_are_left_out(called, fake, new_drivers):
    """CSI-WIRE-04: so are entries without ``rpc``."""
    reply = {"capabilities": [{"rpc": {"type": 99}}, {"rpc": {"type": 1}}, {}]}
    fake.script(Rule("ControllerGetCapabilities", reply=reply), Rule("NodeGetCapabilities", reply=reply))
    driver = new_drivers().driver(FAKE, timeout=30)
    assert driver.capabilities().controller == {"CREATE_DELETE_VOLUME"}
    assert driver.node.capabilities() == {"STAGE_UNSTAGE_VOLUME"}


def test_a_driver_that_declares_a_controller_and_has_none_is_named_a_liar(fake, new_drivers, root):
    fake.script(Rule("ControllerGetCapabilities", code="UNIMPLEMENTED", times=None))
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    with pytest.raises(StorageDriverError, match="declares CONTROLLER_SERVICE and does not implement"):
        drivers.driver(FAKE, timeout=30).capabilities()


def test_a_driver_of_a_controller_alone_can_be_registered(fake, new_drivers, root):
    fake.script(
        Rule("NodeGetInfo", code="UNIMPLEMENTED", times=None),
        Rule("NodeGetCapabilities", code="UNIMPLEMENTED", times=None),
    )
    drivers = new_drivers()
    assert drivers.register(FAKE, f"{root}/fake.sock").node_id == ""
    driver = drivers.driver(FAKE, timeout=30)
    assert driver.node_id == ""
    assert driver.capabilities().node == frozenset()


def test_a_new_registration_is_asked_anew(fake, new_drivers, root):
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    drivers.driver(FAKE, timeout=30).capabilities()
    fake.configure(controller=["CREATE_DELETE_VOLUME"])
    drivers.register(FAKE, f"{root}/fake.sock")
    assert drivers.driver(FAKE, timeout=30).capabilities().controller == {"CREATE_DELETE_VOLUME"}
