"""What plugins count is told with the rest; one that misbehaves costs the others and the scrape nothing (BR-18)."""

import threading

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from volumehost import ReconstructedVolume, Spec, hookimpl
from volumehost.loader.events import NoProber
from volumehost.loader.manager import VolumePluginManager
from volumehost.metrics import plugin_families
from volumehost.metrics.plugin_families import PluginFamilies
from volumehost.testing.plugin_host import PluginTestHost


class Counting:
    """The least of a plugin, with collectors."""

    def __init__(self, name, collect):
        self.name = name
        self.collect = collect

    @hookimpl
    def get_plugin_name(self):
        return self.name

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return False

    @hookimpl
    def new_mounter(self, spec, pod):
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        return ReconstructedVolume(Spec())

    @hookimpl
    def get_metrics_collectors(self):
        return [self]


@pytest.fixture
def plugins(tmp_path):
    """A manager of plugins that count what the functions tell, by the names of their plugins."""

    def make(**collects):
        manager = VolumePluginManager()
        given = [Counting(f"example.com/{name}", collect) for name, collect in collects.items()]
        assert manager.init_plugins(given, NoProber(), PluginTestHost(str(tmp_path))) == []
        return manager

    return make


def calls():
    return [CounterMetricFamily("example_calls", "d", value=3)]


def test_the_families_of_every_plugin(plugins):
    families, failed = PluginFamilies().collect(
        plugins(a=calls, b=lambda: [GaugeMetricFamily("b_depth", "d", value=1)])
    )
    assert (sorted(family.name for family in families), failed) == (["b_depth", "example_calls"], [])


def _exit():
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("collect", "words"),
    [
        (lambda: 1 / 0, "division by zero"),
        (lambda: ["depth 1"], "no metric family"),
        (_exit, "tried to end the process"),
        (lambda: None, "not iterable"),
    ],
)
def test_br18_one_that_fails_is_left_out_alone_and_told_once(plugins, caplog, collect, words):
    manager, families = plugins(bad=collect, good=calls), PluginFamilies()
    for _ in range(2):
        found, failed = families.collect(manager)
        assert ([family.name for family in found], failed) == (["example_calls"], ["example.com/bad"])
    assert caplog.text.count("example.com/bad counts is left out") == 1
    assert words in caplog.text


def test_br52_one_that_hangs_is_not_asked_again_before_it_has_answered(plugins):
    go, asked = threading.Event(), []

    def hang():
        asked.append(1)
        go.wait(60)
        return calls()

    manager, families = plugins(slow=hang, good=calls), PluginFamilies(timeout=0.5)
    try:
        for _ in range(3):
            found, failed = families.collect(manager)
            assert ([family.name for family in found], failed) == (["example_calls"], ["example.com/slow"])
        assert len(asked) == 1
    finally:
        go.set()


def test_one_with_labels_without_a_bound_is_left_out(plugins, monkeypatch):
    monkeypatch.setattr(plugin_families, "MOST_SAMPLES", 10)

    def many():
        family = GaugeMetricFamily("files", "d", labels=["path"])
        for number in range(11):
            family.add_metric([str(number)], 1)
        yield family

    assert PluginFamilies().collect(plugins(many=many)) == ([], ["example.com/many"])
