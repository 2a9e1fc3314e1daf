"""A deprecated hook or argument warns once, and names plugin and distribution."""

from __future__ import annotations

import warnings

import pytest

from volumehost import hookimpl
from volumehost.errors import PluginInitError
from volumehost.hookspecs import HOOK_CLASSES, hookspec


class FutureHooks:
    """Hooks of a later host: one is on its way out, and one argument of another."""

    @hookspec(firstresult=True, warn_on_impl=DeprecationWarning("the hook old_hook goes away in 2.0"))
    def old_hook(self, spec):
        """Going."""

    @hookspec(
        firstresult=True,
        warn_on_impl_args={"mode": DeprecationWarning("the argument mode of kept_hook goes away in 2.0")},
    )
    def kept_hook(self, spec, mode):
        """Staying, without ``mode``."""


CLASSES = (*HOOK_CLASSES, FutureHooks)


@pytest.fixture
def load(manager, base):
    def load(**hooks):
        kind = type("Plugin", (base,), {name: hookimpl(function) for name, function in hooks.items()})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = manager(kind(), hook_classes=CLASSES)
            for _ in range(3):
                made.find_plugin_by_name("example.com/p")
        assert made.init_errors == []
        return made, [warning for warning in caught if issubclass(warning.category, DeprecationWarning)]

    return load


def test_a_deprecated_hook_warns_once_and_names_the_plugin(load):
    def old_hook(self, spec):
        """Implemented."""

    manager, (warning,) = load(old_hook=old_hook)
    text = str(warning.message)
    assert "old_hook goes away" in text
    assert "example.com/p" in text
    assert "the embedding program" in text
    assert warning.filename == __file__
    assert warning.lineno == old_hook.__code__.co_firstlineno
    (status,) = manager.plugins()
    assert any("old_hook goes away" in note for note in status.notes)


def test_a_deprecated_argument_warns_only_those_that_take_it(load):
    _, caught = load(kept_hook=lambda self, spec: None)
    assert caught == []
    _, (warning,) = load(kept_hook=lambda self, spec, mode: None)
    assert "the argument mode" in str(warning.message)


def test_nobody_is_warned_of_what_they_do_not_use(load):
    assert load()[1] == []


def test_the_distribution_is_named_for_an_installed_plugin(importable, manager, plugin_source):
    from volumehost.loader.prober import EntryPointProber

    source = plugin_source("example.com/old") + "    @hookimpl\n    def old_hook(self, spec):\n        pass\n"
    importable.add("acme-old", "3.1", {"old": "acme_old:Plugin"}, {"acme_old.py": source})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        manager(prober=EntryPointProber(path=[importable.path]), hook_classes=CLASSES)
    (warning,) = [each for each in caught if issubclass(each.category, DeprecationWarning)]
    assert "example.com/old of acme-old 3.1 (entry point old)" in str(warning.message)
    assert warning.filename.endswith("acme_old.py")


def test_who_turns_warnings_into_errors_gets_an_error_for_that_plugin_alone(manager, base):
    class Old(base):
        @hookimpl
        def old_hook(self, spec):
            """Implemented."""

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = manager(Old("example.com/old"), base("example.com/good", "csi"), hook_classes=CLASSES)
    (error,) = made.init_errors
    assert isinstance(error, PluginInitError)
    assert "old_hook goes away" in error.reason
    assert made.find_plugin_by_name("example.com/good")
