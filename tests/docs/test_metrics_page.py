"""The page of metrics and the registry agree about names, types and labels."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from prometheus_client import ProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from volumehost.metrics.catalogue import CATALOGUE
from volumehost.metrics.exposition import NodeMetrics
from volumehost_csi.metrics import CSIMetrics

ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@pytest.fixture
def page(read_source):
    return read_source("reference/metrics.md")


@pytest.fixture
def rows(page):
    """Name to type and labels of every row; each name is there once."""
    found = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, _ in ROW.findall(page)}
    assert len(found) == len(ROW.findall(page))
    return found


def test_every_metric_of_the_host_is_on_the_page_with_its_type_and_labels(rows):
    expected = {name: (each.kind, each.labels) for name, each in CATALOGUE.items()}
    assert {name: row for name, row in rows.items() if name in expected} == expected


def test_the_others_on_the_page_are_the_csi_plugins(rows):
    metrics = CSIMetrics()
    told = {family.name: family.type for family in metrics.collector().collect()}
    others = {name: row for name, row in rows.items() if name not in CATALOGUE}
    assert {name: kind for name, (kind, _) in others.items()} == {
        name: kind for name, kind in told.items() if name not in CATALOGUE
    }
    assert others["csi_operations_seconds"][1] == metrics.operations.labels
    for histogram in (metrics.storage_operations, metrics.volume_operations, metrics.volume_stats):
        assert CATALOGUE[histogram.name].labels == histogram.labels, "they are merged with the host's"


def test_the_process_metrics_are_those_that_the_page_names(page):
    told = {f"{family.name}_total" if family.type == "counter" else family.name
            for family in ProcessCollector(registry=None).collect()}  # fmt: skip
    assert set(re.findall(r"`(process_\w+)`", page)) == told


def test_what_is_told_without_a_manager_is_on_the_page(rows):
    for family in text_string_to_metric_families(NodeMetrics().text()[0].decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert name in rows or name.startswith("process_")


def test_what_to_watch_are_metrics_of_the_page(page, rows):
    watched = re.findall(r"\b(?:volumehost|kubelet|orphan)_\w+", page.partition("## What to watch")[2])
    assert len(watched) > 8
    assert [name for name in watched if name not in rows] == []


@pytest.mark.root
def test_the_program_on_the_page_runs(page, tmp_path):
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program = program.replace("/srv/sandbox", str(tmp_path / "root")) + "\nprint(body.decode())\n"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert "volumehost_build_info{" in done.stdout
    assert "volumehost_journal_bytes" in done.stdout
    assert "volumehost_scrape_errors_total{" not in done.stdout
