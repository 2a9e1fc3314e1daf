"""The configuration page and the code agree about the environment variables."""

from __future__ import annotations

import re
from dataclasses import fields

VARIABLE = re.compile(r"\bVOLUMEHOST_[A-Z_]*[A-Z]\b")


def variables_in_code(repository):
    """Whole string constants that look like one of ours."""
    sources = [
        path
        for directory in ("host/src", "plugins/hostpath/src", "plugins/emptydir/src", "plugins/projected/src")
        for path in (repository / directory).rglob("*.py")
    ]
    assert len(sources) > 20
    literals = re.compile(rf"[\"'](?:{VARIABLE.pattern})[\"']")
    return {found.strip("\"'") for path in sources for found in literals.findall(path.read_text())}


def test_every_variable_is_on_the_page_and_no_other(repository, read_source):
    page = read_source("reference/configuration.md")
    table = page[page.index("| variable |") : page.index("The two switches")]
    assert set(VARIABLE.findall(table)) == variables_in_code(repository)


def test_every_field_of_the_trust_policy_is_on_the_page(read_source):
    from volumehost.loader.trust import TrustPolicy

    page = read_source("reference/configuration.md")
    table = page[page.index("| field |") : page.index("## Shell completion")]
    shown = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert shown == list(TrustPolicy._fields)


def test_every_key_of_the_file_is_on_the_page_with_its_default(read_source):
    from volumehost.hosts import config
    from volumehost.spec import VolumeConfig

    page = read_source("reference/configuration.md")
    table = page[page.index("| key |") : page.index("The plugin gets them")]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", table, re.MULTILINE))
    assert set(rows) == set(config._KNOWN)
    defaults = VolumeConfig()
    assert rows["provisioning_enabled"] == f"`{str(defaults.provisioning_enabled).lower()}`"
    assert rows["recycler_minimum_timeout"] == str(defaults.recycler_minimum_timeout)
    assert rows["recycler_timeout_increment"] == str(defaults.recycler_timeout_increment)


def test_the_file_on_the_page_is_read(read_source, tmp_path):
    from page_session import blocks

    from volumehost.hosts.config import HostConfig

    (block,) = [b for b in blocks(read_source("reference/configuration.md")) if b.file == "config.toml"]
    (tmp_path / "config.toml").write_text(block.text)
    told = HostConfig.for_root_dir(str(tmp_path), {}).volume_config("kubernetes.io/host-path")
    assert told.provisioning_enabled
    assert told.other_attributes == {"base_dir": "/srv/volumes"}


def test_every_attribute_of_the_plugins_is_on_the_page(repository, read_source):
    """Constants are looked up, so that a renamed key is noticed."""
    from volumehost_csi.settings import Settings

    page = read_source("reference/configuration.md")
    table = page[page.index("| plugin | attribute |") : page.index("## As a library")]
    shown = set(re.findall(r"^\| `[\w./-]+` \| `(\w+)` \|", table, re.MULTILINE))
    read = {field.name for field in fields(Settings)}
    for directory in ("plugins/hostpath/src", "plugins/emptydir/src", "plugins/projected/src"):
        for path in (repository / directory).rglob("*.py"):
            text = path.read_text()
            constants = dict(re.findall(r"^(\w+) = \"(\w+)\"", text, re.MULTILINE))
            for key in re.findall(r"other_attributes\.get\(([\w\"]+)", text):
                read.add(key.strip('"') if key[0] == '"' else constants[key])
    assert shown == read


def test_the_defaults_of_the_csi_plugin_are_those_of_the_code(read_source):
    from volumehost_csi.settings import Settings

    page = read_source("reference/configuration.md")
    rows = dict(re.findall(r"^\| `kubernetes.io/csi` \| `(\w+)` \|.*\| (\d+) \|$", page, re.MULTILINE))
    assert {name: float(value) for name, value in rows.items()} == {f.name: f.default for f in fields(Settings)}
