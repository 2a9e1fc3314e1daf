"""The scan: what it finds is what importlib.metadata finds, with fewer imports."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.loader.scan import metadata_entries, normalize, parse_entry_points, scan, split_entry

GROUP = "volumehost.plugins"


def found(*paths):
    return {(each.name, each.version): dict(each.entry_points) for each in scan(GROUP, [str(path) for path in paths])}


def test_distributions_with_the_group_are_found(site):
    site.add("acme-volumes", "1.2", {"nfs": "acme.nfs:Plugin", "smb": "acme.smb"})
    site.add("other", "1.0", {"tool": "other:main"}, group="console_scripts")
    site.add("bare", "1.0")
    assert found(site.path) == {("acme-volumes", "1.2"): {"nfs": "acme.nfs:Plugin", "smb": "acme.smb"}}


def test_br08_only_the_first_copy_counts(make_site):
    first, second = make_site("first"), make_site("second")
    first.add("acme", "2.0", {"vh_new": "acme:Plugin"})
    second.add("acme", "1.0", {"vh_old": "acme.gone:Plugin"})
    second.add("only-here", "1.0", {"x": "x"})
    assert found(first.path, second.path) == {
        ("acme", "2.0"): {"vh_new": "acme:Plugin"},
        ("only-here", "1.0"): {"x": "x"},
    }


def test_br08_a_first_copy_without_plugins_hides_an_older_one_with(make_site):
    first, second = make_site("first"), make_site("second")
    first.add("acme", "2.0")
    second.add("Acme", "1.0", {"vh_old": "acme.gone:Plugin"})
    assert found(first.path, second.path) == {}


def test_br08_an_egg_info_in_the_working_directory(make_site, monkeypatch):
    cwd, site = make_site("cwd"), make_site("site")
    egg = cwd.directory / "acme.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Name: acme\nVersion: 0.9\n")
    (egg / "entry_points.txt").write_text(f"[{GROUP}]\nold = acme:Old\n")
    site.add("acme", "1.0", {"new": "acme:New"})
    monkeypatch.chdir(cwd.path)
    assert found("", site.path) == {("acme", ""): {"old": "acme:Old"}}
    assert found(site.path, "") == {("acme", "1.0"): {"new": "acme:New"}}


def test_an_egg_on_the_path(tmp_path):
    egg = tmp_path / "acme_volumes-1.5-py3.11.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "entry_points.txt").write_text(f"[{GROUP}]\nx = acme:X\n")
    assert found(egg) == {("acme-volumes", "1.5"): {"x": "acme:X"}}


def test_a_zip_on_the_path(tmp_path):
    archive = tmp_path / "plugins.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("acme-1.0.dist-info/entry_points.txt", f"[{GROUP}]\nx = acme:X\n")
        file.writestr("acme.py", "X = 1\n")
    assert found(archive) == {("acme", "1.0"): {"x": "acme:X"}}


def test_what_is_no_directory_or_zip_is_passed_over(tmp_path, site):
    (tmp_path / "text").write_text("no zip")
    site.add("acme", "1.0", {"x": "acme:X"})
    assert len(scan(GROUP, [str(tmp_path / "absent"), str(tmp_path / "text"), site.path])) == 1
    assert len(scan(GROUP, [tmp_path, b"bytes", site.path])) == 1


def test_what_pip_keeps_aside_while_it_works_is_not_a_distribution(site):
    for name in ("~cme_volumes-1.0", "-acme-1.0", ".acme-1.0", "~-me-1.0"):
        info = site.directory / f"{name}.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text(f"[{GROUP}]\nx = acme:X\n")
    assert found(site.path) == {}


@pytest.mark.parametrize(
    ("entry", "location", "expected"),
    [
        ("acme_volumes-1.0.dist-info", "/s", ("acme-volumes", "1.0")),
        ("Acme.Volumes-1.0.post1+local.dist-info", "/s", ("acme-volumes", "1.0.post1+local")),
        ("acme.egg-info", "/s", ("acme", "")),
        ("acme_volumes-1.0-py3.11.egg-info", "/s", ("acme-volumes", "1.0")),
        ("EGG-INFO", "/s/acme-2.0-py3.11.egg", ("acme", "2.0")),
    ],
)
def test_names_and_versions_come_from_the_metadatas_name(entry, location, expected):
    assert split_entry(entry, location) == expected
    assert list(metadata_entries([entry, "acme", "x.pth"], location)) == [entry]


@given(st.text(alphabet="aA1-_.", min_size=1))
def test_names_are_normalised_as_packaging_does(name):
    from packaging.utils import canonicalize_name

    assert normalize(name) == canonicalize_name(name)


LINE = st.one_of(
    st.sampled_from(
        [f"[{GROUP}]", f"  [{GROUP}]  ", "[other]", "", "# comment", "a = b:C", "a=b", " a = b : c [extra] ", "# a = b"]
    ),
    st.from_regex(r"[a-z]{1,3} ?= ?[a-z.]{1,5}(:[A-Z])?", fullmatch=True),
)


@given(st.lists(LINE, max_size=12))
def test_entry_points_are_parsed_as_importlib_metadata_does(lines):
    text = "\n".join(lines)
    expected = {}
    for point in importlib.metadata.EntryPoints._from_text(text):
        if point.group == GROUP:
            expected.setdefault(point.name, point.value)
    assert dict(parse_entry_points(text.encode(), GROUP)) == expected


@given(st.binary(max_size=200))
def test_no_content_breaks_the_parser(data):
    parse_entry_points(data, GROUP)
    parse_entry_points(f"[{GROUP}]\n".encode() + data, GROUP)


def test_the_environment_of_these_tests_reads_the_same_both_ways():
    ours = {(each.name, *point) for each in scan(GROUP) for point in each.entry_points}
    theirs = set()
    for distribution in importlib.metadata.distributions():
        for point in distribution.entry_points:
            if point.group == GROUP:
                theirs.add((normalize(distribution.metadata["Name"]), point.name, point.value))
    assert ours == theirs


def loaded_by(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


def test_a_scan_imports_next_to_nothing(site):
    site.add("acme", "1.0", {"x": "acme:X"})
    code = f"from volumehost.loader.scan import scan\nassert len(scan({GROUP!r}, [{site.path!r}])) == 1"
    heavy = {
        "typing",
        "re",
        "dataclasses",
        "enum",
        "logging",
        "importlib.metadata",
        "pluggy",
        "email",
        "zipfile",
        "json",
    }
    assert not loaded_by(code) & heavy
    assert len(loaded_by(code)) < 12


def test_loading_plugins_imports_nothing_heavy(site):
    source = (
        "from volumehost.loader.manager import VolumePluginManager\n"
        "from volumehost.loader.prober import EntryPointProber\n"
        f"VolumePluginManager(inspect_only=True).init_plugins(prober=EntryPointProber(path=[{site.path!r}]))"
    )
    heavy = {"msgspec", "yaml", "rich", "importlib.metadata", "packaging", "email", "sqlite3", "asyncio", "kubernetes"}
    heavy |= {"grpc", "csv", "zipfile", "hashlib", "json", "difflib", "subprocess", "socket"}
    assert not loaded_by(source) & heavy
