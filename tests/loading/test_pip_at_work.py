"""BR-11 and its like: the host looks while pip works, and what pip does goes wrong."""

from __future__ import annotations

import importlib.util
import subprocess
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.root, pytest.mark.slow]

NAME = "example.com/busy"

WATCH = """
from collections import Counter
from volumehost.errors import PluginNotFoundError
seen, stop = Counter(), threading.Event()

def watch():
    while not stop.wait({interval}):
        try:
            plugin = host.manager.find_plugin_by_name("example.com/busy")
            seen["mixed" if plugin.plugin.version != plugin.origin.version else plugin.origin.version] += 1
        except PluginNotFoundError:
            seen["absent"] += 1
        except BaseException as error:
            seen[repr(error)] += 1

host.watcher = threading.Thread(target=watch, daemon=True)
host.watcher.start()
host.seen, host.stop = seen, stop
"""
SEEN = "host.stop.set(); host.watcher.join(30); result = dict(host.seen)"


@pytest.fixture
def busy(wheels, tmp_path):
    """Wheels of a plugin with a few modules; the version is imported from another module."""

    def build(version):
        files = {f"acme_busy/part{number}.py": f"x = {number}\n" * 200 for number in range(20)}
        files["acme_busy/__init__.py"] = "from acme_busy.part0 import x\n"
        files["acme_busy/number.py"] = f"version = {version!r}\n"
        files["acme_busy/plugin.py"] = "from acme_busy.number import version\n" + wheels.plugin_source(NAME).replace(
            "version = '1.0'", "version = version"
        )
        return wheels.make_wheel(
            tmp_path / "wheels", "acme-busy", version, files=files, entry_points={"busy": "acme_busy.plugin:Plugin"}
        )

    return build


def test_br11_installs_and_removals_while_the_host_looks(environment, start_host, busy, eventually):
    host = start_host()
    host("run", code=WATCH.format(interval=0.05))
    for version in ("1.0", "2.0", "3.0"):
        environment.install(busy(version))
        eventually(lambda version=version: host.code_of(NAME) == version, f"{version} is loaded")
        environment.uninstall("acme-busy")
    seen = host("run", code=SEEN)
    assert set(seen) <= {"absent", "1.0", "2.0", "3.0"}, "no crash, no half of a plugin"
    assert "failed" not in host.log.read_text()
    assert [error for error in host("errors") if "busy" in error] == []


def test_br11_upgrades_leave_no_gap(environment, start_host, busy, eventually):
    environment.install(busy("1.0"))
    host = start_host()
    host("run", code=WATCH.format(interval=0.002))
    for version in ("2.0", "3.0", "4.0"):
        environment.install("--upgrade", busy(version))
        eventually(lambda version=version: host.code_of(NAME) == version, f"{version} is loaded")
    seen = host("run", code=SEEN)
    assert set(seen) == {"1.0", "2.0", "3.0", "4.0"}, "there at every moment, and never of two versions at once"


def test_br11_an_installation_that_is_half_done_is_waited_for(environment, start_host, busy):
    host = start_host()
    environment.install(busy("1.0"))
    (info,) = environment.site_packages.glob("acme_busy-*.dist-info")
    record, module = info / "RECORD", environment.site_packages / "acme_busy/number.py"
    record_aside, module_aside = environment.directory / "RECORD", environment.directory / "number.py"
    record.rename(record_aside)
    module.rename(module_aside)
    assert host.error("find", name=NAME) == "PluginNotFoundError"
    record_aside.rename(record)
    assert host.error("find", name=NAME) == "PluginNotFoundError", "a file that RECORD lists is not there yet"
    module_aside.rename(module)
    assert host("find", name=NAME)["code"] == "1.0"
    assert [error for error in host("errors") if "busy" in error] == []


def test_br11_another_installer(environment, start_host, busy, tmp_path, eventually):
    """uv deletes before it writes, and links files from its cache."""
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    if not uv.exists():
        pytest.skip("uv is not installed")

    def run(*arguments):
        command = [
            uv,
            "pip",
            *arguments,
            "--python",
            environment.python,
            "--offline",
            "--cache-dir",
            tmp_path / "cache",
        ]
        done = subprocess.run(
            command, env=environment.variables(), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr

    host = start_host()
    host("run", code=WATCH.format(interval=0.002))
    for version in ("1.0", "2.0", "1.0", "3.0"):
        run("install", "--no-index", "--no-deps", "--reinstall", busy(version))
        # The watching thread may be loading it at this moment; until that is done look-ups see what was before.
        eventually(lambda version=version: host.code_of(NAME) == version, f"{version} is loaded")
    run("uninstall", "acme-busy")
    eventually(lambda: host.code_of(NAME) is None, "it is gone")
    seen = host("run", code=SEEN)
    assert set(seen) <= {"absent", "1.0", "2.0", "3.0"}, "no crash, no half of a plugin"
    assert [error for error in host("errors") if "busy" in error] == []


def test_br12_a_plugin_with_an_extension_module_needs_a_restart(environment, start_host, wheels, tmp_path):
    specs = [importlib.util.find_spec(name) for name in ("_queue", "_bisect", "_zoneinfo", "_heapq")]
    libraries = [Path(spec.origin) for spec in specs if spec is not None and str(spec.origin).endswith(".so")]
    if not libraries:
        pytest.skip("this Python has its extension modules built in")
    library = libraries[0]
    module = f"acme_fast.{library.name.partition('.')[0]}"

    def wheel(version):
        files = {
            f"acme_fast/{library.name}": library.read_bytes(),
            "acme_fast/__init__.py": f"import {module}\n",
        }
        return wheels.make_plugin_wheel(tmp_path, "acme-fast", version, plugin="example.com/fast", files=files)

    environment.install(wheel("1.0"))
    host = start_host()
    assert host("find", name="example.com/fast")["version"] == "1.0"
    environment.install("--upgrade", wheel("2.0"))
    status = host.status("example.com/fast")
    assert (status["state"], status["version"], status["installed_version"]) == (
        "newer version installed",
        "1.0",
        "2.0",
    )
    assert f"{module} cannot be loaded twice" in status["detail"]
    assert any("restart the host" in error for error in host("errors"))
    assert host("find", name="example.com/fast")["code"] == "1.0"
    assert start_host()("find", name="example.com/fast")["version"] == "2.0"
