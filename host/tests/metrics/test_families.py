"""Families of several collectors become one text; those of third parties are checked before that."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from volumehost.metrics.families import checked, merged


def histogram(plugin):
    made = Histogram("took_seconds", "How long", ("plugin",), registry=None)
    made.labels(plugin).observe(0.2)
    return list(made.collect())


def test_families_of_one_name_are_put_together_and_equal_samples_told_once():
    (found,) = merged([*histogram("a"), *histogram("b"), *histogram("a")])
    counts = [sample for sample in found.samples if sample.name == "took_seconds_count"]
    assert [sample.labels["plugin"] for sample in counts] == ["a", "b"]


def test_times_of_creation_are_left_out():
    counter = Counter("done", "d", registry=None)
    assert [sample.name for sample in merged(counter.collect())[0].samples] == ["done_total"]


def test_the_same_name_with_another_type_is_left_out(caplog):
    (found,) = merged([GaugeMetricFamily("x", "d", value=1), CounterMetricFamily("x", "d", value=2)])
    assert (found.type, len(found.samples)) == ("gauge", 1)
    assert "x is a gauge here and a counter there" in caplog.text


def test_what_is_checked_is_told_as_it_was():
    family = HistogramMetricFamily("took_seconds", "How long", labels=["plugin"])
    family.add_metric(["a"], [("1.0", 1.0), ("+Inf", 2.0)], 3.0)

    class Once:
        def __init__(self, given):
            self.given = given

        def collect(self):
            return [self.given]

    texts = []
    for given in (family, checked(family)):
        registry = CollectorRegistry()
        registry.register(Once(given))
        texts.append(generate_latest(registry))
    assert texts[0] == texts[1]


def _odd(change):
    family = GaugeMetricFamily("depth", "d", labels=["queue"])
    family.add_metric(["a"], 1)
    change(family)
    return family


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("depth 1", "a str is no metric family"),
        (Gauge("g", "d", registry=None), "a Gauge is no metric family"),
        (_odd(lambda family: setattr(family, "name", "de pth")), "'de pth' is no name"),
        (_odd(lambda family: family.add_sample("other", {}, 1)), "'other' is no sample of depth"),
        (_odd(lambda family: family.add_sample("depth", {"queue": 3}, 1)), "the label 'queue'=3"),
        (_odd(lambda family: family.add_sample("depth", {"que ue": "a"}, 1)), "the label 'que ue'='a'"),
        (_odd(lambda family: family.add_sample("depth", {}, "many")), "could not convert string to float"),
    ],
)
def test_what_no_scraper_would_understand_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        checked(given)
