"""The prober: events for installs, updates and removals; none for what is half done (BR-01, BR-08, BR-11)."""

from __future__ import annotations

import os
import time

import pytest

from volumehost.loader.completeness import is_stash_of
from volumehost.loader.events import ProbeOperation
from volumehost.loader.prober import EntryPointProber

GROUP = "volumehost.plugins"
X = {"x": "acme:X"}


def told(prober):
    """Events as short text."""
    return [
        f"+{event.plugin_name} {event.distribution.version}"
        if event.operation is ProbeOperation.ADD_OR_UPDATE
        else f"-{event.plugin_name}"
        for event in prober.probe().events
    ]


@pytest.fixture
def probing(site, clock):
    made = EntryPointProber(path=[site.path], clock=clock)
    made.init()
    return made


def test_each_event_is_delivered_once(probing, site):
    assert told(probing) == []
    site.add("acme", "1.0", X)
    assert told(probing) == ["+acme 1.0"]
    assert told(probing) == []


def test_events_are_sorted_by_distribution(probing, site):
    for name in ("zeta", "alpha", "mid"):
        site.add(name, "1.0", X)
    assert told(probing) == ["+alpha 1.0", "+mid 1.0", "+zeta 1.0"]


def test_upgrade_downgrade_reinstall_and_removal(probing, site):
    info = site.add("acme", "1.0", X)
    told(probing)
    site.remove(info)
    info = site.add("acme", "2.0", X)
    assert told(probing) == ["+acme 2.0"]
    site.remove(info)
    info = site.add("acme", "1.0", X)
    assert told(probing) == ["+acme 1.0"]
    site.remove(info)
    info = site.add("acme", "1.0", X)
    assert told(probing) == ["+acme 1.0"], "installed anew, of the same version"
    site.remove(info)
    assert told(probing) == ["-acme"]


def test_a_distribution_that_no_longer_has_plugins_is_removed(probing, site):
    info = site.add("acme", "1.0", X)
    told(probing)
    site.remove(info)
    site.add("acme", "2.0")
    assert told(probing) == ["-acme"]


def test_what_an_installer_writes_later_is_not_another_installation(probing, site):
    info = site.add("acme", "1.0", X)
    told(probing)
    (info / "INSTALLER").write_text("pip\n")
    (info / "REQUESTED").write_text("")
    record = (info / "RECORD").read_text()
    (info / "RECORD.new").write_text(record + "acme/__pycache__/x.pyc,,\n")
    os.rename(info / "RECORD.new", info / "RECORD")
    os.utime(site.path)
    assert told(probing) == []


def test_br11_without_its_record_an_installation_is_not_finished(probing, site):
    info = site.add("acme", "1.0", X, record=False)
    assert told(probing) == []
    assert probing.waiting == {"acme": "its RECORD is not written yet"}
    (info / "RECORD").write_text("")
    assert told(probing) == ["+acme 1.0"]
    assert probing.waiting == {}


def test_br11_metadata_that_appears_before_its_entry_points(probing, site):
    info = site.add("acme", "1.0", record=False)
    assert told(probing) == []
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nx = acme:X\n")
    assert told(probing) == []
    (info / "RECORD").write_text("")
    assert told(probing) == ["+acme 1.0"]


def test_br11_a_listed_file_that_is_missing_or_not_whole_is_waited_for(probing, site):
    info = site.add("acme", "1.0", X, {"acme/__init__.py": "x = 1\n", "acme/late.py": "y = 2\n"})
    late = site.directory / "acme/late.py"
    late.unlink()
    assert told(probing) == []
    assert "acme/late.py" in probing.waiting["acme"]
    late.write_text("y =")
    assert told(probing) == []
    late.write_text("y = 2\n")
    assert told(probing) == ["+acme 1.0"]
    assert info.exists()


def test_br11_files_that_were_removed_later_are_not_waited_for(probing, site):
    info = site.add("acme", "1.0", X, {"acme/tests.py": ""})
    (site.directory / "acme/tests.py").unlink()
    old = time.time() - 120
    os.utime(info, (old, old))
    assert told(probing) == ["+acme 1.0"]


def test_metadata_of_an_operating_system_has_no_record_and_old_files(probing, site):
    info = site.add("acme", "1.0", X, record=False)
    (info / "WHEEL").unlink()
    old = time.time() - 3600
    os.utime(info, (old, old))
    assert told(probing) == ["+acme 1.0"]


def test_metadata_without_record_that_is_no_wheels_is_taken_after_a_moment(probing, site, clock):
    info = site.add("acme", "1.0", X, record=False)
    (info / "WHEEL").unlink()
    assert told(probing) == []
    clock.advance(2.5)
    assert told(probing) == ["+acme 1.0"]


def test_a_wheel_that_never_gets_its_record_is_taken_in_the_end(probing, site, clock):
    site.add("acme", "1.0", X, record=False)
    assert told(probing) == []
    clock.advance(590)
    assert told(probing) == []
    clock.advance(20)
    assert told(probing) == ["+acme 1.0"]


def test_an_installation_that_is_given_up_is_forgotten(probing, site):
    info = site.add("acme", "1.0", X, record=False)
    told(probing)
    site.remove(info)
    assert told(probing) == []
    assert probing.waiting == {}


def test_br11_an_upgrade_by_pip_is_no_removal(probing, site):
    """pip moves the old metadata aside, writes the new, then deletes the old."""
    info = site.add("acme_volumes", "1.0", X)
    told(probing)
    stash = site.directory / "~cme_volumes-1.0.dist-info"
    os.rename(info, stash)
    assert told(probing) == []
    assert probing.waiting == {"acme-volumes": "pip is replacing it"}
    new = site.add("acme_volumes", "2.0", X, record=False)
    assert told(probing) == []
    (new / "RECORD").write_text("")
    assert told(probing) == ["+acme-volumes 2.0"]
    site.remove(stash)
    assert told(probing) == []


def test_br11_an_upgrade_that_pip_takes_back_changes_nothing(probing, site):
    info = site.add("acme_volumes", "1.0", X)
    told(probing)
    stash = site.directory / "~cme_volumes-1.0.dist-info"
    os.rename(info, stash)
    told(probing)
    os.rename(stash, info)
    assert told(probing) == []
    assert probing.waiting == {}


def test_what_pip_left_aside_for_ever_does_not_keep_a_plugin_alive(probing, site, clock):
    info = site.add("acme_volumes", "1.0", X)
    told(probing)
    os.rename(info, site.directory / "~cme_volumes-1.0.dist-info")
    assert told(probing) == []
    clock.advance(121)
    assert told(probing) == ["-acme-volumes"]


@pytest.mark.parametrize(
    ("name", "entry", "expected"),
    [
        ("~cme-1.0.dist-info", "acme-1.0.dist-info", True),
        ("~-me-1.0.dist-info", "acme-1.0.dist-info", True),
        ("~~me-1.0.dist-info", "acme-1.0.dist-info", True),
        ("~-acme-1.0.dist-info", "acme-1.0.dist-info", True),
        ("~cme-2.0.dist-info", "acme-1.0.dist-info", False),
        ("~bme-1.0.dist-info", "acme-1.0.dist-info", False),
        ("acme-1.0.dist-info", "acme-1.0.dist-info", False),
    ],
)
def test_which_directory_pip_keeps_aside(name, entry, expected):
    assert is_stash_of(name, entry) is expected


def test_br08_an_older_copy_behind_the_first_is_neither_an_event_nor_an_error(make_site, clock):
    first, second = make_site("first"), make_site("second")
    newer = first.add("acme", "2.0", {"vh_new": "acme:Plugin"})
    second.add("acme", "1.0", {"vh_old": "acme.gone:Plugin"})
    probing = EntryPointProber(path=[first.path, second.path], clock=clock)
    probing.init()
    result = probing.probe()
    assert [event.distribution.entry_points for event in result.events] == [(("vh_new", "acme:Plugin"),)]
    assert result.errors == ()
    first.remove(newer)
    assert told(probing) == ["+acme 1.0"], "the other copy is the first now"


def test_one_broken_distribution_does_not_stop_the_others(probing, site):
    bad = site.add("bad", "1.0", X)
    (bad / "RECORD").write_bytes(b'"unclosed,quote\n\x00\xff,sha256=x,\xb2\n' + "x,,²\n".encode())
    (bad / "METADATA").write_bytes(b"\xff\xfe\x00garbage")
    empty = site.add("empty-name", "1.0", X)
    (empty / "direct_url.json").write_text('{"editable": [')
    site.add("good", "1.0", X)
    assert "+good 1.0" in told(probing)


def test_a_probe_that_did_not_come_to_its_end_reports_at_the_next(site):
    class Failing:
        """A clock that can be made to fail."""

        fail = False

        def __call__(self):
            if self.fail:
                raise OSError("interrupted")
            return 0.0

    failing = Failing()
    probing = EntryPointProber(path=[site.path], clock=failing)
    probing.init()
    site.add("acme", "1.0", X, record=False)
    failing.fail = True
    with pytest.raises(OSError, match="interrupted"):
        probing.probe()
    failing.fail = False
    old = time.time() - 3600
    os.utime(site.directory / "acme-1.0.dist-info", (old, old))
    assert told(probing) == ["+acme 1.0"]
