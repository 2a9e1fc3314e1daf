"""A driver that is installed anew is restarted when no call is on its way; one that is uninstalled serves on."""

from __future__ import annotations

import threading

import pytest

from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import CreateVolumeRequest, VolumeCapability

NAME = "acme.example.com"


def test_a_new_version_takes_over(drivers, site, running, status_of, wait_until):
    first = drivers.driver(NAME, timeout=30)
    assert status_of(drivers).version == "1.0"
    before = running()
    site.install("1.1")
    wait_until(lambda: (now := running()) and now.version == "1.1", "the new version")
    second = drivers.driver(NAME, timeout=30)
    second.capabilities()
    assert (first.vendor_version, second.vendor_version) == ("1.0", "1.1")
    assert not before.alive
    assert status_of(drivers).version == "1.1"


def test_a_call_on_its_way_is_not_broken_off(drivers, site, behave, places, running, wait_until):
    import os

    behave(slow_call=True)
    driver = drivers.driver(NAME, timeout=30)
    results = []
    request = CreateVolumeRequest("v", [VolumeCapability("SINGLE_NODE_WRITER")], 1 << 20)
    thread = threading.Thread(target=lambda: results.append(driver.create_volume(request)))
    thread.start()
    wait_until(lambda: os.path.exists(f"{places.data_directory}/calling"), "the call to begin")
    site.install("1.1")
    looks = []
    real = drivers._installed_now

    def look():
        looks.append(real())
        return looks[-1]

    drivers._installed_now = look
    wait_until(lambda: len(looks) > 3, "some looks at what is installed")
    assert running().version == "1.0"
    open(f"{places.data_directory}/go", "w").close()
    thread.join(30)
    assert results[0].capacity_bytes == 1 << 20
    wait_until(lambda: (now := running()) and now.version == "1.1", "the new version")


def test_an_uninstalled_driver_serves_while_it_is_needed(drivers, new_drivers, site, running, status_of):
    drivers.driver(NAME, timeout=30)
    site.uninstall()
    assert drivers.driver(NAME, timeout=30).node.get_info().node_id == "node-1"
    assert status_of(drivers).version == "1.0"
    drivers.close()
    assert running() is None
    assert status_of(new_drivers()) is None


def test_whoever_needs_it_in_the_moment_of_its_failure_is_told(drivers, site, running, wait_until):
    import os
    import signal

    drivers.driver(NAME, timeout=30)
    record = running()
    site.uninstall()
    supervised, told = drivers._supervised[NAME], []
    pause = supervised._pause

    def pause_later(driver):
        if driver is None:  # its failure is noted, and nothing more has happened yet
            with pytest.raises(StorageDriverUnavailableError) as caught:
                supervised.need(5)
            told.append(str(caught.value))
        pause(driver)

    supervised._pause = pause_later
    os.kill(record.process.pid, signal.SIGKILL)
    wait_until(lambda: told, "the failure")
    assert "not installed" in told[0]


def test_an_uninstalled_driver_that_dies_is_not_started_again(drivers, site, running, wait_until, status_of):
    import os
    import signal

    drivers.driver(NAME, timeout=30)
    record = running()
    site.uninstall()
    os.kill(record.process.pid, signal.SIGKILL)
    wait_until(lambda: drivers.store.get(NAME) is None, "the end to be noticed")
    wait_until(lambda: "not installed any more" in status_of(drivers).error, "the reason")
    with pytest.raises(StorageDriverUnavailableError, match="not installed"):
        drivers.driver(NAME, timeout=10)
    site.install("1.2")
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"


def test_a_new_version_that_was_installed_while_no_host_ran_is_started(new_drivers, site, running):
    """A keep-alive driver without mounts, left by an earlier host."""
    site.install("1.0", value="acme_driver:main [keep-alive]")
    first = new_drivers()
    first.driver(NAME, timeout=30)
    first.close()
    assert running().version == "1.0"
    site.install("1.1")
    second = new_drivers()
    second.driver(NAME, timeout=30)
    assert running().version == "1.1"


def test_a_keep_alive_driver_with_mounts_is_not_replaced(new_drivers, site, host, running, status_of, wait_until):
    from volumehost.host_services import MountPoint

    site.install("1.0", value="acme_driver:main [keep-alive]")
    drivers = new_drivers()
    drivers.driver(NAME, timeout=30)
    mount = MountPoint(
        1, 1, 0, 1, "/", f"{host.get_pods_dir()}/u/volumes/kubernetes.io~csi/v/mount", (), (), "fuse", "x", ()
    )

    class Mounter:
        def __init__(self):
            self.asked = 0

        def list_mounts(self):
            self.asked += 1
            return [mount]

    real, host._mounter = host._mounter, Mounter()
    site.install("1.1", value="acme_driver:main [keep-alive]")
    wait_until(lambda: host._mounter.asked > 2, "some looks")
    assert running().version == "1.0"
    assert status_of(drivers).version == "1.0 (newer installed: 1.1)"
    host._mounter = real
    wait_until(lambda: (now := running()) and now.version == "1.1", "the new version")


def test_hosts_of_two_environments_do_not_fight_over_the_version(new_drivers, site, host, running, root):
    """One of them started it; the other, with another version, uses it as it is."""
    from volumehost.hosts.node_host import NodeHost

    first = new_drivers()
    first.driver(NAME, timeout=30)
    record = running()

    class Other(NodeHost):
        def get_installed_entry_points(self, group):
            from dataclasses import replace

            return [replace(each, version="9", identity=(9,)) for each in super().get_installed_entry_points(group)]

    second = new_drivers(on=Other(root, node_name="node-a"))
    assert second.driver(NAME, timeout=30).node_id == "node-1"
    assert running().instance == record.instance
