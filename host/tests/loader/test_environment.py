"""The watch over sys.path: what it notices, and what it costs (BR-01, BR-14)."""

from __future__ import annotations

import os
import sys

import pytest

from volumehost.loader.environment import Environment

GROUP = "volumehost.plugins"


def age(*paths, seconds=3600):
    """Make modification times old; the change time stays what it is."""
    for path in paths:
        info = os.stat(path)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns - seconds * 10**9))


def settle(environment, clock):
    """Scan until every directory counts as unchanged."""
    environment.scan()
    clock.advance(5)
    environment.scan()
    assert not environment.changed()


def plugins(environment):
    return {name: dict(each.entry_points) for name, each in environment.scan().items() if each.entry_points}


@pytest.fixture
def environment(site, clock):
    return Environment(GROUP, [site.path], clock)


def test_an_install_an_upgrade_and_a_removal_are_noticed(environment, site, clock):
    settle(environment, clock)
    info = site.add("acme", "1.0", {"x": "acme:X"})
    assert environment.changed()
    assert plugins(environment) == {"acme": {"x": "acme:X"}}
    settle(environment, clock)
    site.remove(info)
    site.add("acme", "2.0", {"y": "acme:Y"})
    assert environment.changed()
    assert plugins(environment) == {"acme": {"y": "acme:Y"}}


def test_br01_a_modification_time_that_is_set_back_hides_nothing(environment, site, clock):
    before = os.stat(site.path)
    settle(environment, clock)
    site.add("acme", "1.0", {"x": "acme:X"})
    os.utime(site.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(site.path).st_mtime_ns == before.st_mtime_ns
    assert environment.changed()
    assert plugins(environment) == {"acme": {"x": "acme:X"}}


def test_br01_two_changes_in_one_tick_are_both_seen(environment, site, clock, monkeypatch):
    """The second change leaves every time as it was: simulated by a stat that stands still."""
    settle(environment, clock)
    site.add("first", "1.0", {"x": "x:X"})
    frozen = os.stat(site.path)
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, *a, **k: frozen if path == site.path else real(path, *a, **k))
    assert set(plugins(environment)) == {"first"}
    site.add("second", "1.0", {"y": "y:Y"})
    assert environment.changed(), "the directory's times are too young to be trusted"
    assert set(plugins(environment)) == {"first", "second"}
    clock.advance(0.06)
    environment.scan()
    assert not environment.changed(), "now a tick has passed since they were first seen"


def test_a_filesystem_that_keeps_whole_seconds_is_trusted_later(environment, site, clock, monkeypatch):
    settle(environment, clock)
    site.add("first", "1.0", {"x": "x:X"})
    real = os.stat

    class Coarse:
        def __init__(self, info):
            self.st_mtime_ns = info.st_mtime_ns // 10**9 * 10**9
            self.st_ctime_ns = info.st_ctime_ns // 10**9 * 10**9
            self.st_ino = info.st_ino

    monkeypatch.setattr(
        os, "stat", lambda path, *a, **k: Coarse(real(path)) if path == site.path else real(path, *a, **k)
    )
    environment.scan()
    clock.advance(1.9)
    environment.scan()
    assert environment.changed()
    clock.advance(0.2)
    environment.scan()
    assert not environment.changed()


def test_a_directory_that_appears_and_one_that_is_replaced(clock, tmp_path, make_site):
    missing = tmp_path / "later"
    environment = Environment(GROUP, [str(missing)], clock)
    settle(environment, clock)
    site = make_site("later")
    site.add("acme", "1.0", {"x": "acme:X"})
    assert environment.changed()
    assert set(plugins(environment)) == {"acme"}
    settle(environment, clock)
    os.rename(missing, tmp_path / "moved")
    make_site("later").add("other", "1.0", {"x": "other:X"})
    assert environment.changed()
    assert set(plugins(environment)) == {"other"}


def test_another_entry_of_sys_path_is_noticed(clock, site):
    environment = Environment(GROUP, clock=clock)
    environment.scan()
    clock.advance(5)
    environment.scan()
    site.add("acme-here", "1.0", {"x": "acme:X"})
    sys.path.append(site.path)
    try:
        assert environment.changed()
        assert "acme-here" in plugins(environment)
    finally:
        sys.path.remove(site.path)
    assert environment.changed()
    assert "acme-here" not in plugins(environment)


def test_two_versions_side_by_side_the_one_written_last_counts(environment, site):
    old = site.add("acme", "1.0", {"x": "acme:X"})
    new = site.add("acme", "2.0", {"y": "acme:Y"})
    age(old)
    assert plugins(environment) == {"acme": {"y": "acme:Y"}}
    age(new, seconds=7200)
    environment = Environment(GROUP, [site.path])
    assert plugins(environment) == {"acme": {"x": "acme:X"}}


def test_metadata_that_is_still_being_written_is_watched(environment, site, clock):
    info = site.add("acme", "1.0", record=False)
    settle(environment, clock)
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nx = acme:X\n")
    assert environment.changed(), "writing it touched the metadata's own directory only"
    assert plugins(environment) == {"acme": {"x": "acme:X"}}
    (info / "RECORD").write_text("")
    environment.scan()
    clock.advance(5)
    environment.scan()
    (info / "INSTALLER").write_text("pip\n")
    assert not environment.changed(), "finished: nothing more to watch"


_audit = []
_recording = []


def _hook(event, arguments):
    if _recording and event in ("open", "os.listdir", "os.scandir"):
        _audit.append((event, arguments[0]))


def file_reads(function):
    """What a call opens and lists."""
    if not getattr(sys, "_volumehost_audit", False):
        sys.addaudithook(_hook)
        sys._volumehost_audit = True
    _audit.clear()
    _recording.append(True)
    try:
        function()
    finally:
        _recording.pop()
    return list(_audit)


def test_the_recorder_of_reads_works(site):
    assert ("os.listdir", site.path) in file_reads(lambda: os.listdir(site.path))


@pytest.mark.parametrize("count", [5, 500])
def test_br14_an_unchanged_environment_is_neither_listed_nor_read(site, clock, count):
    for number in range(count):
        site.add(f"dist-{number}", "1.0", {"x": "x:X"} if number == 3 else None)
    environment = Environment(GROUP, [site.path], clock)
    settle(environment, clock)
    calls = []
    real = os.stat
    try:
        os.stat = lambda path, *a, **k: calls.append(path) or real(path, *a, **k)
        assert file_reads(environment.changed) == []
    finally:
        os.stat = real
    assert calls == [site.path], "one stat per path entry, however many distributions"


def test_br14_a_change_re_reads_only_what_changed(site, clock):
    for number in range(50):
        site.add(f"dist-{number}", "1.0", {"x": "x:X"})
    environment = Environment(GROUP, [site.path], clock)
    settle(environment, clock)
    site.add("new", "1.0", {"y": "y:Y"})
    reads = [str(path) for event, path in file_reads(environment.scan) if event == "open"]
    assert reads == [f"{site.path}/new-1.0.dist-info/entry_points.txt"]
    assert len(plugins(environment)) == 51


def test_a_null_byte_in_the_path_is_passed_over(clock, site):
    site.add("acme", "1.0", {"x": "acme:X"})
    environment = Environment(GROUP, ["a\0b", site.path], clock)
    assert set(plugins(environment)) == {"acme"}
    settle(environment, clock)


def test_looking_again_at_what_is_too_young_to_be_trusted_is_no_change(environment, site, clock):
    site.add("acme", "1.0", {"x": "acme:X"})
    environment.scan()
    generation = environment.generation
    for _ in range(3):
        assert environment.changed()
        environment.scan()
    assert environment.generation == generation
    (site.directory / "module_of_no_distribution.py").write_text("")
    environment.scan()
    assert environment.generation == generation + 1
    (site.directory / "acme-1.0.dist-info" / "entry_points.txt").unlink()
    (site.directory / "acme-1.0.dist-info" / "entry_points.txt").write_text(f"[{GROUP}]\ny = acme:Y\n")
    environment.scan()
    assert environment.generation == generation + 2
