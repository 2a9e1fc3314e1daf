"""BR-10: wherever pip put it, the running process sees it, or says exactly why it cannot."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.root, pytest.mark.slow]

NAME = "example.com/scratch"


def test_br10_a_an_editable_install(environment, start_host, acme_source):
    host = start_host()
    project = acme_source("1.0")
    environment.install("--editable", project)
    assert host("find", name=NAME)["version"] == "1.0"
    file = host("run", code="import acme_volumes.plugin as m; result = m.__file__")
    assert file == str(project / "src/acme_volumes/plugin.py")
    assert "acme_volumes.cleanup" not in host("modules", prefix="acme_volumes"), "nobody uses it yet"
    host("mount", pod_uid="a", volume="work", driver=NAME)
    assert "acme_volumes.cleanup" in host("modules", prefix="acme_volumes"), "imported ahead from the project too"
    assert host("unmount", pod_uid="a", volume="work", plugin=NAME) == "1.0"


def test_br10_a_an_editable_install_is_replaced_and_removed_like_any_other(
    environment, start_host, acme_source, acme, eventually
):
    environment.install("--editable", acme_source("1.0"))
    host = start_host()
    path = host("mount", pod_uid="a", volume="work", driver=NAME)
    environment.install("--editable", acme_source("2.0"))
    assert host.status(NAME)["installed_version"] == "2.0"
    assert host("unmount", pod_uid="a", volume="work", plugin=NAME) == "1.0"
    assert not os.path.exists(path)
    environment.install(acme("3.0"))
    assert host("find", name=NAME)["version"] == "3.0"
    environment.uninstall("acme-volumes")
    assert host.error("find", name=NAME) == "PluginNotFoundError"
    eventually(lambda: NAME not in host.statuses(), "it is unloaded")


def finder_wheel(wheels, directory, package_dir):
    """An editable install as setuptools makes it: a finder that a line of code in a ``.pth`` file puts in place."""
    finder = f"""
import sys
from importlib.util import spec_from_file_location

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "acme_flat":
            where = {str(package_dir)!r}
            return spec_from_file_location(name, where + "/__init__.py", submodule_search_locations=[where])

def install():
    sys.meta_path.append(Finder)
"""
    return wheels.make_wheel(
        directory,
        "acme-flat",
        files={
            "__editable___acme_flat_finder.py": finder,
            "__editable__.acme_flat-1.0.pth": "import __editable___acme_flat_finder as f; f.install()\n",
        },
        entry_points={"flat": "acme_flat.plugin:Plugin"},
    )


def test_br10_a_an_editable_install_with_a_finder(environment, start_host, wheels, tmp_path):
    package = tmp_path / "project" / "acme_flat"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(wheels.plugin_source("example.com/flat"))
    host = start_host()
    environment.install(finder_wheel(wheels, tmp_path, package))
    assert host("find", name="example.com/flat")["distribution"] == "acme-flat"


def test_br10_a_code_in_pth_files_of_excluded_distributions_is_not_run(environment, start_host, wheels, tmp_path):
    trace = tmp_path / "trace"
    wheel = wheels.make_wheel(
        tmp_path,
        "acme-trace",
        files={"acme-trace.pth": f"import pathlib; pathlib.Path({str(trace)!r}).touch()\n"},
        entry_points={"trace": "acme_trace_module:Plugin"},
    )
    host = start_host(VOLUMEHOST_PLUGINS_DISABLE="acme-trace")
    environment.install(wheel)
    assert host.status("trace")["state"] == "denied"
    assert not trace.exists()


def test_br10_what_cannot_be_imported_says_where_it_is_and_to_restart(environment, start_host, wheels, tmp_path):
    """Editable, and the finder's line of code does not do what it should in a running process."""
    package = tmp_path / "project" / "acme_flat"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    wheel = wheels.make_wheel(
        tmp_path,
        "acme-flat",
        files={"acme-flat.pth": "import sys; sys.not_enough = True\n"},
        entry_points={"flat": "acme_flat:Plugin"},
    )
    host = start_host()
    environment.install(wheel)
    (info,) = environment.site_packages.glob("acme_flat-*.dist-info")
    (info / "direct_url.json").write_text(f'{{"url": "file://{package.parent}", "dir_info": {{"editable": true}}}}')
    (error,) = [text for text in host("errors") if "acme-flat" in text]
    assert f"it is installed at {package.parent}, which this process cannot import" in error
    assert "restart the host" in error


def test_br10_b_a_user_site_that_did_not_exist_when_the_host_started(
    wheels, tmp_path, start_host, environment, packages_path
):
    """Outside of a virtual environment, with the base interpreter."""
    python = sys._base_executable
    base = tmp_path / "userbase"
    variables = {"PYTHONUSERBASE": str(base), "PYTHONPATH": packages_path}
    environment.python = python
    host = start_host(**variables)
    assert not base.exists()
    wheel = wheels.make_plugin_wheel(tmp_path, "acme-user", plugin="example.com/user")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--user", "--no-index", "--no-deps"]
    done = subprocess.run(
        [*command, "--break-system-packages", str(wheel)],
        env={**environment.variables(), "PYTHONUSERBASE": str(base)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert list(base.rglob("acme_user"))
    assert host("find", name="example.com/user")["distribution"] == "acme-user"


def test_another_directory_on_sys_path(environment, start_host, wheels, tmp_path):
    host = start_host()
    target = tmp_path / "target"
    environment.pip(
        "install", "--no-index", "--no-deps", "--target", str(target),
        str(wheels.make_plugin_wheel(tmp_path, "acme-target", plugin="example.com/target")),
    )  # fmt: skip
    assert host.error("find", name="example.com/target") == "PluginNotFoundError"
    host("run", code=f"import sys; sys.path.append({str(target)!r})")
    assert host("find", name="example.com/target")["distribution"] == "acme-target"


def test_a_pth_file_that_names_another_directory_of_packages(environment, start_host, wheels, tmp_path):
    host = start_host()
    target = tmp_path / "target"
    environment.pip(
        "install", "--no-index", "--no-deps", "--target", str(target),
        str(wheels.make_plugin_wheel(tmp_path, "acme-pth", plugin="example.com/pth")),
    )  # fmt: skip
    (environment.site_packages / "more.pth").write_text(f"{target}\n")
    assert host("find", name="example.com/pth")["distribution"] == "acme-pth"


def test_br08_a_working_directory_with_an_old_egg_info(environment, start_host, wheels, tmp_path):
    """The host runs from a directory that holds a stale ``pkg.egg-info``, on ``sys.path`` before the installed one."""
    project = tmp_path / "project"
    egg = project / "acme_stale.egg-info"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: acme-stale\nVersion: 0.9\n")
    (egg / "entry_points.txt").write_text("[volumehost.plugins]\nvh_old = acme_stale.gone:Plugin\n")
    environment.install(wheels.make_plugin_wheel(tmp_path, "acme-stale", "1.0", plugin="example.com/stale"))
    host = start_host(cwd=project)
    assert host("find", name="example.com/stale")["version"] == "1.0"
    host("run", code="import sys; sys.path.append('')")
    assert host.statuses().keys() == {"example.com/stale"}, "behind the installed one it does not count"
    assert host("errors") == []


def test_br14_a_plugin_among_five_hundred_distributions(environment, start_host, wheels, tmp_path):
    for number in range(500):
        info = environment.site_packages / f"dummy_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: dummy-{number}\nVersion: 1.0\n")
        (info / "RECORD").write_text("")
    host = start_host()
    environment.install(wheels.make_plugin_wheel(tmp_path, "acme-one", plugin="example.com/one"))
    assert host("find", name="example.com/one")
    reads = host(
        "run",
        code="""
import sys, threading
reads = []
recording = True

def note(event, arguments):
    if recording and event in ("open", "os.listdir", "os.scandir"):
        reads.append(event)

sys.addaudithook(note)
prober = host.manager._refresher._prober
while prober._environment.changed():  # until a tick has passed since the installation
    prober.probe()
    threading.Event().wait(0.01)
reads.clear()
for _ in range(60):
    assert prober.probe().events == ()
recording = False
result = reads
""",
    )
    assert reads == [], "an unchanged environment is neither listed nor read"
