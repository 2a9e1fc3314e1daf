"""Reading RECORD, and checking files against its hashes."""

from __future__ import annotations

import base64
import hashlib

import pytest

from volumehost.loader.installed import InstalledDistribution
from volumehost.loader.record import first_changed_file, first_missing_file, read_record
from volumehost.loader.scan import group_marker, read_entry

GROUP = "volumehost.plugins"
SOURCE = "class X: pass\n"


def digest(text, name="sha256"):
    value = hashlib.new(name, text.encode()).digest()
    return f"{name}={base64.urlsafe_b64encode(value).rstrip(b'=').decode()}"


@pytest.fixture
def installed(site):
    info = site.add("acme", "1.0", {"x": "acme:X"}, {"acme.py": SOURCE})

    def read(record=None):
        if record is not None:
            (info / "RECORD").write_text(record)
        return InstalledDistribution.from_scan(read_entry(site.path, info.name, GROUP, group_marker(GROUP)))

    read.info = info
    return read


def test_rows_of_a_record(installed):
    rows = read_record(installed('acme.py,sha256=abc,14\n"odd,name.py",,\nacme-1.0.dist-info/RECORD,,\nbroken\n'))
    assert [(row.path, row.digest, row.size) for row in rows] == [
        ("acme.py", "sha256=abc", 14),
        ("odd,name.py", "", None),
        ("acme-1.0.dist-info/RECORD", "", None),
    ]
    assert read_record(installed("")) == []


def test_files_that_are_missing_or_of_another_size(installed, site):
    assert first_missing_file(installed(f"acme.py,,{len(SOURCE)}\n")) == ""
    assert first_missing_file(installed("acme.py,,1\n")) == "acme.py"
    assert first_missing_file(installed("gone.py,,1\n")) == "gone.py"
    assert first_missing_file(installed("gone.py,,\n../../bin/x,,9\n/abs,,9\nbad\0name.py,,1\n")) == "bad\0name.py"


def test_files_that_are_what_was_installed(installed):
    assert first_changed_file(installed(f"acme.py,{digest(SOURCE)},{len(SOURCE)}\n")) == ""
    assert first_changed_file(installed(f"acme.py,{digest(SOURCE, 'sha512')},\n")) == ""


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (f"acme.py,{digest('other')},\n", "acme.py is not the file"),
        (f"gone.py,{digest(SOURCE)},\n", "gone.py cannot be checked"),
        ("acme.py,md5=abc,\n", "not a safe one"),
        ("acme.py,,14\n", "lists no hashes"),
        ("", "lists no hashes"),
    ],
)
def test_files_that_are_not_what_was_installed(installed, record, reason):
    assert reason in first_changed_file(installed(record))


def test_an_editable_install_cannot_be_verified(installed):
    (installed.info / "direct_url.json").write_text(
        '{"url": "file:///src/acme%20volumes", "dir_info": {"editable": true}}'
    )
    distribution = installed(f"acme.py,{digest(SOURCE)},\n")
    assert distribution.editable_directory() == "/src/acme volumes"
    assert "editable" in first_changed_file(distribution)


@pytest.mark.parametrize("text", ["", "{", '{"editable": 1}', '{"dir_info": {"editable": true}}', "[]", '"editable"'])
def test_what_does_not_say_where_is_not_editable(installed, text):
    (installed.info / "direct_url.json").write_text(text)
    assert installed().editable_directory() == ""


def test_verification_before_import_refuses_a_changed_file(importable, manager, plugin_source):
    from volumehost.errors import PluginDeniedError
    from volumehost.loader.prober import EntryPointProber
    from volumehost.loader.trust import TrustPolicy

    source = plugin_source("example.com/v")
    files = {"acme_good.py": source, "acme_bad.py": "raise AssertionError('imported')\n"}
    good = importable.add("acme-good", "1.0", {"x": "acme_good:Plugin"}, {"acme_good.py": source})
    bad = importable.add("acme-bad", "1.0", {"x": "acme_bad:Plugin"}, {"acme_bad.py": files["acme_bad.py"]})
    (good / "RECORD").write_text(f"acme_good.py,{digest(source)},{len(source)}\n")
    (bad / "RECORD").write_text(f"acme_bad.py,{digest(source)},{len(files['acme_bad.py'])}\n")
    made = manager(trust=TrustPolicy(verify_records=True), prober=EntryPointProber(path=[importable.path]))
    assert made.find_plugin_by_name("example.com/v")
    (error,) = made.errors()
    assert isinstance(error, PluginDeniedError)
    assert "acme_bad.py is not the file that was installed" in error.reason
    assert "pip install --force-reinstall acme-bad" in error.hint
