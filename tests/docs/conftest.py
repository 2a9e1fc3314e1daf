"""The documentation site, built once for all tests of this directory, and what stands on its pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent / "support"))  # page_session: no tests, so no conftest
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
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make docs`` builds it: any warning is an error."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(out / "trees")]
    command += [str(REPOSITORY / "docs"), str(out / "html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
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
    ours = re.compile("VOLUMEHOST_|PYTHON|PIP_|PYTEST_|VIRTUAL_ENV|COLUMNS|LINES|NO_COLOR|FORCE_COLOR")
    return {name: value for name, value in os.environ.items() if not ours.match(name)}
