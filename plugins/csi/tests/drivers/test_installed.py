"""Entry points of installed drivers, read without importing any."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.host_services import InstalledEntryPoint
from volumehost_csi.drivers.installed import installed_drivers

NAME = "acme.example.com"


def entry_point(value, name=NAME, location="", distribution="acme-driver"):
    return InstalledEntryPoint(distribution, "1.0", name, value, location, (1,))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("acme:main", ("acme", "main", False)),
        (" acme.driver : Driver.main ", ("acme.driver", "Driver.main", False)),
        ("acme:main [keep-alive]", ("acme", "main", True)),
        ("acme:main[ keep-alive ]", ("acme", "main", True)),
        ("acme:main []", ("acme", "main", False)),
    ],
)
def test_values(value, expected):
    driver = installed_drivers([entry_point(value)])[NAME]
    assert (driver.module, driver.function, driver.keep_alive) == expected
    assert driver.problem == ""
    assert driver.origin == "acme-driver 1.0"


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_of_an_entry_point_is_more_than_a_problem(name, value):
    (driver,) = installed_drivers([entry_point(value, name)]).values()
    assert driver.problem or driver.module.replace(".", "").isidentifier()


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 64, "a b"])
def test_a_name_that_no_driver_can_have_is_its_problem(name):
    assert "not the name of a CSI driver" in installed_drivers([entry_point("a:b", name)])[name].problem


def test_the_manifest_lies_beside_the_module_which_is_not_imported(tmp_path):
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "main.py").write_text("raise RuntimeError('imported')")
    driver = installed_drivers([entry_point("acme.main:main", location=str(tmp_path))])[NAME]
    assert driver.manifest() == ""
    (package / "csi-driver.yaml").write_text("")
    assert driver.manifest() == f"{package}/csi-driver.yaml"
    of_package = installed_drivers([entry_point("acme:main", location=str(tmp_path))])[NAME]
    assert of_package.manifest() == f"{package}/csi-driver.yaml"


def test_a_manifest_may_be_json_and_yaml_comes_first(tmp_path):
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("")
    driver = installed_drivers([entry_point("acme:main", location=str(tmp_path))])[NAME]
    (package / "csi-driver.json").write_text("")
    assert driver.manifest() == f"{package}/csi-driver.json"
    (package / "csi-driver.yaml").write_text("")
    assert driver.manifest() == f"{package}/csi-driver.yaml"


def test_a_manifest_in_a_directory_that_many_distributions_share_is_nobodys(tmp_path):
    (tmp_path / "acme.py").write_text("")
    (tmp_path / "csi-driver.yaml").write_text("")
    driver = installed_drivers([entry_point("acme:main", location=str(tmp_path))])[NAME]
    assert driver.manifest() == ""


def test_the_manifest_of_an_editable_installation_is_found(tmp_path):
    source = tmp_path / "src" / "acme"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "csi-driver.yaml").write_text("")
    site = tmp_path / "site"
    site.mkdir()
    (site / "acme.pth").write_text(f"import os\n# a comment\n{tmp_path}/src\n")
    (site / "broken.pth").mkdir()
    driver = installed_drivers([entry_point("acme:main", location=str(site))])[NAME]
    assert driver.manifest() == f"{source}/csi-driver.yaml"


PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "acme-driver"
version = "{version}"
[project.entry-points."volumehost.csi_drivers"]
"acme.example.com" = "acme_package:main"
[tool.hatch.build.targets.wheel]
packages = ["acme_package"]
"""


@pytest.mark.slow
def test_pip_installs_upgrades_and_uninstalls_a_driver_under_a_running_host(
    tmp_path, root, new_drivers, running, status_of, wait_until
):
    """The real pip, into a directory on the path: what DESIGN section 10 promises."""
    target = str(tmp_path / "target")
    package = tmp_path / "project" / "acme_package"
    package.mkdir(parents=True)
    (package / "csi-driver.yaml").write_text("")
    here = os.path.dirname(__file__)

    def pip_install(version):
        with open(f"{here}/acme_driver.py") as source:
            (package / "__init__.py").write_text(source.read().replace('VERSION = "1.0"', f'VERSION = "{version}"'))
        (tmp_path / "project" / "pyproject.toml").write_text(PROJECT.format(version=version))
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
        subprocess.run(
            [
                *command,
                "--disable-pip-version-check",
                "--root-user-action=ignore",
                "--upgrade",
                "--target",
                target,
                ".",
            ],
            cwd=tmp_path / "project",
            check=True,
        )

    os.mkdir(target)
    sys.path.append(target)
    try:
        drivers = new_drivers()
        assert status_of(drivers) is None
        pip_install("1.0")
        assert drivers.driver(NAME, timeout=30).node_id == "node-1"
        status = status_of(drivers)
        assert (status.version, status.manifest) == ("1.0", f"{target}/acme_package/csi-driver.yaml")
        pip_install("2.0")
        wait_until(lambda: (now := running()) and now.version == "2.0", "the new version")
        assert drivers.driver(NAME, timeout=30).node_id == "node-1"
    finally:
        sys.path.remove(target)
    assert drivers.driver(NAME, timeout=30).node.get_info().node_id == "node-1"
    drivers.close()
    assert running() is None
