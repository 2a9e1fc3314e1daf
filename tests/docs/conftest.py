"""The documentation site, built once for all tests of this directory, and what stands on its pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent / "support"))  # page_session: no tests, so no conftest

from page_session import Shell, play  # noqa: E402  (after the path to it)

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class _Definitions(HTMLParser):
    """Collects the text of each ``<dt id=...>`` (a documented object's signature)."""

    def __init__(self) -> None:
        super().__init__()
        self.signatures: dict[str, str] = {}
        self.words: list[str] = []
        self._open: list[tuple[str, str]] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        values = dict(attrs)
        identity = (values.get("id") or "") if tag == "dt" else ""
        self._open.append((tag, identity))
        if identity:
            self.signatures[identity] = ""
        self._hidden += "headerlink" in (values.get("class") or "").split()

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            name, _ = self._open.pop()
            if name == tag:
                break
        if tag == "a":
            self._hidden = 0

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self.words.append(data)
        for _, identity in self._open:
            if identity:
                self.signatures[identity] += data


class Page:
    """A built page: its text, and the signature of each object that it documents."""

    def __init__(self, html: str) -> None:
        parser = _Definitions()
        parser.feed(html)
        self.text = " ".join("".join(parser.words).split())
        self.signatures = {
            name: " ".join(text.replace("\N{RIGHTWARDS ARROW}", "->").split())
            for name, text in parser.signatures.items()
        }


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The site as ``make docs`` builds it: any warning is an error. Built once, also for several test processes."""
    base = tmp_path_factory.getbasetemp()
    out = (base if worker_id == "master" else base.parent) / "site"
    with FileLock(f"{out}.lock", timeout=280):
        if not (out / "built").exists():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
            command += ["-d", str(out / "trees"), str(REPOSITORY / "docs"), str(out / "html")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
            assert done.returncode == 0, done.stderr
            (out / "built").touch()
    return out / "html"


@pytest.fixture(scope="session")
def page(site: Path) -> Callable[[str], Page]:
    """A built page by its name, ``reference/hooks`` for example."""
    return lambda name: Page((site / f"{name}.html").read_text())


@pytest.fixture(scope="session")
def parse_page() -> Callable[[str], Page]:
    """A page from its HTML."""
    return Page


@pytest.fixture(scope="session")
def read_source() -> Callable[[str], str]:
    """The source of a page of the documentation."""
    return lambda name: (REPOSITORY / "docs" / name).read_text()


@pytest.fixture(scope="session")
def repository() -> Path:
    """Where the working tree is."""
    return REPOSITORY


@pytest.fixture
def user_environment() -> dict[str, str]:
    """The environment of a user who has set nothing of ours."""
    ours = re.compile("VOLUMEHOST_|PYTHON|PIP_|PYTEST_|VIRTUAL_ENV|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CI$|BUILD_NUMBER")
    return {name: value for name, value in os.environ.items() if not ours.match(name)}


@pytest.fixture(scope="module")  # what one file's pages install is not there for another's
def author_venv(tmp_path_factory: pytest.TempPathFactory, distributions: dict[str, Any]) -> Path:
    """A virtual environment of an author: pip, all distributions from wheels, and the tools to build and test.

    What they depend on comes from the environment of the tests, so that nothing has to be downloaded.
    """
    made = tmp_path_factory.mktemp("author") / "venv"
    uv = [sys.executable, "-m", "uv", "--quiet", "--no-config", "--offline"]
    wheels = [str(distribution.wheel) for distribution in distributions.values()]
    install = ["pip", "install", "--python", str(made / "bin" / "python"), "--no-index", "--no-deps", *wheels]
    for command in (["venv", "--python", sys.executable, str(made)], install):
        done = subprocess.run([*uv, *command], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "tools_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = made / "bin" / "pip"
    pip.write_text(f"#!{made}/bin/python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n")
    pip.chmod(0o755)
    return made


@pytest.fixture
def play_page(play_text: Callable[[str], list[str]], read_source: Callable[[str], str]) -> Callable[[str], list[str]]:
    """Plays a page of the documentation by its name; gives back every difference."""
    return lambda name: play_text(read_source(name))


@pytest.fixture
def play_text(
    tmp_path: Path, author_venv: Path, user_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], list[str]]:
    """Plays a page in an empty directory, as root, with the default root directory empty; gives back every difference.

    The page's shell has a mount namespace of its own, in which the directories below are empty: what it does stays
    there. One page is played at a time: "inspect" tells of mounts that other namespaces have below the root directory.
    """
    workers = os.environ.get("PYTEST_XDIST_WORKER") is not None
    base = tmp_path_factory.getbasetemp()
    turn = FileLock(f"{base.parent if workers else base}/a-page-is-played.lock", timeout=280)

    def run(text: str) -> list[str]:
        work = tmp_path / "work"
        work.mkdir()
        path = f"{author_venv / 'bin'}{os.pathsep}{user_environment['PATH']}"
        environment = {
            **user_environment,
            "PATH": path,
            "VIRTUAL_ENV": str(author_venv),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "COLUMNS": "100",
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(tmp_path),
        }
        with turn, Shell(work, environment, wrapper=("unshare", "--mount", "--propagation", "private")) as shell:
            output, code = shell.run("for d in /var/lib /var/tmp /run; do mount -t tmpfs tmpfs $d || exit 1; done")
            assert code == 0, output
            # crun refuses a machine that has both versions of control groups.
            shell.run("umount /sys/fs/cgroup/unified 2>/dev/null || true")
            differences = list(play(text, shell, work))
            left = shell.run("findmnt --noheadings --raw --output TARGET | grep ^/var/lib/")[0]
            if left.strip():
                differences.append(f"the page leaves mounts behind:\n{left}")
        return differences

    return run
