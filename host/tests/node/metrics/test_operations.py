"""Operations, states and what we tell beyond the kubelet, as a scraper sees them (METRIC-01 to -05, -07, -08)."""

import os
import platform
import threading

import pytest

from volumehost import __version__
from volumehost.errors import VolumesFailedError

pytestmark = pytest.mark.root


def pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


def fail(reason):
    raise OSError(reason)


def test_metric01_02_each_run_is_counted_once_by_plugin_name_and_status(measured, scrape, bind, nfs, kept):
    plugin = bind()
    node = measured(plugin)
    node.mount_pod(pod(nfs("a")), timeout=20)
    plugin.trouble["tear_down"] = lambda: fail("busy")
    kept(node, "web", "busy")
    seen = scrape().all("storage_operation_duration_seconds_count")
    assert seen["false", "volume_mount", "success", "example.com/bind"] == 1
    assert seen["false", "volume_unmount", "fail-unknown", "example.com/bind"] >= 1
    assert len(seen) == 2
    del plugin.trouble["tear_down"]
    node.unmount_pod("web", timeout=20)
    seen = scrape().all("storage_operation_duration_seconds_count")
    assert seen["false", "volume_unmount", "success", "example.com/bind"] == 1


def test_metric01_the_buckets_are_kubernetes_own(measured, scrape, bind, nfs):
    measured(bind()).mount_pod(pod(nfs("a")), timeout=20)
    family = scrape().families["storage_operation_duration_seconds"]
    assert family.type == "histogram"
    bounds = [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]
    assert bounds == [
        "0.1",
        "0.25",
        "0.5",
        "1.0",
        "2.5",
        "5.0",
        "10.0",
        "15.0",
        "25.0",
        "50.0",
        "120.0",
        "300.0",
        "600.0",
        "+Inf",
    ]


def test_metric02_attaching_devices_and_their_reverse(measured, scrape, disk, nfs):
    node = measured(disk())
    node.mount_pod(pod(nfs("a")), timeout=20)
    node.unmount_pod("web", timeout=20)
    names = {name for _, name, status, _ in scrape().all("storage_operation_duration_seconds_count")}
    assert names == {"volume_attach", "volume_mount", "volume_unmount", "unmount_device", "volume_detach"}


def test_metric03_the_time_from_the_wish_to_the_mount_counts_failed_tries_and_only_the_first_mount(
    measured, scrape, bind, nfs, clock
):
    plugin = bind()
    plugin.trouble["set_up"] = lambda: fail("not yet")
    node = measured(plugin, clock=clock)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod(nfs("a")), timeout=20, attempts=1)
    assert scrape().all("volume_operation_total_seconds_count") == {}
    del plugin.trouble["set_up"]
    clock.move(30)
    node.parts.reconciler.resync()
    node.mount_pod(pod(nfs("a")), timeout=20)
    node.mount_pod(pod(nfs("a")), timeout=20)
    seen = scrape()
    labels = {"operation_name": "overall_volume_mount", "plugin_name": "example.com/bind"}
    assert seen.value("volume_operation_total_seconds_count", **labels) == 1
    assert seen.value("volume_operation_total_seconds_sum", **labels) >= 30


def test_metric04_volumes_that_are_wanted_and_that_are_mounted(measured, scrape, bind, nfs, until):
    plugin = bind()
    node = measured(plugin)
    node.mount_pod(pod(nfs("a"), nfs("b")), timeout=20)
    plugin.trouble["set_up"] = lambda: fail("no")
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod(nfs("c"), name="other"), timeout=20, attempts=1)
    assert scrape().all("volume_manager_total_volumes") == {
        ("example.com/bind", "desired_state_of_world"): 3,
        ("example.com/bind", "actual_state_of_world"): 2,
    }


def test_metric08_attachments_and_attachable_volumes_in_use(measured, scrape, disk, nfs, data):
    node = measured(disk(), node_name="n1")
    node.mount_pod(pod(nfs("a")), timeout=20)
    node.mount_pod(pod(nfs("a"), name="other"), timeout=20)
    seen = scrape()
    assert seen.all("storage_count_attachable_volumes_in_use") == {("n1", "example.com/disk"): 1}
    assert seen.all("attachdetach_controller_total_volumes") == {
        ("example.com/disk", "desired_state_of_world"): 1,
        ("example.com/disk", "actual_state_of_world"): 1,
    }
    node.unmount_pod("web", timeout=20)
    node.unmount_pod("other", timeout=20)
    assert scrape().all("attachdetach_controller_total_volumes") == {}


def test_metric05_what_a_restart_found_and_what_it_could_not_make_a_volume_of(
    measured, manager, scrape, bind, nfs, root, until
):
    with manager(bind(), enter=False) as node:
        node.mount_pod(pod(nfs("a")), timeout=20)
    os.makedirs(f"{root}/pods/uid-old/volumes/example.com~gone/left")
    os.makedirs(f"{root}/pods/uid-old/volumes/example.com~bind/other")

    class Forgetful(bind):
        def step(self, name, *details):
            if name == "construct_volume_spec":
                raise ValueError("its record is spoilt")
            super().step(name, *details)

    measured(Forgetful(), adopt=True)
    until(lambda: scrape().value("reconstruct_volume_operations_total") == 3)
    assert scrape().value("reconstruct_volume_operations_errors_total") == 2
    until(lambda: scrape().value("force_cleaned_failed_volume_operations_total") == 1)
    assert scrape().value("force_cleaned_failed_volume_operation_errors_total") >= 1  # its plugin is not there


def test_metric07_orphaned_pod_directories_of_the_last_housekeeping(measured, scrape, bind, root):
    node = measured(bind())
    os.makedirs(f"{root}/pods/uid-empty/volumes")
    os.makedirs(f"{root}/pods/uid-data/volumes/example.com~x/v")
    with open(f"{root}/pods/uid-data/volumes/example.com~x/v/file", "w") as file:
        file.write("data")
    node.orphan_care.housekeep()
    seen = scrape()
    assert (seen.value("orphan_pod_cleaned_volumes"), seen.value("orphan_pod_cleaned_volumes_errors")) == (2, 1)
    assert seen.value("volumehost_orphaned_pods_removed_total") == 1


def test_br52_a_stuck_operation_shows_with_its_age_and_its_step(measured, scrape, bind, nfs, clock, until):
    plugin, go = bind(), threading.Event()
    plugin.trouble["set_up"] = lambda: go.wait(60)
    node = measured(plugin, clock=clock)
    node.sync_pod(node.api.create({"apiVersion": "v1", "kind": "Pod", **pod(nfs("a"))}))
    try:
        until(lambda: plugin.count("set_up") == 1)
        seen = scrape()
        assert seen.all("volumehost_operations_running") == {("volume_mount",): 1}
        assert seen.all("volumehost_operations_stuck") == {}
        clock.move(11)
        seen = scrape()
        assert seen.all("volumehost_operations_stuck") == {("volume_mount", "set-up"): 1}
        assert seen.value("volumehost_operations_oldest_seconds", operation_name="volume_mount") == 11
        assert 1 <= seen.value("volumehost_worker_threads") <= seen.value("volumehost_worker_threads_limit")
        assert seen.all("volumehost_pods") == {("mounting",): 1}
    finally:
        go.set()
    until(lambda: scrape().all("volumehost_pods") == {("mounted",): 1})
    assert scrape().all("volumehost_operations_running") == {}


def test_operations_that_are_to_be_tried_again(measured, scrape, bind, nfs, clock):
    plugin = bind()
    plugin.trouble["set_up"] = lambda: fail("no")
    node = measured(plugin, clock=clock)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod(nfs("a")), timeout=20, attempts=1)
    seen = scrape()
    assert seen.all("volumehost_operations_to_retry") == {("volume_mount",): 1}
    assert seen.all("volumehost_pods") == {("failed",): 1}


def test_records_and_this_program(measured, scrape, bind, nfs):
    node = measured(bind())
    node.mount_pod(pod(nfs("a")), timeout=20)
    seen = scrape()
    assert seen.value("volumehost_journal_bytes") > 0
    assert seen.value("volumehost_store_bytes") > 0
    assert seen.value("volumehost_store_errors_total") == 0
    assert seen.value("volumehost_build_info", version=__version__, python_version=platform.python_version()) == 1
    assert seen.value("process_resident_memory_bytes") > 0


def test_metric09_volumes_and_claims_of_the_api(measured, scrape, bind, claimed):
    node = measured(bind(), controllers=True)
    claimed(node.api, "one", volume={"storageClassName": "fast"})
    claimed(node.api, "two", phase="Pending", claim={"storageClassName": "fast"}, reference=False)
    seen = scrape()
    assert seen.all("pv_collector_total_pv_count") == {("example.com/bind", "Filesystem"): 2}
    assert seen.all("pv_collector_unbound_pv_count") == {("fast",): 1, ("",): 1}
    assert seen.all("pv_collector_bound_pvc_count") == {("default", "", ""): 1}
    assert seen.all("pv_collector_unbound_pvc_count") == {("default", "fast", ""): 1}


def test_the_counters_stay_when_the_manager_is_left(measured, metrics, manager, scrape, bind, nfs):
    with manager(bind(), enter=False, metrics=metrics.operations) as node:
        metrics.attach(node)
        node.mount_pod(pod(nfs("a")), timeout=20)
        metrics.detach()
    seen = scrape()
    assert len(seen.all("storage_operation_duration_seconds_count")) == 1
    assert seen.all("volumehost_pods") == {}
    assert seen.all("volumehost_scrape_errors_total") == {}
