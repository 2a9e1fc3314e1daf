"""Making importable what appears while the process runs; caches of finders that may be broken (BR-02, BR-10)."""

from __future__ import annotations

import sys

import pytest

from volumehost.loader.import_path import ImportCaches, add_paths_of, run_pth_code


@pytest.fixture(autouse=True)
def _path_is_restored():
    path, meta = list(sys.path), list(sys.meta_path)
    yield
    sys.path[:], sys.meta_path[:] = path, meta


class Broken:
    """As the class of BR-02: invalidate_caches needs ``self``, but the class itself is the finder."""

    def find_spec(self, *args):
        return None

    def invalidate_caches(self):
        raise AssertionError("never called with self")


class Counting:
    def __init__(self):
        self.calls = 0

    def find_spec(self, *args):
        return None

    def invalidate_caches(self):
        self.calls += 1


def test_br02_a_broken_finder_is_named_once_and_the_others_are_asked(caplog):
    counting = Counting()
    Broken.find_spec = staticmethod(lambda *args: None)
    sys.meta_path[:0] = [Broken]
    sys.meta_path.append(counting)
    caches = ImportCaches()
    for _ in range(3):
        caches.invalidate()
    assert counting.calls == 3
    assert len(caplog.records) == 1
    assert "Broken" in caplog.text


def test_br02_a_probe_with_a_broken_finder_goes_on(importable, manager, plugin_source):
    from volumehost.loader.prober import EntryPointProber

    Broken.find_spec = staticmethod(lambda *args: None)
    sys.meta_path[:0] = [Broken]
    made = manager(prober=EntryPointProber(path=[importable.path]))
    assert made.plugins() == []
    importable.add("acme-br02", "1.0", {"x": "acme_br02:Plugin"}, {"acme_br02.py": plugin_source("example.com/br02")})
    assert made.find_plugin_by_name("example.com/br02").origin.version == "1.0"
    assert made.errors() == []


def test_a_module_that_was_looked_for_in_vain_is_found_after_invalidation(importable):
    with pytest.raises(ModuleNotFoundError):
        __import__("appears_later")
    finder = sys.path_importer_cache[importable.path]
    (importable.directory / "appears_later.py").write_text("x = 1\n")
    finder._path_mtime = (importable.directory).stat().st_mtime  # as if both happened in one tick
    with pytest.raises(ModuleNotFoundError):
        __import__("appears_later")
    ImportCaches().invalidate()
    assert __import__("appears_later").x == 1


def test_a_directory_that_did_not_exist_is_looked_into_after_invalidation(tmp_path):
    missing = tmp_path / "missing"
    sys.path.append(str(missing))
    with pytest.raises(ModuleNotFoundError):
        __import__("in_a_new_directory")
    missing.mkdir()
    (missing / "in_a_new_directory.py").write_text("x = 1\n")
    ImportCaches().invalidate()
    try:
        assert __import__("in_a_new_directory").x == 1
    finally:
        sys.modules.pop("in_a_new_directory", None)


def test_pth_files_add_directories_that_exist_and_only_once(tmp_path):
    site, added = tmp_path / "site", tmp_path / "added"
    for directory in (site, added, site / "relative"):
        directory.mkdir()
    (site / "a.pth").write_text(
        f"# comment\n\n{added}\nrelative\n{tmp_path / 'absent'}\nimport sys; sys.not_run = True\n{added}\n"
    )
    (site / ".hidden.pth").write_text(f"{tmp_path}\n")
    before = list(sys.path)
    assert add_paths_of(str(site), ["a.pth", ".hidden.pth", "gone.pth"]) is True
    assert sys.path == [*before, str(added), str(site / "relative")]
    assert add_paths_of(str(site), ["a.pth"]) is False
    assert not hasattr(sys, "not_run"), "code is run for the distribution that is imported, and for no other"


def test_pth_files_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.pth").write_bytes(b"\xef\xbb\xbf" + str(tmp_path).encode() + b"\r\n")
    assert add_paths_of(str(tmp_path), ["a.pth"]) is True
    assert sys.path[-1] == str(tmp_path)


def test_code_in_pth_files_is_run_line_by_line(tmp_path):
    path = tmp_path / "editable.pth"
    path.write_text("import sys; sys.path.append('/from/pth')\n/not/code\nimport\tsys\nimported = 1\n")
    run_pth_code(str(path))
    assert sys.path[-1] == "/from/pth"
