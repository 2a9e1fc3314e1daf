"""What is in the repository is for everyone: no place or address of the machine that it was written on."""

from __future__ import annotations

import re
import subprocess

import pytest

DIRECTORIES = (
    "host",
    "plugins/hostpath",
    "plugins/emptydir",
    "plugins/projected",
    "plugins/csi",
    "drivers/kit",
    "drivers/loop",
)

FORBIDDEN = {
    "an address of a package index": re.compile(r"--(extra-)?index-url|PIP_INDEX_URL|index-url\s*="),
    "a home directory": re.compile(r"(?<![\w}/.~-])/(root/\.\w|home/\w+/\w|work/\w)"),
    "an editable path of one machine": re.compile(r"file:///(work|root|home|tmp)/"),
}


@pytest.fixture(scope="module")
def tracked(pytestconfig):
    """Text files under version control and their content."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={pytestconfig.rootpath}", "ls-files", "-z"],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    content = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = pytestconfig.rootpath / name
        if path.is_file():
            try:
                content[name] = path.read_text()
            except UnicodeDecodeError:
                pytest.fail(f"{name} is not text")
    assert len(content) > 50
    return content


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(tracked, what):
    own = "tests/packaging/test_repository.py"
    pattern = FORBIDDEN[what]
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in tracked.items()
        if name != own
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_every_distribution_carries_the_same_licence(pytestconfig):
    root = pytestconfig.rootpath
    licence = (root / "LICENSE").read_text()
    for directory in DIRECTORIES:
        assert (root / directory / "LICENSE").read_text() == licence


def test_constraints_pin_every_requirement(pytestconfig):
    """What the distributions and the development groups ask for is pinned, each once and exactly."""
    import tomllib

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    root = pytestconfig.rootpath
    lines = [line for line in (root / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert len(pinned) == len(lines)
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    wanted = [
        requirement
        for directory in DIRECTORIES
        for requirement in tomllib.loads((root / directory / "pyproject.toml").read_text())["project"]["dependencies"]
    ]
    groups = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    wanted += [item for group in groups.values() for item in group if isinstance(item, str)]
    for text in wanted:
        requirement = Requirement(text)
        if requirement.name.startswith("volumehost"):
            continue
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, text
