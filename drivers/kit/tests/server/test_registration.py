"""The registration socket that a driver without a sidecar offers (CSI-RGR, CSI-RAPI-03)."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost_csi_kit import csi, registration, stubs
from volumehost_csi_kit.fake import null_driver
from volumehost_csi_kit.server import CsiServer, RegistrationServer


@pytest.fixture
def offered(directory, channel):
    """A driver that is offered, and a stub to its registration socket."""
    server = CsiServer(
        null_driver("disk.example.com"),
        f"unix://{directory}/csi.sock",
        registration_dir=f"{directory}/registry",
        grace_seconds=0,
    )
    with server:
        yield stubs.RegistrationStub(channel(f"{directory}/registry/disk.example.com-reg.sock"))


def test_what_is_offered(offered, directory, channel):
    info = offered.GetInfo(registration.InfoRequest(), timeout=30)
    assert (info.type, info.name) == ("CSIPlugin", "disk.example.com")
    assert info.endpoint == f"{directory}/csi.sock"
    assert list(info.supported_versions) == ["1.0.0"]
    identity = stubs.IdentityStub(channel(info.endpoint))
    assert identity.GetPluginInfo(csi.GetPluginInfoRequest(), timeout=30).name == info.name


def test_only_its_owner_may_use_the_socket(offered, directory):
    """CSI-RGR-02."""
    found = os.stat(f"{directory}/registry/disk.example.com-reg.sock")
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert os.listdir(f"{directory}/registry") == ["disk.example.com-reg.sock"]


def test_several_callers_at_a_time(offered):
    """CSI-RGR-07."""
    calls = [offered.GetInfo.future(registration.InfoRequest(), timeout=30) for _ in range(20)]
    assert {call.result().name for call in calls} == {"disk.example.com"}


@pytest.fixture
def server(directory):
    """A registration socket alone."""
    made = RegistrationServer("disk.example.com", "/run/csi.sock", directory)
    made.start()
    yield made
    made.stop()


def test_a_refusal_is_logged_and_the_socket_stays(server, channel, caplog):
    """CSI-RGR-05: the host will try again."""
    stub = stubs.RegistrationStub(channel(server.path))
    assert server.outcome is None
    for status, outcome in (
        ({"plugin_registered": False, "error": "no such version"}, "no such version"),
        ({"plugin_registered": False}, "no reason given"),
        ({"plugin_registered": True}, ""),
    ):
        stub.NotifyRegistrationStatus(registration.RegistrationStatus(**status), timeout=30)
        assert server.outcome == outcome
    assert "driver=disk.example.com registration refused: no such version" in caplog.text
    assert stub.GetInfo(registration.InfoRequest(), timeout=30).name == "disk.example.com"


def test_the_offer_is_taken_back_before_the_driver_goes(directory, channel):
    """CSI-RGR-06: whoever watches the directory deregisters it."""
    driver = CsiServer(null_driver(), f"{directory}/csi.sock", registration_dir=f"{directory}/registry")
    driver.start()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(driver.stop, 0).result(30)
    assert os.listdir(f"{directory}/registry") == []
    assert os.listdir(directory) == ["registry"]


def test_br21_the_older_one_leaves_the_newer_ones_offer(server, directory, channel):
    newer = RegistrationServer("disk.example.com", "/run/new.sock", directory)
    newer.start()
    server.stop()
    info = stubs.RegistrationStub(channel(newer.path)).GetInfo(registration.InfoRequest(), timeout=30)
    assert info.endpoint == "/run/new.sock"
    newer.stop()
    assert os.listdir(directory) == []


def test_a_killed_one_leaves_its_file(server, directory, channel, failure):
    server.abandon()
    assert os.listdir(directory) == ["disk.example.com-reg.sock"]
    stub = stubs.RegistrationStub(channel(server.path))
    assert failure(stub.GetInfo, registration.InfoRequest())[0] == "UNAVAILABLE"
