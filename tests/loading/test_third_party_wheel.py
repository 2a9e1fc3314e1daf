"""The whole story of a third-party plugin: install, use, upgrade while in use, uninstall while in use (BR-12)."""

from __future__ import annotations

import os

import pytest

pytestmark = [pytest.mark.root, pytest.mark.slow]

NAME = "example.com/scratch"
MOUNT = {"volume": "work", "driver": NAME}
UNMOUNT = {"volume": "work", "plugin": NAME}


def mounted_source(path):
    """What is mounted at the path: the plugin writes its version into the source."""
    with open("/proc/self/mountinfo") as file:
        found = [line.split(" - ")[1].split()[1] for line in file if line.split()[4] == path]
    return found[-1] if found else None


def test_installed_while_the_host_runs_it_serves_at_the_next_look_up(environment, start_host, acme):
    host = start_host()
    assert host.error("find", name=NAME) == "PluginNotFoundError"
    assert host.error("find_for", driver=NAME) == "NoPluginMatchedError"

    environment.install(acme("1.0"))
    assert host("find_for", driver=NAME)["version"] == "1.0"
    path = host("mount", pod_uid="a", **MOUNT)
    assert mounted_source(path) == "scratch-1.0"
    assert os.statvfs(path).f_blocks * os.statvfs(path).f_frsize == 4 << 20

    assert host("unmount", pod_uid="a", **UNMOUNT) == "1.0"
    assert mounted_source(path) is None
    assert not os.path.exists(path)


def test_br12_upgraded_while_in_use_the_loaded_version_goes_on_until_its_last_volume_is_gone(
    environment, start_host, acme
):
    environment.install(acme("1.0"))
    host = start_host()
    first = host("mount", pod_uid="a", **MOUNT)

    environment.install("--upgrade", acme("2.0"))
    status = host.status(NAME)
    assert (status["state"], status["version"], status["installed_version"]) == (
        "newer version installed",
        "1.0",
        "2.0",
    )

    second = host("mount", pod_uid="b", **MOUNT)
    assert mounted_source(second) == "scratch-1.0", "new volumes are served by the loaded version"
    assert host("unmount", pod_uid="a", **UNMOUNT) == "1.0"
    assert host.status(NAME)["state"] == "newer version installed"
    assert host("unmount", pod_uid="b", **UNMOUNT) == "1.0"

    status = host.status(NAME)
    assert (status["state"], status["version"], status["installed_version"]) == ("active", "2.0", "")
    third = host("mount", pod_uid="c", **MOUNT)
    assert mounted_source(third) == "scratch-2.0"
    assert host("unmount", pod_uid="c", **UNMOUNT) == "2.0"
    history = (host.root_dir / "plugins" / NAME / "history").read_text().splitlines()
    assert [line.partition(" asked")[2] for line in history] == [
        " for by 1.0, cleaned up by 1.0",
        " for by 1.0, cleaned up by 1.0",
        " for by 2.0, cleaned up by 2.0",
    ], "the lazy import of cleanup never mixes two versions"
    assert not any(map(os.path.exists, (first, second, third)))


def test_br12_uninstalled_while_in_use_it_serves_its_volumes_to_the_last_and_unloads(
    environment, start_host, acme, eventually
):
    environment.install(acme("1.0"))
    host = start_host()
    path = host("mount", pod_uid="a", **MOUNT)

    environment.uninstall("acme-volumes")
    assert not (environment.site_packages / "acme_volumes").exists()
    assert host.error("mount", pod_uid="b", **MOUNT) == "NoPluginMatchedError", "no new volumes"
    status = host.status(NAME)
    assert (status["state"], status["version"]) == ("removed, still in use", "1.0")
    assert status["users"] == ["a/work"]

    assert host("unmount", pod_uid="a", **UNMOUNT) == "1.0"
    assert not os.path.exists(path)
    assert "cleaned up by 1.0" in (host.root_dir / "plugins" / NAME / "history").read_text()
    eventually(lambda: NAME not in host.statuses(), "the plugin is unloaded")
    assert host("modules", prefix="acme_volumes") == []
    assert host.error("find", name=NAME) == "PluginNotFoundError"


def test_uninstalled_while_not_in_use_it_is_gone_at_the_next_look_up(environment, start_host, acme, eventually):
    environment.install(acme("1.0"))
    host = start_host()
    assert host("find", name=NAME)["version"] == "1.0"
    environment.uninstall("acme-volumes")
    assert host.error("find", name=NAME) == "PluginNotFoundError"
    assert host.error("find_for", driver=NAME) == "NoPluginMatchedError"
    eventually(lambda: NAME not in host.statuses(), "it is unloaded")
    assert host("modules", prefix="acme_volumes") == []


def test_upgraded_while_not_in_use_the_new_code_serves_at_the_next_look_up(environment, start_host, acme):
    environment.install(acme("1.0"))
    host = start_host()
    assert host("find", name=NAME)["version"] == "1.0"
    environment.install("--upgrade", acme("2.0"))
    assert host("find", name=NAME)["version"] == "2.0"
    path = host("mount", pod_uid="a", **MOUNT)
    assert mounted_source(path) == "scratch-2.0"
    host("unmount", pod_uid="a", **UNMOUNT)


def test_downgrade_and_reinstall_are_updates_like_any_other(environment, start_host, acme):
    environment.install(acme("2.0"))
    host = start_host()
    host("mount", pod_uid="a", **MOUNT)
    environment.install("--force-reinstall", acme("1.0"))
    assert host.status(NAME)["installed_version"] == "1.0"
    host("unmount", pod_uid="a", **UNMOUNT)
    assert host.status(NAME)["version"] == "1.0"
    environment.install("--force-reinstall", acme("1.0"))
    assert host.status(NAME)["state"] == "active"
    assert mounted_source(host("mount", pod_uid="b", **MOUNT)) == "scratch-1.0"
    host("unmount", pod_uid="b", **UNMOUNT)


def test_installed_again_while_removed_and_in_use_it_goes_on(environment, start_host, acme):
    environment.install(acme("1.0"))
    host = start_host()
    host("mount", pod_uid="a", **MOUNT)
    environment.uninstall("acme-volumes")
    assert host.status(NAME)["state"] == "removed, still in use"
    environment.install(acme("1.0"))
    assert host.status(NAME)["state"] == "newer version installed"
    host("unmount", pod_uid="a", **UNMOUNT)
    assert host.status(NAME)["state"] == "active"
