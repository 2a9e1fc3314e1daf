"""What a scraper sees of a claim's whole life: the host's metrics and those of the CSI plugin in one text (METRIC-01
to -09, CSI-MET-01 to -05)."""

import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from volumehost.api.objects import PersistentVolumeClaim, StorageClass
from volumehost.metrics import volume_stats
from volumehost.metrics.exposition import NodeMetrics
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

PLUGIN = "kubernetes.io/csi:fake.csi.example.com"


@pytest.fixture
def metrics():
    return NodeMetrics()


@pytest.fixture
def node(manager, metrics, monkeypatch):
    monkeypatch.setattr(volume_stats, "LOOK_SECONDS", 0.05)
    made = manager(metrics=metrics.operations)
    metrics.attach(made)
    yield made
    metrics.detach()


@pytest.fixture
def scrape(metrics):
    """Values by name and the values of the labels, sorted by label."""

    def read():
        found = {}
        for family in text_string_to_metric_families(metrics.text()[0].decode()):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(value for _, value in sorted(sample.labels.items()))] = (
                    sample.value
                )
        return found

    return read


def test_the_life_of_a_claim(node, driver, claim, pod, scrape, until):
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    seen = scrape()
    operations = seen["storage_operation_duration_seconds_count"]
    assert {name for _, name, _, _ in operations} == {"volume_provision", "volume_attach", "volume_mount"}
    assert {(migrated, plugin) for migrated, _, _, plugin in operations} == {("false", PLUGIN)}
    totals = seen["volume_operation_total_seconds_count"]
    assert totals["overall_volume_mount", PLUGIN] == totals["provision", PLUGIN] == 1
    calls = {method.rpartition("/")[2] for _, _, method, _ in seen["csi_operations_seconds_count"]}
    assert {"CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"} <= calls
    assert seen["volumehost_driver_up"] == {("fake.csi.example.com",): 1}
    assert seen["volume_manager_total_volumes"] == {
        (PLUGIN, "desired_state_of_world"): 1,
        (PLUGIN, "actual_state_of_world"): 1,
    }
    assert seen["attachdetach_controller_total_volumes"][PLUGIN, "actual_state_of_world"] == 1
    assert seen["pv_collector_total_pv_count"] == {(PLUGIN, "Filesystem"): 1}
    assert seen["pv_collector_bound_pvc_count"] == {("default", "fake", ""): 1}

    until(lambda: ("default", "claim") in scrape().get("kubelet_volume_stats_capacity_bytes", {}))
    seen = scrape()
    assert seen["kubelet_volume_stats_capacity_bytes"]["default", "claim"] > 0
    assert seen["kubelet_volume_metric_collection_duration_seconds_count"]["fake.csi.example.com",] >= 1

    node.unmount_pod("web", timeout=60)
    node.api.delete(PersistentVolumeClaim, "claim", "default")
    until(lambda: ("delete", PLUGIN) in scrape()["volume_operation_total_seconds_count"])
    seen = scrape()
    operations = {name for _, name, _, _ in seen["storage_operation_duration_seconds_count"]}
    assert operations >= {"volume_unmount", "unmount_device", "volume_detach", "volume_delete"}
    assert seen.get("volumehost_scrape_errors_total", {}) == {}
    until(lambda: "kubelet_volume_stats_capacity_bytes" not in scrape())


def test_metric09_failed_provisioning_is_counted_and_the_total_goes_from_the_first_attempt(
    node, driver, claim, scrape, until
):
    began = time.perf_counter()
    driver.script(Rule("CreateVolume", code="INTERNAL", times=1))
    claim(node.api)
    assert node.control
    until(lambda: ("provision", PLUGIN) in scrape().get("volume_operation_total_seconds_count", {}), 60)
    seen = scrape()
    failed = seen["volume_operation_errors_total"]
    assert failed["provision", PLUGIN] == seen["volume_operation_total_errors"]["provision", PLUGIN] == 1
    operations = seen["storage_operation_duration_seconds_count"]
    assert operations["false", "volume_provision", "fail-unknown", PLUGIN] == 1
    assert operations["false", "volume_provision", "success", PLUGIN] == 1
    took = seen["volume_operation_total_seconds_sum"]["provision", PLUGIN]
    assert 1.0 < took < time.perf_counter() - began


def test_metric09_a_claim_without_a_class_gets_the_default_one(node, driver, claim, scrape, until):
    fake = node.api.get(StorageClass, "fake")
    fake.metadata.annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    claim(node.api, storage_class=None)
    assert node.control
    until(node.control.settled)
    assert scrape()["retroactive_storageclass_total"] == {(): 0}
    node.api.replace(fake)
    until(lambda: scrape()["retroactive_storageclass_total"] == {(): 1})


def test_metric02_a_claim_that_grows(node, driver, claim, pod, scrape, until):
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    asked = node.api.get(PersistentVolumeClaim, "claim", "default")
    asked.spec.resources.requests = {"storage": "32Mi"}
    node.api.replace(asked)

    def names():
        return {(name, status) for _, name, status, _ in scrape()["storage_operation_duration_seconds_count"]}

    until(lambda: {("expand_volume", "success"), ("volume_fs_resize", "success")} <= names())
