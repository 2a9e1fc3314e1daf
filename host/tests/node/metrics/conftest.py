"""Metrics of a manager of a test, read as a scraper reads them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from volumehost.metrics.exposition import NodeMetrics


class Scrape:
    """One answer to a scraper: values by metric and labels."""

    def __init__(self, text):
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = {}
        for family in self.families.values():
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"{key} is told twice"
                self.samples[key] = sample.value

    def value(self, name, **labels):
        """The value, None when it is not told."""
        return self.samples.get((name, frozenset(labels.items())))

    def all(self, name):
        """Labels in their alphabetical order to the value, of one metric."""
        return {
            tuple(value for _, value in sorted(labels)): value
            for (found, labels), value in self.samples.items()
            if found == name
        }


@pytest.fixture
def metrics():
    return NodeMetrics()


@pytest.fixture
def scrape(metrics):
    def read():
        body, content_type = metrics.text()
        assert content_type.startswith("text/plain")
        return Scrape(body.decode())

    return read


@pytest.fixture
def measured(manager, metrics):
    """Makes managers with metrics attached."""
    made = []

    def make(*plugins, **options):
        node = manager(*plugins, metrics=metrics.operations, **options)
        metrics.attach(node)
        made.append(node)
        return node

    yield make
    if made:
        metrics.detach()
