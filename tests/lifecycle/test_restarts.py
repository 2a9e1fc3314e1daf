"""Hosts and drivers end at any moment; volumes stay, data stays, and everything goes away in the end."""

from __future__ import annotations

import os
import signal
import time

import pytest
from subject import MIB, claim, pod, storage_class, wait_for

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def provisioning(subject, machine):
    why_not = subject.needs("controller", "CREATE_DELETE_VOLUME")
    if why_not:
        pytest.skip(why_not)
    machine.apply(storage_class(subject))


def test_a_pod_with_every_kind_of_volume_survives_restarts_and_goes_to_nothing(machine, subject):
    """What the whole is for: filesystem, block and inline; a host restart, a driver restart, expansion, the end."""
    grown = {}
    if subject.is_ours:  # growing a mounted ext4 needs a capability that is often missing
        machine.apply(storage_class(subject, "xfs", parameters={"csi.storage.k8s.io/fstype": "xfs"}))
        grown = {"storageClassName": "xfs"}
    machine.apply(claim("data", "320Mi", **grown), claim("raw", mode="Block"))
    inline = {"scratch": {"csi": {"driver": subject.name, "volumeAttributes": {"size": "32Mi"}}}}
    web = pod("web", claims=["data"], blocks=["raw"], **(inline if subject.inline and subject.is_ours else {}))
    volumes = machine.mount(web)
    machine.shell('echo data > "$1/file"', volumes["data"]["path"])
    machine.shell('echo block | dd of="$1" conv=notrunc status=none', volumes["raw"]["path"])
    again = machine.mount(web)  # another process: the host was restarted, and so was its driver
    assert {name: each["path"] for name, each in again.items()} == {n: each["path"] for n, each in volumes.items()}
    assert machine.shell('cat "$1/file"', again["data"]["path"]) == "data\n"
    assert machine.shell('head -c 5 "$1"', again["raw"]["path"]) == "block"
    if not subject.needs("controller", "EXPAND_VOLUME"):
        machine("expand", "data", "512Mi")
        machine("expand", "raw", "128Mi")
        if subject.is_ours:
            assert machine.shell('blockdev --getsize64 "$1"', again["raw"]["path"]) == f"{128 * MIB}\n"
    assert machine.shell('cat "$1/file"', again["data"]["path"]) == "data\n"
    machine.unmount("web")
    machine("delete", "pvc", "data", "raw")
    assert machine.left_behind() == []


@pytest.mark.parametrize("instant", range(12))
def test_a_host_that_is_killed_while_it_mounts_is_taken_up_where_it_was(machine, instant):
    """BR-31, BR-47, BR-55: whatever the instant, mounting again works, and nothing is left in the end."""
    machine.apply(claim("data"))
    web = pod("web", claims=["data"])
    machine.apply(web)
    process = machine.start("mount", "web", "--timeout", "60s")
    time.sleep(0.05 + 0.09 * instant)  # not a wait for anything: the instant at which it dies
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    path = machine.mount(web)["data"]["path"]
    assert path in machine.mounts()
    machine.shell('echo works > "$1/file"', path)
    machine.unmount("web")
    machine("delete", "pvc", "data")
    assert machine.left_behind() == []


@pytest.mark.parametrize("instant", range(8))
def test_a_host_that_is_killed_while_it_unmounts_leaves_nothing_in_the_end(machine, instant):
    """BR-48, BR-55."""
    machine.apply(claim("data"))
    machine.mount(pod("web", claims=["data"]))
    process = machine.start("unmount", "web")
    time.sleep(0.05 + 0.09 * instant)  # the instant at which it dies
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    machine("unmount", "--all", "--timeout", "60s")
    machine("delete", "pvc", "data")
    assert machine.left_behind() == []


def test_a_driver_that_is_killed_comes_back_and_its_mounts_stay(machine, subject):
    """While a host needs it, it is started again; what it mounted is there all the time."""
    if not subject.is_ours:
        pytest.skip("the driver is not ours to end")
    machine.apply(claim("data"))
    path = machine.mount(pod("web", claims=["data"]))["data"]["path"]
    machine.shell('echo kept > "$1/file"', path)
    host = machine.host(subject.name)
    (first,) = wait_for(lambda: machine.drivers_running(ready=True), "the driver serves")
    os.kill(first, signal.SIGKILL)
    assert machine.shell('cat "$1/file"', path) == "kept\n"
    wait_for(lambda: [pid for pid in machine.drivers_running() if pid != first], "the driver runs again")
    host.terminate()
    host.wait(30)
    machine.unmount("web")


def test_after_a_reboot_volumes_are_staged_and_published_again(machine, subject):
    """BR-58: the mounts are gone behind our back; nobody gets the bare directory below."""
    machine.apply(claim("data"))
    web = pod("web", claims=["data"])
    path = machine.mount(web)["data"]["path"]
    machine.shell('echo kept > "$1/file"', path)
    machine.shell('for path in "$@"; do umount "$path"; done', *reversed(machine.mounts()))
    if subject.is_ours:
        attached = [line.partition(":")[0] for line in machine.shell("losetup -a").splitlines()]
        ours = [device for device in attached if str(machine.root) in machine.shell('losetup "$1"', device)]
        for device in ours:
            machine.shell('losetup -d "$1"', device)
    again = machine.mount(web)["data"]["path"]
    assert again in machine.mounts()
    assert machine.shell('cat "$1/file"', again) == "kept\n"
    machine.unmount("web")
