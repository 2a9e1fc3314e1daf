"""What people are shown of each plugin: PluginStatus in every state."""

from __future__ import annotations

import sys

import pytest

from volumehost import hookimpl
from volumehost.errors import NoPluginMatchedError
from volumehost.loader import status
from volumehost.loader.prober import EntryPointProber
from volumehost.loader.trust import TrustPolicy


@pytest.fixture
def only(manager):
    """The one status of a manager that was given these plugins."""

    def make(*plugins, **options):
        made = manager(*plugins, **options)
        (found,) = made.plugins()
        return found

    return make


def test_an_object_that_was_handed_over(only, base):
    class Plugin(base):
        @hookimpl
        def get_access_modes(self):
            return ["ReadWriteOnce"]

    found = only(Plugin())
    assert found.name == "example.com/p"
    assert (found.state, found.detail, found.error) == (status.ACTIVE, "", None)
    assert (found.distribution, found.version, found.entry_point, found.location) == ("", "", "", "")
    assert found.interfaces == ("VolumePlugin", "PersistentVolumePlugin")
    assert "get_access_modes" in found.hooks
    assert list(found.hooks) == sorted(found.hooks)


def test_an_installed_plugin_tells_where_it_comes_from(importable, only, plugin_source):
    importable.add("acme-x", "1.5", {"x": "acme_x:Plugin"}, {"acme_x.py": plugin_source("example.com/x")})
    found = only(prober=EntryPointProber(path=[importable.path]))
    assert (found.distribution, found.version, found.entry_point) == ("acme-x", "1.5", "x")
    assert (found.value, found.location) == ("acme_x:Plugin", importable.path)


def test_a_plugin_that_was_given_and_failed_is_listed(only, base):
    class Broken(base):
        @hookimpl
        def init(self, host):
            raise OSError("no device")

    found = only(Broken())
    assert (found.name, found.state) == ("example.com/p", status.FAILED)
    assert "no device" in found.detail
    assert found.error is not None


def test_br04_an_installation_that_is_not_finished_is_listed_until_it_is(importable, manager, plugin_source, spec_of):
    source = {"acme_w.py": plugin_source("example.com/w")}
    info = importable.add("acme-w", "1.0", {"w": "acme_w:Plugin"}, source, record=False)
    made = manager(prober=EntryPointProber(path=[importable.path]))
    (found,) = made.plugins()
    assert (found.name, found.state, found.detail) == ("acme-w", status.INSTALLING, "its RECORD is not written yet")
    assert "pip install --force-reinstall acme-w" in found.error.hint
    assert "acme_w" not in sys.modules
    with pytest.raises(NoPluginMatchedError, match=r"acme-w \(its RECORD is not written yet\)"):
        made.find_plugin_by_spec(spec_of("nfs"))
    (info / "RECORD").write_text("")
    (found,) = made.plugins()
    assert (found.name, found.state, found.error) == ("example.com/w", status.ACTIVE, None)


def test_a_plugin_whose_name_was_never_learned_is_listed_by_its_entry_point(importable, only):
    importable.add("acme-y", "1.0", {"y": "acme_y:Plugin"}, {"acme_y.py": "import gone_away\n"})
    found = only(prober=EntryPointProber(path=[importable.path]))
    assert (found.name, found.state, found.distribution) == ("y", status.FAILED, "acme-y")


def test_a_denied_plugin_is_listed_without_an_error(importable, only):
    importable.add("acme-z", "1.0", {"z": "acme_z:Plugin"}, {"acme_z.py": "raise AssertionError\n"})
    found = only(prober=EntryPointProber(path=[importable.path]), trust=TrustPolicy(deny=("acme-z",)))
    assert (found.name, found.state, found.error) == ("z", status.DENIED, None)
    assert "acme-z" in found.detail


def test_who_uses_it_and_what_waits(manager, base, prober):
    made = manager(prober=prober)
    prober.add(base())
    made.find_plugin_by_name("example.com/p").hold("pod/volume")
    (found,) = made.plugins()
    assert (found.state, found.users) == (status.ACTIVE, ("pod/volume",))
    prober.add(base())
    (found,) = made.plugins()
    assert found.state == status.NEWER_INSTALLED
    assert "last volume" in found.detail
    prober.remove("example.com/p")
    (found,) = made.plugins()
    assert found.state == status.REMOVED_IN_USE
    assert found.users == ("pod/volume",)


def test_they_are_sorted_by_name(manager, base):
    made = manager(base("example.com/z"), base("example.com/a", "csi"))
    assert [each.name for each in made.plugins()] == ["example.com/a", "example.com/z"]


def test_errors_are_those_of_the_statuses(manager, base):
    class Broken(base):
        @hookimpl
        def init(self, host):
            raise OSError("no device")

    made = manager(Broken("example.com/b"), base())
    assert made.errors() == made.init_errors
    assert len(made.errors()) == 1


def test_every_error_says_what_was_done_to_what_and_for_installed_ones_what_to_do(importable, manager, plugin_source):
    importable.add("acme-e", "1.0", {"e": "acme_e:Plugin"}, {"acme_e.py": "import gone_away\n"})
    importable.add("acme-c", "1.0", {"c": "acme_c:Plugin"}, {"acme_c.py": "class Plugin: pass\n"})
    importable.add("acme-k", "1.0", {"k": "acme_k:Plugin"}, {"acme_k.py": plugin_source("kubernetes.io/k")})
    for error in manager(prober=EntryPointProber(path=[importable.path])).errors():
        assert error.action
        assert error.distribution in error.action
        assert error.reason
        if error.distribution != "acme-k":
            assert error.hint
