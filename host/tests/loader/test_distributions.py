"""Distributions that come, change and go: what is loaded, stays, is tried again (BR-03, -04, -05, -09, -12)."""

from __future__ import annotations

import shutil
import sys

import pytest

from volumehost.errors import DuplicatePluginError, PluginImportError, PluginInitError, PluginNotFoundError
from volumehost.loader.prober import EntryPointProber


class World:
    """A site directory with plugins, and a manager that watches it."""

    def __init__(self, site, manager, clock, plugin_source):
        self.site, self.clock, self.source = site, clock, plugin_source
        self.infos = {}
        self.make = manager
        self.manager = None

    def install(self, name, version="1.0", plugins=None, **more):
        """Install, or replace; ``plugins`` maps entry points to the code of their modules."""
        self.uninstall(name)
        package = name.replace("-", "_")
        plugins = {"main": self.source(f"example.com/{name}", version)} if plugins is None else plugins
        files = {f"{package}/__init__.py": "", **more.pop("files", {})}
        files.update({f"{package}/{point}.py": code for point, code in plugins.items()})
        points = {point: f"{package}.{point}:Plugin" for point in plugins}
        self.infos[name] = (self.site.add(name, version, points, files, **more), package)

    def uninstall(self, name):
        if name in self.infos:
            info, package = self.infos.pop(name)
            self.site.remove(info)
            shutil.rmtree(self.site.directory / package)

    def start(self, **options):
        options.setdefault("clock", self.clock)
        self.manager = self.make(prober=EntryPointProber(path=[self.site.path], clock=self.clock), **options)
        return self.manager

    def find(self, name):
        self.clock.advance(0.02)  # a look-up that finds its plugin trusts a probe for a hundredth of a second
        return self.manager.find_plugin_by_name(f"example.com/{name}")

    def states(self):
        return {status.name.removeprefix("example.com/"): status.state for status in self.manager.plugins()}

    def error(self):
        (error,) = self.manager.errors()
        return error


@pytest.fixture
def world(importable, manager, clock, plugin_source):
    return World(importable, manager, clock, plugin_source)


BROKEN = {
    "missing": ("import a_missing_dependency\n", "missing module 'a_missing_dependency'"),
    "exits": ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    "syntax": ("def broken(:\n", "SyntaxError"),
    "attribute": ("x = 1\n", "no attribute 'Plugin'"),
    "interrupt": ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_br03_one_that_fails_at_import_costs_nobody_else_anything(world, kind):
    code, reason = BROKEN[kind]
    world.install("good-one")
    world.install("broken", "1.2", {"main": code})
    world.install("good-two")
    world.start()
    assert world.states() == {"good-one": "active", "good-two": "active", "main": "failed"}
    error = world.error()
    assert isinstance(error, PluginImportError)
    assert (error.plugin, error.distribution, error.version) == ("main", "broken", "1.2")
    assert reason in error.reason
    assert "entry point main" in str(error)
    assert "pip install -U broken" in error.hint
    assert "VOLUMEHOST_PLUGINS_DISABLE=broken" in error.hint


def test_br04_a_missing_module_of_the_plugin_is_not_taken_for_a_missing_plugin(world):
    world.install("acme", plugins={"main": "import acme.gone\n"})
    world.start()
    assert "missing module 'acme.gone'" in world.error().reason
    assert world.states() == {"main": "failed"}


@pytest.mark.parametrize("value", ["", ":Plugin", "acme.main:", "acme.main:Plugin.nested", "no such module:x"])
def test_an_entry_point_that_names_nothing(world, value):
    world.site.add("acme", "1.0", {"odd": value}, {"acme/__init__.py": "", "acme/main.py": "class Plugin: pass\n"})
    world.install("good")
    world.start()
    assert world.states() == {"odd": "failed", "good": "active"}


def test_an_entry_point_that_names_a_module_which_the_distribution_does_not_bring(world):
    world.site.add("acme", "1.0", {"main": "acme_elsewhere:Plugin"})
    world.start()
    assert "'acme_elsewhere', which it does not bring" in world.error().reason


def test_br05_a_broken_one_does_not_swallow_the_event_of_a_good_one_and_is_retried(world, plugin_source):
    world.start()
    world.install("broken", plugins={"main": "import a_missing_dependency\n"})
    world.install("good")
    assert world.find("good").origin.version == "1.0"
    assert world.states() == {"good": "active", "main": "failed"}
    (path,) = world.site.directory.glob("broken/main.py")
    path.write_text(plugin_source("example.com/broken"))  # mended in place: no directory on the path changes
    world.clock.advance(10)
    assert world.states() == {"good": "active", "broken": "active"}


def test_br05_what_is_mended_elsewhere_is_retried_at_once(world, plugin_source):
    """The missing dependency is installed: a change of the environment that is no plugin."""
    world.install("acme", plugins={"main": "import late_dependency\n" + plugin_source("example.com/acme")})
    world.start()
    assert world.states() == {"main": "failed"}
    world.site.add("late-dependency", "1.0", files={"late_dependency.py": "x = 1\n"})
    assert world.states() == {"acme": "active"}


def test_br05_retries_become_rarer(world):
    world.install("acme", plugins={"main": "import builtins\nbuiltins.tries += 1\nraise OSError\n"})
    import builtins

    builtins.tries = 0
    try:
        world.start()
        world.clock.advance(60)
        world.states()
        tries = builtins.tries
        for _ in range(4000):  # a thousand seconds
            world.clock.advance(0.25)
            world.states()
        assert 8 <= builtins.tries - tries <= 20
    finally:
        del builtins.tries


def test_br05_a_failed_try_leaves_no_half_of_its_modules_behind(world, plugin_source):
    world.install("acme", plugins={"main": "from acme.helper import needed\n"}, files={"acme/helper.py": ""})
    world.start()
    assert world.states() == {"main": "failed"}
    assert not [name for name in sys.modules if name.partition(".")[0] == "acme"]
    (world.site.directory / "acme/helper.py").write_text("needed = 1 + 1\n")
    main = "from acme.helper import needed\n" + plugin_source("example.com/acme")
    (world.site.directory / "acme/main.py").write_text(main)
    world.clock.advance(10)
    assert world.states() == {"acme": "active"}


def test_br05_an_init_that_fails_is_retried_with_backoff(world, tmp_path):
    device = tmp_path / "device"
    needs_device = world.source("example.com/acme") + (
        f"    @hookimpl\n    def init(self, host):\n        open({str(device)!r}).close()\n"
    )
    world.install("acme", plugins={"main": needs_device})
    world.start()
    assert isinstance(world.error(), PluginInitError)
    world.clock.advance(0.4)
    device.write_text("")
    assert world.states() == {"acme": "failed"}, "not due yet"
    world.clock.advance(10)
    assert world.states() == {"acme": "active"}


def test_br08_nothing_is_loaded_twice(world, make_site, clock, manager, plugin_source):
    second = make_site("second")
    second.add("acme", "0.9", {"vh_old": "acme.gone:Plugin"})
    world.install("acme")
    world.manager = manager(prober=EntryPointProber(path=[world.site.path, second.path], clock=clock), clock=clock)
    assert world.states() == {"acme": "active"}
    assert world.manager.errors() == []


def conflict(world):
    for name in ("b-disk", "a-disk"):
        world.install(name, plugins={"main": world.source("example.com/disk", source=name)})


def test_br09_of_two_with_one_name_the_first_by_distribution_is_loaded_each_time(world):
    conflict(world)
    for _ in range(3):
        world.start()
        assert world.find("disk").origin.distribution == "a-disk"
        statuses = {status.distribution: status for status in world.manager.plugins()}
        assert statuses["a-disk"].state == "active"
        assert "b-disk 1.0" in statuses["a-disk"].detail
        assert statuses["b-disk"].state == "conflict"
        error = statuses["b-disk"].error
        assert isinstance(error, DuplicatePluginError)
        assert "a-disk 1.0" in error.reason
        assert "b-disk 1.0" in error.reason


def test_br09_the_one_that_came_first_stays_whatever_its_name(world):
    world.install("b-disk", plugins={"main": world.source("example.com/disk")})
    world.start()
    world.install("a-disk", plugins={"main": world.source("example.com/disk")})
    assert world.manager.errors()
    assert world.find("disk").origin.distribution == "b-disk"


def test_br09_when_the_winner_is_uninstalled_the_other_takes_over_at_the_next_probe(world):
    conflict(world)
    world.start()
    world.uninstall("a-disk")
    assert world.find("disk").origin.distribution == "b-disk"
    assert world.manager.errors() == []


def test_br09_mounted_volumes_stay_with_the_plugin_that_mounted_them(world):
    conflict(world)
    world.start()
    plugin = world.find("disk")
    plugin.hold("volume")
    world.uninstall("a-disk")
    assert world.find("disk") is plugin
    assert {status.distribution: status.state for status in world.manager.plugins()} == {
        "a-disk": "removed, still in use",
        "b-disk": "conflict",
    }
    plugin.release("volume")
    assert world.find("disk").origin.distribution == "b-disk"


def test_br09_a_name_given_up_by_an_upgrade_goes_to_the_other(world):
    conflict(world)
    world.start()
    world.install("a-disk", "2.0", {"main": world.source("example.com/renamed")})
    assert world.states() == {"disk": "active", "renamed": "active"}
    assert world.find("disk").origin.distribution == "b-disk"


def test_an_upgrade_that_is_broken_leaves_the_loaded_version_in_place(world):
    world.install("acme")
    world.start()
    first = world.find("acme")
    world.install("acme", "2.0", {"main": "from . import gone\n"})
    (status,) = world.manager.plugins()
    assert (status.state, status.version, status.installed_version) == ("newer version installed", "1.0", "2.0")
    assert "ImportError" in status.detail
    assert world.find("acme") is first
    first.hold("volume")
    first.release("volume")
    assert sys.modules["acme.main"].Plugin.version == "1.0", "its modules are back in place"
    world.install("acme", "3.0")
    assert world.find("acme").plugin.version == "3.0"
    assert world.manager.errors() == []


def test_an_upgrade_whose_init_fails_leaves_the_loaded_version_in_place(world):
    world.install("acme")
    world.start()
    refusing = world.source("example.com/acme", "2.0") + (
        "    @hookimpl\n    def init(self, host):\n        raise OSError('busy')\n"
    )
    world.install("acme", "2.0", {"main": refusing})
    assert isinstance(world.error(), PluginInitError)
    assert world.find("acme").plugin.version == "1.0"


def test_an_upgrade_that_is_not_compatible_leaves_the_loaded_version_in_place(world):
    world.install("acme")
    world.start()
    world.install("acme", "2.0", metadata="Requires-Dist: volumehost>=99")
    assert "it requires volumehost >=99" in world.error().reason
    assert world.find("acme").plugin.version == "1.0"


def test_the_plugins_of_a_distribution_are_updated_together(world):
    both = {name: world.source(f"example.com/{name}", source=name) for name in ("disk", "tape")}
    world.install("acme", "1.0", both)
    world.start()
    disk, tape = world.find("disk"), world.find("tape")
    disk.hold("volume")
    world.install("acme", "2.0", both)
    assert world.states() == {"disk": "newer version installed", "tape": "newer version installed"}
    assert world.find("tape") is tape
    disk.release("volume")
    assert world.states() == {"disk": "active", "tape": "active"}
    assert world.find("disk").origin.version == world.find("tape").origin.version == "2.0"


def test_an_upgrade_may_add_and_drop_plugins(world):
    one = {"disk": world.source("example.com/disk")}
    other = {"tape": world.source("example.com/tape")}
    world.install("acme", "1.0", one)
    world.start()
    assert world.states() == {"disk": "active"}
    world.install("acme", "2.0", {**one, **other})
    assert world.states() == {"disk": "active", "tape": "active"}
    world.install("acme", "3.0", other)
    assert world.states() == {"tape": "active"}
    world.install("acme", "4.0", {**other, "new": "import missing_one\n"})
    assert world.states() == {"tape": "active", "new": "failed"}, "a new one may fail alone"
    world.install("acme", "5.0", {"tape": "import missing_one\n", **one})
    assert world.states() == {"tape": "newer version installed", "new": "failed"}, "one that was there may not"


def test_one_of_two_plugins_that_fails_is_retried_while_the_other_works(world, plugin_source):
    world.install("acme", "1.0", {"disk": world.source("example.com/disk"), "tape": "import missing_one\n"})
    world.start()
    disk = world.find("disk")
    assert world.states() == {"disk": "active", "tape": "failed"}
    (world.site.directory / "acme/tape.py").write_text(plugin_source("example.com/tape"))
    world.clock.advance(10)
    assert world.states() == {"disk": "active", "tape": "active"}
    assert world.find("disk") is disk


def test_an_extension_module_needs_a_restart(world, importable):
    world.install("acme")
    world.start()
    suffix = ".so"
    fast = type(sys)("acme.fast")
    fast.__file__ = f"{importable.path}/acme/fast{suffix}"
    sys.modules["acme.fast"] = fast
    record = world.infos["acme"][0] / "RECORD"
    assert record.exists()
    # The loaded version was found out when it was loaded: so install one that has the extension from the start.
    world.uninstall("acme")
    assert world.states() == {"acme": "removed"}
    world.clock.advance(2)
    assert world.states() == {}
    world.install("acme", "1.1", files={f"acme/fast{suffix}": ""})
    assert world.find("acme").origin.version == "1.1"
    sys.modules["acme.fast"] = fast
    try:
        world.install("acme", "2.0")
        (status,) = world.manager.plugins()
        assert status.state == "newer version installed"
        assert "2.0 is installed, but its extension module acme.fast cannot be loaded twice" in status.detail
        assert status.error.hint == "restart the host"
        assert world.find("acme").plugin.version == "1.1"
    finally:
        sys.modules.pop("acme.fast", None)


def test_a_plugin_that_is_removed_frees_its_modules(world):
    world.install("acme")
    world.start()
    assert world.find("acme")
    assert "acme.main" in sys.modules
    world.uninstall("acme")
    with pytest.raises(PluginNotFoundError):
        world.find("acme")
    assert "acme.main" in sys.modules, "not before it has been gone for a while (BR-11)"
    world.clock.advance(1.5)
    assert world.states() == {}
    assert not [name for name in sys.modules if name.partition(".")[0] == "acme"]


def test_listing_alone_neither_initialises_nor_imports_ahead(world):
    refusing = world.source("example.com/acme") + "    @hookimpl\n    def init(self, host):\n        raise OSError\n"
    world.install("acme", plugins={"main": refusing}, files={"acme/late.py": "raise AssertionError\n"})
    world.start(inspect_only=True)
    assert world.states() == {"acme": "active"}
    assert "acme.late" not in sys.modules


def test_the_rest_of_a_plugin_is_imported_with_its_first_volume_and_works_when_the_files_are_gone(world):
    world.install("acme", files={"acme/late.py": "found = True\n"})
    world.start()
    plugin = world.find("acme")
    assert "acme.late" not in sys.modules, "a plugin that is not used costs no more than itself"
    plugin.hold("a volume")
    world.uninstall("acme")
    from acme.late import found

    assert found


def test_with_a_plugin_that_joins_one_in_use_the_rest_is_imported_at_once(world):
    broken = "raise OSError\n"
    world.install(
        "acme", plugins={"main": world.source("example.com/acme"), "other": broken}, files={"acme/late.py": broken}
    )
    world.start()
    world.find("acme").hold("a volume")
    assert "acme.late" not in sys.modules
    (world.site.directory / "acme/other.py").write_text(world.source("example.com/other"))
    (world.site.directory / "acme/late.py").write_text("")
    world.clock.advance(3600)
    assert world.find("other")
    assert "acme.late" in sys.modules


def test_a_plugin_that_hangs_while_it_is_imported_is_given_up_and_not_retried_meanwhile(world, eventually):
    import builtins
    import threading

    builtins.go_on = threading.Event()
    try:
        world.install("acme", plugins={"main": "import builtins\nbuiltins.go_on.wait(30)\nraise OSError\n"})
        world.install("good")
        world.start(load_timeout=1.0)
        assert world.states() == {"good": "active", "main": "failed"}
        assert "did not come back" in world.error().reason
        world.clock.advance(3600)
        error = world.error()
        world.clock.advance(3600)
        assert world.error() is error, "the first try is still stuck"
        builtins.go_on.set()
        eventually(lambda: not any(thread.name == "load main" for thread in threading.enumerate()))
        world.clock.advance(3600)
        assert "OSError" in world.error().reason
    finally:
        builtins.go_on.set()
        del builtins.go_on


def test_what_goes_wrong_unexpectedly_with_one_distribution_stays_with_it(world, caplog):
    """A RECORD that cannot be opened as the file that it should be: a directory."""
    world.install("acme")
    world.install("good")
    info, _ = world.infos["acme"]
    (info / "RECORD").unlink()
    (info / "RECORD").mkdir()
    world.start()
    assert world.find("good")
    assert world.states()["good"] == "active"
    (info / "RECORD").rmdir()


def test_a_plugin_that_was_loaded_from_a_zip(tmp_path, manager, plugin_source):
    import zipfile

    archive = tmp_path / "plugins.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("acme_zip-1.0.dist-info/entry_points.txt", "[volumehost.plugins]\nx = acme_zip:Plugin\n")
        file.writestr("acme_zip-1.0.dist-info/METADATA", "Name: acme-zip\nVersion: 1.0\n")
        file.writestr("acme_zip.py", plugin_source("example.com/zip"))
    sys.path.append(str(archive))
    try:
        made = manager(prober=EntryPointProber(path=[str(archive)]))
        assert made.find_plugin_by_name("example.com/zip").origin.version == "1.0"
    finally:
        sys.path.remove(str(archive))
        sys.modules.pop("acme_zip", None)
