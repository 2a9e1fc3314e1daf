"""BR-18: one plugin that fails to shut down keeps no other from it."""

from __future__ import annotations

import threading

import pytest

from volumehost import hookimpl
from volumehost.errors import PluginCallError, PluginNotFoundError


@pytest.fixture
def plugins(base):
    calls = []

    class Plugin(base):
        def __init__(self, name, action=None):
            super().__init__(name, name)
            self.action = action

        @hookimpl
        def shutdown(self):
            calls.append(self.name)
            if isinstance(self.action, BaseException):
                raise self.action
            if self.action is not None:
                self.action()

    Plugin.calls = calls
    return Plugin


def test_br18_all_are_shut_down_and_the_errors_collected(manager, plugins):
    made = manager(
        plugins("example.com/a"),
        plugins("example.com/b", SystemExit(1)),
        plugins("example.com/c"),
        plugins("example.com/d", RuntimeError("channel is stuck")),
    )
    errors = made.close()
    assert plugins.calls == ["example.com/d", "example.com/c", "example.com/b", "example.com/a"]
    assert all(isinstance(error, PluginCallError) for error in errors)
    assert [error.plugin for error in errors] == ["example.com/d", "example.com/b"]
    assert "channel is stuck" in str(errors[0])


def test_br18_one_that_hangs_has_a_deadline(manager, plugins):
    go = threading.Event()
    try:
        made = manager(plugins("example.com/a"), plugins("example.com/b", lambda: go.wait(30)), load_timeout=0.5)
        (error,) = made.close()
        assert "did not come back" in error.reason
        assert plugins.calls == ["example.com/b", "example.com/a"]
    finally:
        go.set()


def test_after_close_there_are_no_plugins_and_closing_again_does_nothing(manager, plugins):
    made = manager(plugins("example.com/a"))
    assert made.close() == []
    assert made.close() == []
    assert plugins.calls == ["example.com/a"]
    assert made.plugins() == []
    with pytest.raises(PluginNotFoundError):
        made.find_plugin_by_name("example.com/a")


def test_plugins_that_were_only_listed_are_not_shut_down(manager, plugins):
    made = manager(plugins("example.com/a"), inspect_only=True)
    assert [status.name for status in made.plugins()] == ["example.com/a"]
    made.close()
    assert plugins.calls == []
