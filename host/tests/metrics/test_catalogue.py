"""Names, types and labels are those of the rules (METRIC-01 to -09), and every text can be read by a scraper."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from volumehost.metrics.catalogue import BUCKETS, CATALOGUE, COUNTER, GAUGE, HISTOGRAM, UNTYPED
from volumehost.metrics.exposition import NodeMetrics
from volumehost.metrics.families import family
from volumehost.node.execution.operation_metrics import OperationLabels

#: What the rules say, written down once more: (name, type, labels).
RULES = [
    # METRIC-01, METRIC-03
    ("storage_operation_duration_seconds", HISTOGRAM, {"volume_plugin", "operation_name", "status", "migrated"}),
    ("volume_operation_total_seconds", HISTOGRAM, {"plugin_name", "operation_name"}),
    # METRIC-04
    ("volume_manager_total_volumes", GAUGE, {"plugin_name", "state"}),
    # METRIC-05
    ("reconstruct_volume_operations_total", COUNTER, set()),
    ("reconstruct_volume_operations_errors_total", COUNTER, set()),
    ("force_cleaned_failed_volume_operations_total", COUNTER, set()),
    ("force_cleaned_failed_volume_operation_errors_total", COUNTER, set()),
    # METRIC-06
    *(
        (f"kubelet_volume_stats_{what}", GAUGE, {"namespace", "persistentvolumeclaim"})
        for what in (
            "capacity_bytes",
            "available_bytes",
            "used_bytes",
            "inodes",
            "inodes_free",
            "inodes_used",
            "health_status_abnormal",
        )
    ),
    # METRIC-07, METRICS-09
    ("kubelet_volume_metric_collection_duration_seconds", HISTOGRAM, {"metric_source"}),
    ("orphan_pod_cleaned_volumes", GAUGE, set()),
    ("orphan_pod_cleaned_volumes_errors", GAUGE, set()),
    # SEL-06
    ("volume_manager_selinux_container_errors_total", GAUGE, {"access_mode"}),
    ("volume_manager_selinux_container_warnings_total", GAUGE, {"access_mode"}),
    ("volume_manager_selinux_pod_context_mismatch_errors_total", GAUGE, {"access_mode"}),
    ("volume_manager_selinux_pod_context_mismatch_warnings_total", GAUGE, {"access_mode"}),
    ("volume_manager_selinux_volume_context_mismatch_errors_total", GAUGE, {"access_mode", "volume_plugin"}),
    ("volume_manager_selinux_volume_context_mismatch_warnings_total", GAUGE, {"access_mode", "volume_plugin"}),
    ("volume_manager_selinux_volumes_admitted_total", GAUGE, {"access_mode", "volume_plugin"}),
    # METRIC-08
    ("attachdetach_controller_total_volumes", GAUGE, {"plugin_name", "state"}),
    ("storage_count_attachable_volumes_in_use", GAUGE, {"node", "volume_plugin"}),
    ("attach_detach_controller_attachdetach_controller_forced_detaches", UNTYPED, {"reason"}),
    # METRIC-09
    ("pv_collector_total_pv_count", GAUGE, {"plugin_name", "volume_mode"}),
    ("pv_collector_bound_pv_count", GAUGE, {"storage_class"}),
    ("pv_collector_unbound_pv_count", GAUGE, {"storage_class"}),
    ("pv_collector_bound_pvc_count", GAUGE, {"namespace", "storage_class", "volume_attributes_class"}),
    ("pv_collector_unbound_pvc_count", GAUGE, {"namespace", "storage_class", "volume_attributes_class"}),
    ("volume_operation_total_errors", UNTYPED, {"plugin_name", "operation_name"}),
    ("volume_operation_errors_total", COUNTER, {"plugin_name", "operation_name"}),
    ("retroactive_storageclass_total", COUNTER, set()),
    ("retroactive_storageclass_errors_total", COUNTER, set()),
    # as all of Kubernetes' components with leader election have it
    ("leader_election_master_status", GAUGE, {"name"}),
]


@pytest.mark.parametrize(("name", "kind", "labels"), RULES, ids=[name for name, _, _ in RULES])
def test_a_metric_of_the_rules(name, kind, labels):
    described = CATALOGUE[name]
    assert (described.kind, set(described.labels)) == (kind, labels)


def test_what_no_rule_names_is_prefixed():
    named = {name for name, _, _ in RULES}
    assert {name for name in CATALOGUE if not name.startswith("volumehost_")} == named


def test_no_label_names_a_single_pod_volume_or_message():
    """Their values would have no bound; a claim is what its user made and may be named (METRIC-06)."""
    labels = {label for described in CATALOGUE.values() for label in described.labels}
    assert labels.isdisjoint({"pod", "pod_uid", "uid", "volume", "volume_name", "path", "error", "message"})


def test_the_buckets_of_the_rules():
    assert BUCKETS == (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600)


@pytest.mark.parametrize("name", [name for name, each in CATALOGUE.items() if each.kind != HISTOGRAM])
def test_a_family_has_its_labels_in_the_order_of_the_catalogue(name):
    described = CATALOGUE[name]
    values = tuple(f"value of {label}" for label in described.labels)
    (sample,) = family(name, {values: 3}).samples
    assert (sample.name, sample.value) == (name, 3)
    assert sample.labels == dict(zip(described.labels, values, strict=True))


@pytest.fixture
def counted():
    """Metrics without a manager, with something counted under every name."""
    metrics = NodeMetrics()
    counts = metrics.operations
    labels = OperationLabels("kubernetes.io/csi:disk.example.com", migrated=True, unknown_directory=True)
    counts.observe("volume_mount", 0.3, None, labels)
    counts.observe("volume_mount", 700, OSError("x"), labels)
    counts.mounted(1, labels)
    counts.controlled("volume_provision", 1, None, "example.com/x", migrated=False)
    counts.completed("provision", 1, "example.com/x")
    counts.attempt_failed("provision", 'a "quoted"\nname')
    counts.forced_detach("annotation")
    counts.class_assigned(None)
    counts.class_assigned(OSError("x"))
    return metrics


def test_prometheus_text_is_read_back_as_it_was_counted(counted):
    body, content_type = counted.text("text/html, */*")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for found in parse_text(body.decode())
        for sample in found.samples
    }
    labels = (("migrated", "true"), ("operation_name", "volume_mount"), ("status", "fail-unknown"))
    plugin = ("volume_plugin", "kubernetes.io/csi:disk.example.com")
    bucket = "storage_operation_duration_seconds_bucket"
    assert values[bucket, ("le", "600.0"), *labels, plugin] == 0
    assert values[bucket, ("le", "+Inf"), *labels, plugin] == 1
    odd = ("operation_name", "provision"), ("plugin_name", 'a "quoted"\nname')
    assert values["volume_operation_errors_total", *odd] == values["volume_operation_total_errors", *odd] == 1
    assert values["force_cleaned_failed_volume_operations_total",] == 1
    assert values["force_cleaned_failed_volume_operation_errors_total",] == 1
    assert (values["retroactive_storageclass_total",], values["retroactive_storageclass_errors_total",]) == (1, 1)
    assert not [name for name, *_ in values if name.endswith("_created")]


def test_openmetrics_where_the_scraper_asks_for_it(counted):
    body, content_type = counted.text("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    names = {found.name for found in parse_openmetrics(body.decode())}
    assert {"storage_operation_duration_seconds", "volume_operation_errors", "volumehost_build"} & names


def test_every_family_is_there_once(counted):
    names = [found.name for found in counted.registry.collect()]
    assert len(names) == len(set(names))
