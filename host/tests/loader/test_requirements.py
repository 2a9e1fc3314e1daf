"""BR-82: what a distribution says that it needs is compared before it is imported."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from volumehost.loader.installed import InstalledDistribution
from volumehost.loader.requirements import incompatibility, satisfies
from volumehost.loader.scan import group_marker, read_entry

GROUP = "volumehost.plugins"


@pytest.fixture
def reason(site):
    count = iter(range(100))

    def read(*headers, host="0.1.0", python="3.11.4"):
        info = site.add(f"acme{next(count)}", "1.0", {"x": "acme:X"}, metadata="\n".join(headers))
        installed = InstalledDistribution.from_scan(read_entry(site.path, info.name, GROUP, group_marker(GROUP)))
        return incompatibility(installed, host=host, python=python)

    return read


@pytest.mark.parametrize(
    "requirement",
    [
        "volumehost",
        "volumehost>=0.1,<1",
        "volumehost (>=0.1)",
        "volumehost ~= 0.1",
        "volumehost[csi]>=0.1",
        "VolumeHost>=0.1",
        "volumehost>=99; python_version < '3'",
        "volumehost>=99; extra == 'test'",
        "volumehost-hostpath>=99",
        "volumehostess>=99",
        "click>=99",
        "volumehost ===",
    ],
)
def test_br82_what_fits_or_is_not_about_the_host(reason, requirement):
    assert reason(f"Requires-Dist: {requirement}") == ""


@pytest.mark.parametrize(
    "requirement",
    [
        "volumehost<0.1",
        "volumehost>=99",
        "volumehost (<0.1)",
        "volumehost!=0.1.0",
        "volumehost==0.2.*",
        "Volumehost>0.1",
        "volumehost[csi]<0.1",
        "volumehost<0.1; python_version >= '3'",
    ],
)
def test_br82_what_does_not_fit_is_told_with_both_versions(reason, requirement):
    text = reason(f"Requires-Dist: {requirement}")
    assert text.startswith("it requires volumehost ")
    assert text.endswith("this is 0.1.0")


def test_br82_the_python_version_too(reason):
    assert reason("Requires-Python: >=3.11") == ""
    assert reason("Requires-Python: >=3.12") == "it requires Python >=3.12, this is 3.11.4"
    assert reason("Requires-Python: !=3.11.*") != ""


def test_only_the_header_counts(site):
    info = site.add("acme", "1.0", {"x": "acme:X"}, metadata="Requires-Dist: volumehost>=0.1")
    text = (info / "METADATA").read_text()
    (info / "METADATA").write_text(text + "\nRequires-Dist: volumehost>=99\nRequires-Python: >=99\n")
    installed = InstalledDistribution.from_scan(read_entry(site.path, info.name, GROUP, group_marker(GROUP)))
    assert incompatibility(installed, host="0.1.0") == ""


VERSION = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
SPECIFIER = st.builds(
    lambda operator, version: operator + version, st.sampled_from([">=", "<=", ">", "<", "=="]), VERSION
)


@given(st.lists(SPECIFIER, min_size=1, max_size=3), VERSION)
def test_ranges_are_read_as_packaging_reads_them(specifiers, version):
    text = ", ".join(specifiers)
    assert satisfies(text, version) == SpecifierSet(text).contains(version, prereleases=True)


@given(SPECIFIER, st.sampled_from(["1.0a1", "0.1.dev3", "1.0+local", "2!1.0"]))
def test_other_versions_are_left_to_packaging(specifier, version):
    assert satisfies(specifier, version) == SpecifierSet(specifier).contains(version, prereleases=True)


def test_a_range_that_cannot_be_read_excludes_nothing():
    assert satisfies("=>1", "0.1")


def test_br82_an_incompatible_plugin_is_not_imported(importable, manager):
    from volumehost.errors import PluginIncompatibleError
    from volumehost.loader.prober import EntryPointProber

    importable.add(
        "acme-future",
        "3.0",
        {"x": "acme_future:Plugin"},
        {"acme_future.py": ""},
        metadata="Requires-Dist: volumehost>=99",
    )
    made = manager(prober=EntryPointProber(path=[importable.path]))
    (status,) = made.plugins()
    assert status.state == "incompatible"
    assert isinstance(status.error, PluginIncompatibleError)
    assert "it requires volumehost >=99" in status.detail
    assert "acme-future" in status.error.hint
    assert "acme_future" not in sys.modules
