"""The storage drivers of all loaded plugins, as one."""

from __future__ import annotations

import pytest

from volumehost import hookimpl
from volumehost.errors import StorageDriverUnavailableError
from volumehost.loader.storage_drivers import CombinedStorageDrivers, storage_drivers_of
from volumehost.storage_driver import DriverOrigin, DriverState, DriverStatus


class Drivers:
    """Knows some names; notes what it is asked for."""

    def __init__(self, *names):
        self.names = names
        self.asked = []

    def start(self):
        self.asked.append("start")

    def statuses(self):
        return [
            DriverStatus(name, DriverOrigin.SOCKET, DriverState.READY, endpoint=str(id(self))) for name in self.names
        ]

    def problems(self):
        return [f"{self.names[0]} is noticed late"]

    def driver(self, name, *, timeout):
        self.asked.append((name, timeout))
        return self

    def register(self, name, endpoint):
        self.asked.append((name, endpoint))
        return self.statuses()[0]

    def unregister(self, name):
        self.asked.append(name)

    def on_change(self, changed):
        changed(self.names[0])


@pytest.fixture
def plugin(manager, base):
    def make(drivers, name="example.com/p"):
        class Plugin(base):
            @hookimpl
            def get_storage_drivers(self):
                if isinstance(drivers, Exception):
                    raise drivers
                return drivers

        return Plugin(name)

    return make


def test_plugins_without_drivers_are_passed_over_and_one_that_raises_costs_the_others_nothing(
    manager, base, plugin, caplog
):
    drivers = Drivers("a.example.com")
    loaded = manager(
        base("example.com/none"), plugin(ValueError("broken"), "example.com/bad"), plugin(drivers, "example.com/good")
    ).loaded_plugins()
    assert [each.name for each in loaded] == ["example.com/none", "example.com/bad", "example.com/good"]
    assert storage_drivers_of(loaded) == [drivers]
    assert "plugin=example.com/bad" in caplog.text
    assert "broken" in caplog.text


def test_each_driver_is_asked_of_the_plugin_that_knows_it():
    first, second = Drivers("a.example.com", "z.example.com"), Drivers("b.example.com", "a.example.com")
    both = CombinedStorageDrivers([first, second])
    statuses = both.statuses()
    assert [status.name for status in statuses] == ["a.example.com", "b.example.com", "z.example.com"]
    assert statuses[0].endpoint == str(id(first))
    assert both.driver("b.example.com", timeout=3) is second
    assert both.driver("a.example.com", timeout=4) is first
    assert (first.asked, second.asked) == ([("a.example.com", 4)], [("b.example.com", 3)])


def test_everything_else_reaches_the_plugins():
    first, second = Drivers("a.example.com"), Drivers("b.example.com")
    both = CombinedStorageDrivers([first, second])
    told = []
    both.start()
    both.on_change(told.append)
    both.register("c.example.com", "/run/c.sock")
    both.unregister("b.example.com")
    assert told == ["a.example.com", "b.example.com"]
    assert both.problems() == ["a.example.com is noticed late", "b.example.com is noticed late"]
    assert first.asked == ["start", ("c.example.com", "/run/c.sock")]
    assert second.asked == ["start", "b.example.com"]


def test_an_unknown_driver_is_asked_of_a_plugin_which_can_wait_for_it():
    only = Drivers()
    assert CombinedStorageDrivers([only]).driver("new.example.com", timeout=1) is only


def test_without_any_such_plugin_the_error_says_what_to_install():
    none = CombinedStorageDrivers([])
    assert not none
    assert none.statuses() == []
    with pytest.raises(StorageDriverUnavailableError, match="pip install volumehost-csi") as caught:
        none.driver("a.example.com", timeout=1)
    assert caught.value.driver == "a.example.com"
