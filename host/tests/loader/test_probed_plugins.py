"""MGR-PROBE-01 to -08: plugins that a prober of objects reports."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost import hookimpl
from volumehost.errors import (
    DuplicatePluginError,
    InvalidPluginNameError,
    NoPluginMatchedError,
    PluginInitError,
    PluginNotFoundError,
)
from volumehost.loader.events import ProbeEvent, ProbeOperation, ProbeResult


def test_plug_31_operations_are_distinct_bits():
    assert ProbeOperation.ADD_OR_UPDATE == 2
    assert ProbeOperation.REMOVE == 4


def test_mgr_probe_01_what_appears_is_found_at_the_next_look_up(manager, base, prober, spec_of):
    made = manager(prober=prober)
    with pytest.raises(NoPluginMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))
    prober.add(base())
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/p"
    prober.add(base("example.com/q", "csi"))
    assert made.find_plugin_by_name("example.com/q").name == "example.com/q"


def test_mgr_probe_01_a_hit_probes_from_time_to_time_and_a_miss_always(manager, base, prober, spec_of, clock):
    made = manager(base(), prober=prober, clock=clock)
    probes = prober.probes
    for _ in range(100):
        made.find_plugin_by_spec(spec_of("nfs"))
        made.find_plugin_by_name("example.com/p")
    assert prober.probes == probes
    clock.advance(0.011)
    made.find_plugin_by_spec(spec_of("nfs"))
    assert prober.probes == probes + 1
    for _ in range(3):
        with pytest.raises(PluginNotFoundError):
            made.find_plugin_by_name("example.com/none")
    assert prober.probes == probes + 4


def test_mgr_probe_02_events_count_beside_errors(manager, base, prober, caplog):
    made = manager(prober=prober)
    prober.errors.append(OSError("one directory is unreadable"))
    prober.add(base())
    assert made.find_plugin_by_name("example.com/p")
    assert "one directory is unreadable" in caplog.text


def test_mgr_probe_03_the_plugins_own_name_counts(manager, base, prober):
    made = manager(prober=prober)
    prober.add(base("example.com/own"), "example.com/event")
    assert made.find_plugin_by_name("example.com/own")
    with pytest.raises(PluginNotFoundError):
        made.find_plugin_by_name("example.com/event")


def test_mgr_probe_03_an_update_replaces(manager, base, prober, spec_of):
    first, second = base(), base("example.com/p", "csi")
    made = manager(prober=prober)
    prober.add(first)
    assert made.find_plugin_by_spec(spec_of("nfs"))
    prober.add(second)
    assert made.find_plugin_by_spec(spec_of("csi")).plugin is second
    with pytest.raises(NoPluginMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))
    assert (len(first.hosts), len(second.hosts)) == (1, 1)


def test_mgr_probe_03_an_update_under_another_event_name_replaces_too(manager, base, prober):
    first, second = base(), base()
    made = manager(prober=prober)
    prober.add(first, "one")
    made.find_plugin_by_name("example.com/p")
    prober.add(second, "two")
    prober.changed = True
    made.plugins()
    assert made.find_plugin_by_name("example.com/p").plugin is second


def test_mgr_probe_03_a_failed_update_leaves_the_loaded_one(manager, base, prober):
    class Refusing(base):
        @hookimpl
        def init(self, host):
            raise OSError("busy")

    first = base()
    made = manager(prober=prober)
    prober.add(first)
    made.find_plugin_by_name("example.com/p")
    prober.add(Refusing())
    (status,) = made.plugins()
    assert isinstance(status.error, PluginInitError)
    assert "failed to load volume plugin example.com/p, error: OSError: busy" in str(status.error)  # MGR-PROBE-06
    assert made.find_plugin_by_name("example.com/p").plugin is first


def test_mgr_probe_03_the_same_plugin_again_changes_nothing(manager, base, prober):
    plugin = base()
    made = manager(prober=prober)
    prober.add(plugin)
    loaded = made.find_plugin_by_name("example.com/p")
    prober.add(plugin)
    made.plugins()
    assert made.find_plugin_by_name("example.com/p") is loaded
    assert len(plugin.hosts) == 1


def test_mgr_probe_04_a_removal_needs_no_plugin_and_may_be_unknown(manager, base, prober, spec_of):
    made = manager(prober=prober)
    prober.add(base())
    made.find_plugin_by_name("example.com/p")
    prober.remove("example.com/unknown")
    prober.remove("example.com/p")
    made.plugins()
    with pytest.raises(PluginNotFoundError):
        made.find_plugin_by_name("example.com/p")
    with pytest.raises(NoPluginMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))


def test_mgr_probe_04_a_given_plugin_cannot_be_removed_by_a_prober(manager, base, prober):
    made = manager(base(), prober=prober)
    prober.remove("example.com/p")
    made.plugins()
    assert made.find_plugin_by_name("example.com/p")


def test_mgr_probe_05_an_unknown_operation_is_logged_and_ignored(manager, base, prober, caplog):
    made = manager(base(), prober=prober)
    prober.events.append(ProbeEvent(8, "example.com/odd"))
    prober.events.append(ProbeEvent(ProbeOperation.ADD_OR_UPDATE, "example.com/nothing"))
    made.plugins()
    assert "example.com/odd" in caplog.text
    assert made.find_plugin_by_name("example.com/p")


def test_mgr_probe_06_a_bad_name(manager, base, prober):
    made = manager(prober=prober)
    prober.add(base("Bad/-name-"), "example.com/event")
    (error,) = made.errors()
    assert isinstance(error, InvalidPluginNameError)
    assert 'volume plugin has invalid name: "Bad/-name-":' in error.reason


def test_mgr_probe_07_a_probed_name_that_is_taken_is_a_conflict_and_the_first_stays(manager, base, prober):
    given = base()
    made = manager(given, prober=prober)
    prober.add(base())
    (error,) = made.errors()
    assert isinstance(error, DuplicatePluginError)
    assert made.find_plugin_by_name("example.com/p").plugin is given


def test_mgr_probe_08_one_event_and_a_hundred_concurrent_look_ups(manager, base, prober, spec_of):
    for look_up in (
        lambda made: made.find_plugin_by_name("example.com/p"),
        lambda made: made.find_plugin_by_spec(spec_of("nfs")),
        lambda made: made.find_plugin_by_spec(spec_of("nfs"), guarded=True),
    ):
        made = manager(prober=prober)
        prober.add(base())
        start = threading.Barrier(100)

        def one(made=made, look_up=look_up, start=start):
            start.wait(30)
            return look_up(made).name

        with ThreadPoolExecutor(100) as pool:
            results = [future.result(30) for future in [pool.submit(one) for _ in range(100)]]
        assert results == ["example.com/p"] * 100


def test_mgr_probe_08_a_probe_that_raises_is_contained(manager, base, spec_of, caplog):
    class Raising:
        def init(self):
            pass

        def probe(self):
            raise OSError("gone")

    made = manager(base(), prober=Raising())
    assert made.find_plugin_by_spec(spec_of("nfs"))
    assert not made.discovery_complete
    with pytest.raises(PluginNotFoundError, match="the last look for plugins failed: OSError"):
        made.find_plugin_by_name("example.com/none")
    assert caplog.text.count("looking for plugins failed") == 1, "it is logged once, not at each look-up"


def test_br15_a_slow_first_probe_holds_look_ups_up_and_loses_none(manager, base, spec_of):
    """Twenty look-ups while the first probe is slow: each waits for its end instead of finding nothing."""

    class Slow:
        def __init__(self):
            self.go = threading.Event()
            self.begun = threading.Event()
            self.probes = 0

        def init(self):
            pass

        def probe(self):
            self.probes += 1
            self.begun.set()
            assert self.go.wait(30)
            return ProbeResult(
                [ProbeEvent(ProbeOperation.ADD_OR_UPDATE, "example.com/p", base())] if self.probes == 1 else []
            )

    slow = Slow()
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.loader.trust import TrustPolicy

    made = VolumePluginManager(trust=TrustPolicy())
    with ThreadPoolExecutor(21) as pool:
        starting = pool.submit(made.init_plugins, (), slow, None)
        assert slow.begun.wait(30)
        futures = [pool.submit(made.find_plugin_by_spec, spec_of("nfs")) for _ in range(20)]
        slow.go.set()
        assert {future.result(30).name for future in futures} == {"example.com/p"}
        assert starting.result(30) == []
    assert slow.probes < 20, "those that waited are content with a probe that began after they asked"
    made.close()


def test_br15_a_probe_that_fails_once_delays_and_loses_nothing(manager, base, spec_of):
    class FailsOnce:
        def __init__(self):
            self.probes = 0

        def init(self):
            pass

        def probe(self):
            self.probes += 1
            if self.probes == 1:
                raise OSError("not yet")
            found = [ProbeEvent(ProbeOperation.ADD_OR_UPDATE, "example.com/p", base())] if self.probes == 2 else []
            return ProbeResult(found)

    made = manager(prober=FailsOnce())
    assert not made.discovery_complete
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/p"
    assert made.discovery_complete
