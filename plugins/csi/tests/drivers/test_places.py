"""Where the files of a driver are, and what is done when a socket's path would be too long (CSI-WATCH-14)."""

from __future__ import annotations

import os
import shutil

import pytest

from volumehost.errors import StorageDriverUnavailableError
from volumehost.hosts.node_host import NodeHost
from volumehost_csi.drivers import places as places_module
from volumehost_csi.drivers.places import DriverPlaces

NAME = "acme.example.com"


@pytest.fixture
def runtime(tmp_path, monkeypatch, root):
    """A runtime directory for the test."""
    directory = f"{root}/run"
    os.mkdir(directory)
    monkeypatch.setattr(places_module, "_runtime_directory", lambda: directory)
    return directory


def deep(root):
    return DriverPlaces(NAME, f"{root}/drivers/{NAME}", f"{root}/{'x' * 100}/plugins/{NAME}")


def test_the_usual_place(host, root):
    places = DriverPlaces.of(host, host.get_drivers_dir(), NAME)
    assert places.socket() == f"{root}/plugins/{NAME}/csi.sock"
    assert os.path.isdir(f"{root}/plugins/{NAME}")


def test_a_long_path_gets_a_short_one_in_the_runtime_directory(runtime, root):
    path = deep(root).socket()
    assert path.startswith(f"{runtime}/volumehost/")
    assert path.endswith("/csi.sock")
    assert deep(root).socket() == path
    other = DriverPlaces(NAME, "", f"{root}/{'y' * 100}/plugins/{NAME}")
    assert other.socket() != path


@pytest.mark.parametrize("harm", ["link", "writable", "file"])
def test_a_runtime_directory_that_others_can_change_is_refused(runtime, root, harm):
    shared = f"{runtime}/volumehost"
    if harm == "link":
        os.mkdir(f"{runtime}/elsewhere")
        os.symlink(f"{runtime}/elsewhere", shared)
    elif harm == "writable":
        os.mkdir(shared)
        os.chmod(shared, 0o777)
    else:
        open(shared, "w").close()
    with pytest.raises(StorageDriverUnavailableError, match="shorter --root-dir"):
        deep(root).socket()


def test_a_runtime_directory_that_is_too_long_itself_is_told(root, monkeypatch):
    monkeypatch.setattr(places_module, "_runtime_directory", lambda: f"{root}/{'r' * 100}")
    with pytest.raises(StorageDriverUnavailableError, match="107 bytes that the kernel allows"):
        deep(root).socket()


def test_a_driver_below_a_deep_root_directory_serves(new_drivers, site, root, runtime):
    directory = f"{root}/{'x' * 100}"
    os.mkdir(directory)
    drivers = new_drivers(on=NodeHost(directory, node_name="node-a"))
    assert drivers.driver(NAME, timeout=30).instance.endpoint.startswith(runtime)
    drivers.close()
    shutil.rmtree(directory)


def test_a_directory_that_cannot_be_made_is_told(new_drivers, site, root):
    open(f"{root}/drivers", "w").close()
    with pytest.raises(StorageDriverUnavailableError, match="drivers"):
        new_drivers().driver(NAME, timeout=5)
