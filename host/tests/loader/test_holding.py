"""A plugin in use is neither unloaded nor replaced; when its last user lets go, what waited happens."""

from __future__ import annotations

import threading

import pytest

from volumehost import hookimpl
from volumehost.errors import NoPluginMatchedError, PluginNotFoundError


@pytest.fixture
def recording(base):
    """A plugin class that notes its shutdown."""

    class Plugin(base):
        def __init__(self, name="example.com/p", source="nfs"):
            super().__init__(name, source)
            self.shut_down = 0

        @hookimpl
        def shutdown(self):
            self.shut_down += 1

    return Plugin


def state(made, name="example.com/p"):
    (status,) = [each for each in made.plugins() if each.name == name]
    return status.state


def test_holding_twice_for_one_user_is_holding_once(manager, base):
    plugin = manager(base()).find_plugin_by_name("example.com/p")
    assert not plugin.in_use
    plugin.hold("a")
    plugin.hold("a")
    plugin.hold("b")
    assert plugin.users == {"a", "b"}
    plugin.release("a")
    plugin.release("never held")
    assert plugin.in_use
    plugin.release("b")
    assert not plugin.in_use


def test_an_update_waits_for_the_last_user(manager, recording, prober, spec_of):
    first, second = recording(), recording()
    made = manager(prober=prober)
    prober.add(first)
    loaded = made.find_plugin_by_name("example.com/p")
    loaded.hold("volume 1")
    loaded.hold("volume 2")
    prober.add(second)
    assert state(made) == "newer version installed"
    assert made.find_plugin_by_spec(spec_of("nfs")) is loaded, "new volumes too"
    loaded.release("volume 1")
    assert made.find_plugin_by_name("example.com/p") is loaded
    assert second.hosts == []
    loaded.release("volume 2")
    assert made.find_plugin_by_name("example.com/p").plugin is second
    assert state(made) == "active"
    assert (first.shut_down, second.shut_down) == (1, 0)


def test_a_removal_waits_for_the_last_user_and_offers_nothing_new(manager, recording, prober, spec_of, clock):
    plugin = recording()
    made = manager(prober=prober, clock=clock)
    prober.add(plugin)
    loaded = made.find_plugin_by_name("example.com/p")
    loaded.hold("volume")
    prober.remove("example.com/p")
    assert state(made) == "removed, still in use"
    with pytest.raises(NoPluginMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))
    clock.advance(3600)
    assert made.find_plugin_by_name("example.com/p") is loaded, "teardown finds it"
    assert plugin.shut_down == 0
    loaded.release("volume")
    assert plugin.shut_down == 1
    assert made.plugins() == []
    with pytest.raises(PluginNotFoundError):
        made.find_plugin_by_name("example.com/p")


def test_br11_a_disappearance_shorter_than_the_settle_time_unloads_nothing(manager, recording, prober, spec_of, clock):
    plugin = recording()
    made = manager(prober=prober, clock=clock, settle=1.0)
    prober.add(plugin)
    loaded = made.find_plugin_by_name("example.com/p")
    prober.remove("example.com/p")
    assert state(made) == "removed"
    clock.advance(0.9)
    assert state(made) == "removed"
    prober.add(plugin)
    assert made.find_plugin_by_spec(spec_of("nfs")) is loaded
    clock.advance(3600)
    assert state(made) == "active"
    assert (len(plugin.hosts), plugin.shut_down) == (1, 0)
    prober.remove("example.com/p")
    made.plugins()
    clock.advance(1.1)
    assert made.plugins() == []
    assert plugin.shut_down == 1


def test_who_holds_too_late_is_told_to_look_again(manager, recording, prober):
    made = manager(prober=prober)
    prober.add(recording())
    late = made.find_plugin_by_name("example.com/p")
    prober.add(recording())
    made.plugins()
    with pytest.raises(PluginNotFoundError, match="look it up again"):
        late.hold("volume")
    made.find_plugin_by_name("example.com/p").hold("volume")


def test_someone_who_takes_hold_during_an_update_keeps_the_loaded_version(manager, recording, prober):
    first = recording()
    made = manager(prober=prober)
    prober.add(first)
    loaded = made.find_plugin_by_name("example.com/p")

    class Racing(recording):
        @hookimpl
        def init(self, host):
            if not self.hosts:
                loaded.hold("volume")  # at the worst moment: the new one is ready, the old one not yet retired
            self.hosts.append(host)

    racing = Racing()
    prober.add(racing)
    assert state(made) == "newer version installed"
    assert made.find_plugin_by_name("example.com/p") is loaded
    assert (first.shut_down, racing.shut_down) == (0, 1), "the new one is taken back"
    loaded.release("volume")
    assert made.find_plugin_by_name("example.com/p").plugin is racing


def test_release_may_be_called_from_any_thread_at_any_time(manager, recording, prober):
    made = manager(prober=prober)
    prober.add(recording())
    loaded = made.find_plugin_by_name("example.com/p")
    barrier = threading.Barrier(8)

    def use(number):
        barrier.wait(30)
        for turn in range(200):
            loaded.hold(f"{number}-{turn}")
            loaded.release(f"{number}-{turn}")

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not loaded.in_use
    assert made.find_plugin_by_name("example.com/p") is loaded
