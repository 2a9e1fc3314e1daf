"""Volume stats and what is counted of calls (CSI-MET, CSI-CLI-18, -19)."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from volumehost.errors import (
    FsInfoMetricsError,
    NoPathMetricsError,
    NotSupportedMetricsError,
    StorageDriverError,
    StorageDriverUnavailableError,
)
from volumehost.storage_driver import VolumeCapability
from volumehost_csi.client import NodeClient
from volumehost_csi.metrics import BUCKETS, CSIMetrics, Histogram, go_code
from volumehost_csi_kit import csi

NAME = "fake.csi.example.com"
USAGE = csi.VolumeUsage
PUBLISH = "/csi.v1.Node/NodePublishVolume"


def answer(*usage, condition=None):
    return lambda request, context: csi.NodeGetVolumeStatsResponse(usage=usage, volume_condition=condition)


def test_csi_cli_18_bytes_and_inodes(node, client):
    node.script(
        "NodeGetVolumeStats",
        answer(
            USAGE(unit=USAGE.BYTES, total=100, used=40, available=60),
            USAGE(unit=USAGE.INODES, total=10, used=4, available=6),
        ),
    )
    before = time.time()
    found = client.get_volume_stats("vol-1", "/target")
    assert before <= found.time <= time.time()
    assert (found.capacity, found.used, found.available) == (100, 40, 60)
    assert (found.inodes, found.inodes_used, found.inodes_free) == (10, 4, 6)
    assert found.abnormal is None


def test_unknown_units_are_skipped_and_impossible_figures_unknown(node, client, caplog):
    unknown = csi.VolumeUsage.FromString(b"\x20\x63")  # unit 99
    node.script("NodeGetVolumeStats", answer(unknown, USAGE(unit=USAGE.BYTES, total=-1, used=5)))
    found = client.get_volume_stats("vol-1", "/target")
    assert (found.capacity, found.used, found.inodes) == (None, 5, None)
    assert "unknown unit" in caplog.text


def test_csi_cli_19_edge_32_the_condition_counts_where_the_driver_declares_it(node, channel):
    condition = csi.VolumeCondition(abnormal=True, message="a disk is missing")
    node.script("NodeGetVolumeStats", answer(condition=condition))
    with pytest.raises(StorageDriverError, match="without any usage"):
        NodeClient(NAME, channel).get_volume_stats("vol-1", "/target")
    node.capabilities.append("VOLUME_CONDITION")
    node.script("NodeGetVolumeStats", answer(condition=condition))
    found = NodeClient(NAME, channel).get_volume_stats("vol-1", "/target")
    assert (found.abnormal, found.message, found.used) == (True, "a disk is missing", None)


def test_csi_met_06_a_driver_that_does_not_measure(plugin, node, make_pv, pod):
    node.capabilities = []
    with pytest.raises(NotSupportedMetricsError, match=NAME):
        plugin.new_mounter(make_pv(), pod).get_metrics()


def test_csi_met_04_the_duration_is_counted_also_on_failure(plugin, drivers, node, make_pv, pod):
    mounter = plugin.new_mounter(make_pv(), pod)
    mounter.get_metrics()
    for code, kind in (("INTERNAL", FsInfoMetricsError), ("NOT_FOUND", NoPathMetricsError)):
        node.fail("NodeGetVolumeStats", code)
        with pytest.raises(kind) as caught:
            mounter.get_metrics()
        assert caught.value.__cause__.code == code
    drivers.clients.clear()
    with pytest.raises(StorageDriverUnavailableError):
        mounter.get_metrics()
    assert plugin._services.metrics.volume_stats.count(NAME) == 4
    assert mounter.metric_source == NAME


@pytest.mark.root
def test_metrics_of_an_unmounter(plugin, csi_driver, mounted, node, pod):
    with pytest.raises(NoPathMetricsError):
        plugin.new_unmounter("pv-1", pod.metadata.uid).get_metrics()
    csi_driver()
    volume = mounted()
    assert plugin.new_unmounter("pv-1", pod.metadata.uid).get_metrics().used == 40
    assert node.last("NodeGetVolumeStats").volume_path == volume.target


@pytest.mark.parametrize(
    ("code", "spelled"),
    [
        ("OK", "OK"),
        ("CANCELLED", "Canceled"),
        ("DEADLINE_EXCEEDED", "DeadlineExceeded"),
        ("NOT_FOUND", "NotFound"),
        ("OUT_OF_RANGE", "OutOfRange"),
        ("INTERNAL", "Internal"),
        ("UNAUTHENTICATED", "Unauthenticated"),
        ("", "unknown-non-grpc"),
    ],
)
def test_csi_met_02_codes_are_spelled_as_go_does(code, spelled):
    assert go_code(code) == spelled


def test_csi_met_01_every_call_is_counted_probes_too(node, channel):
    metrics = CSIMetrics()
    client = NodeClient(NAME, channel, metrics)
    node.mounts = False
    client.capabilities()
    client.publish_volume("v", "/t", VolumeCapability("SINGLE_NODE_WRITER"), read_only=False, migrated=True)
    node.fail("NodePublishVolume", "ABORTED")
    with pytest.raises(StorageDriverError):
        client.publish_volume("v", "/t", VolumeCapability("SINGLE_NODE_WRITER"), read_only=False)
    count = metrics.operations.count
    assert count(NAME, "/csi.v1.Node/NodeGetCapabilities", "OK", "false") == 1
    assert count(NAME, PUBLISH, "OK", "true") == 1
    assert count(NAME, PUBLISH, "Aborted", "false") == 1


@pytest.mark.root
def test_csi_met_03_mig_01_migrated_specs_are_flagged(plugin, node, client, csi_driver, mounted, make_pv, pod):
    csi_driver()
    mounted(make_pv(migrated=True))
    plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down()
    count = client._metrics.operations.count
    assert count(NAME, PUBLISH, "OK", "true") == 1
    assert count(NAME, "/csi.v1.Node/NodeStageVolume", "OK", "true") == 1
    assert count(NAME, "/csi.v1.Node/NodeUnpublishVolume", "OK", "false") == 1  # CSI-TDN-11
    del node


def test_a_histogram_puts_each_duration_into_its_bucket():
    histogram = Histogram("seconds", "time", ("what",))
    for seconds in (0.05, 0.1, 0.2, 1000):
        histogram.observe(("x",), seconds)
    (family,) = [histogram.family()]
    samples = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    assert samples["0.1"] == 2
    assert samples["0.25"] == 3
    assert samples["600.0"] == 3
    assert samples["+Inf"] == samples["seconds_count"] == 4
    assert samples["seconds_sum"] == pytest.approx(1000.35)
    assert len(BUCKETS) == 13


def test_prometheus_shows_the_kubelets_names(node, channel):
    from prometheus_client import CollectorRegistry, generate_latest

    metrics = CSIMetrics()
    NodeClient(NAME, channel, metrics).capabilities()
    metrics.observe_operation(NAME, "volume_apply_access_control", 0.2, failed=True, migrated=False)
    registry = CollectorRegistry()
    registry.register(metrics.collector())
    text = generate_latest(registry).decode()
    assert (
        f'csi_operations_seconds_count{{driver_name="{NAME}",grpc_status_code="OK",'
        'method_name="/csi.v1.Node/NodeGetCapabilities",migrated="false"} 1.0'
    ) in text
    assert (
        'storage_operation_duration_seconds_count{migrated="false",operation_name="volume_apply_access_control",'
        f'status="fail-unknown",volume_plugin="kubernetes.io/csi:{NAME}"}} 1.0'
    ) in text
    assert "volume_operation_total_seconds_count{" not in text  # only what succeeded


def test_prometheus_is_imported_by_whoever_exports_only():
    code = """
import sys
from volumehost_csi.metrics import CSIMetrics
metrics = CSIMetrics()
metrics.observe_call("d", "m", "OK", 0.1, migrated=False)
metrics.collector()
assert "prometheus_client" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_program_of_the_readme(tmp_path):
    """The collector is registered before the plugin has a host."""
    text = (Path(__file__).parents[2] / "README.md").read_text()
    ((program,),) = [
        re.findall(r"^```python\n(.*?)^```$", text.partition("\n## Metrics\n")[2], re.MULTILINE | re.DOTALL)
    ]
    program = program.replace("/srv/sandbox", str(tmp_path)).replace("    ...", "    manager.drivers.statuses()")
    program += "from prometheus_client import generate_latest\nprint(generate_latest(REGISTRY).decode())\n"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "# TYPE csi_operations_seconds histogram" in done.stdout
    assert "# TYPE plugin_manager_total_plugins gauge" in done.stdout


def test_the_metrics_of_the_plugin_are_those_of_its_drivers(host):
    from volumehost_csi.plugin import CSIPlugin

    plugin = CSIPlugin()
    plugin.init(host)
    assert plugin.get_storage_drivers()._metrics is plugin.metrics
    plugin.shutdown()
