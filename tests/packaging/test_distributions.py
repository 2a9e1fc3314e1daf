"""Each distribution builds to an sdist and a wheel that hold what they should, and nothing else."""

from __future__ import annotations

import email
import email.message
import re
import tarfile
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow

EXPECTED_SUFFIXES = {".py", ".pyi", ".proto", ".typed", ".json"}
RUNTIME_REQUIREMENTS = {
    "volumehost": {
        "click",
        "msgspec",
        "packaging",
        "pluggy",
        "prometheus-client",
        "pyyaml",
        "rich",
    },
    "volumehost-hostpath": {"volumehost"},
    "volumehost-emptydir": {"volumehost"},
    "volumehost-projected": {"volumehost", "volumehost-emptydir"},
    "volumehost-csi-kit": {"grpcio", "protobuf"},
    "volumehost-csi": {"volumehost", "volumehost-csi-kit", "msgspec"},
    "volumehost-loop-driver": {"volumehost", "volumehost-csi-kit", "msgspec"},
}
#: Without plugins, drivers or commands of their own.
WITHOUT_ENTRY_POINTS = {"volumehost-csi-kit"}


def metadata_of(distribution) -> email.message.Message:
    with zipfile.ZipFile(distribution.wheel) as wheel:
        (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
        return email.message_from_string(wheel.read(name).decode())


def source_files(distribution):
    src = distribution.directory / "src"
    return {
        path.relative_to(src).as_posix()
        for path in src.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_the_package_its_licence_and_nothing_else(distribution):
    with zipfile.ZipFile(distribution.wheel) as wheel:
        assert wheel.testzip() is None
        names = set(wheel.namelist())
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        licence = wheel.read(f"{info}/licenses/LICENSE").decode()
    expected_info = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"}
    expected_info |= set() if distribution.name in WITHOUT_ENTRY_POINTS else {"entry_points.txt"}
    assert {name.removeprefix(f"{info}/") for name in names if name.startswith(f"{info}/")} == expected_info
    assert "Apache License" in licence
    package = {name for name in names if not name.startswith(f"{info}/")}
    assert f"{distribution.import_name}/py.typed" in package
    assert package == source_files(distribution)
    assert {name for name in package if not name.endswith(tuple(EXPECTED_SUFFIXES))} == set()


def test_wheel_is_for_any_platform(distribution):
    assert distribution.wheel.name.endswith("-py3-none-any.whl")


def test_sdist_holds_sources_tests_and_papers_and_no_litter(distribution):
    with tarfile.open(distribution.sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
        assert {member.name for member in archive.getmembers() if member.issym() or member.islnk()} == set()
    for wanted in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"):
        assert wanted in names
    assert any(name.startswith("tests/") for name in names)
    assert {f"src/{name}" for name in source_files(distribution)} <= names
    litter = re.compile(r"__pycache__|\.pyc$|\.venv|\.(mypy|ruff|pytest)_cache|(^|/)dist/|\.sqlite3|\.egg-info")
    assert [name for name in names if litter.search(name)] == []


def test_metadata(distribution):
    metadata, project = metadata_of(distribution), distribution.project
    assert metadata["Name"] == distribution.name
    assert re.fullmatch(r"\d+\.\d+\.\d+", metadata["Version"])
    assert metadata["Summary"] == project["description"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in metadata.get_all("Classifier")


def test_one_version_for_metadata_and_package(distributions):
    from volumehost import __version__

    assert metadata_of(distributions["volumehost"])["Version"] == __version__


def test_runtime_requirements(distribution):
    """The host needs neither kubernetes nor grpc, pydantic or anything of the tests; what speaks CSI needs grpc."""
    requirements = [Requirement(text) for text in metadata_of(distribution).get_all("Requires-Dist", [])]
    needed = [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    assert {canonicalize_name(r.name) for r in needed} == RUNTIME_REQUIREMENTS[distribution.name]
    assert [str(r) for r in requirements if not r.specifier] == []


def test_plugins_state_which_host_they_work_with(distributions):
    """A host outside of the range refuses the plugin before it imports it (BR-82)."""
    version = metadata_of(distributions["volumehost"])["Version"]
    for name in sorted(RUNTIME_REQUIREMENTS.keys() - {"volumehost", "volumehost-csi-kit"}):
        requirements = [Requirement(text) for text in metadata_of(distributions[name]).get_all("Requires-Dist")]
        (requirement,) = [each for each in requirements if each.name == "volumehost"]
        assert version in requirement.specifier
        assert "1.0" not in requirement.specifier


def test_entry_points_lead_to_something(distribution):
    """Each entry point of the wheel names an object that is there."""
    from importlib import import_module

    if distribution.name in WITHOUT_ENTRY_POINTS:
        return
    with zipfile.ZipFile(distribution.wheel) as wheel:
        (name,) = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
        text = wheel.read(name).decode()
    targets = re.findall(r"^[\w.-]+ = ([\w.]+)(?::(\w+))?$", text, re.MULTILINE)
    assert targets
    for module, attribute in targets:
        loaded = import_module(module)
        assert not attribute or hasattr(loaded, attribute)


def test_readme_reads_well_on_the_package_index(distribution):
    """A page on the index has no neighbours: relative links would lead nowhere."""
    description = metadata_of(distribution).get_payload()
    assert len(description.split()) > 40
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", description) == []
