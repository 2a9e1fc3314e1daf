"""Every metric that this room tells, with its type, labels and meaning; families and the reference page go by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Upper bounds of durations in seconds (METRIC-01, CSI-MET-01).
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)

GAUGE, COUNTER, HISTOGRAM, UNTYPED = "gauge", "counter", "histogram", "untyped"


@dataclass(frozen=True, slots=True)
class Described:
    """One metric; ``name`` as it is told, so that a counter's ends in ``_total``."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def _all(*described: tuple[str, str, str, str]) -> dict[str, Described]:
    return {name: Described(name, kind, tuple(labels.split()), text) for name, kind, labels, text in described}


_OPERATIONS = _all(
    (
        "storage_operation_duration_seconds", HISTOGRAM, "volume_plugin operation_name status migrated",
        "How long each run of an operation on a volume took",
    ),
    (
        "volume_operation_total_seconds", HISTOGRAM, "plugin_name operation_name",
        "How long it took from the wish to its fulfilment, over all runs",
    ),
    (
        "volume_operation_errors_total", COUNTER, "plugin_name operation_name",
        "Attempts to provision or delete a volume that failed",
    ),
    (
        "volume_operation_total_errors", UNTYPED, "plugin_name operation_name",
        "The older name of volume_operation_errors_total",
    ),
    (
        "attach_detach_controller_attachdetach_controller_forced_detaches", UNTYPED, "reason",
        "Detaches from a node that still used the volume: an operator said so, or it was beyond help",
    ),
    (
        "retroactive_storageclass_total", COUNTER, "",
        "Claims without a class that were given the default one",
    ),
    (
        "retroactive_storageclass_errors_total", COUNTER, "",
        "Claims without a class to which the default one could not be given",
    ),
)  # fmt: skip

_NODE = _all(
    (
        "volume_manager_total_volumes", GAUGE, "plugin_name state",
        "Volumes of pods that are wanted, and that are mounted",
    ),
    (
        "storage_count_attachable_volumes_in_use", GAUGE, "node volume_plugin",
        "Volumes that have to be attached and that pods of the node use",
    ),
    (
        "attachdetach_controller_total_volumes", GAUGE, "plugin_name state",
        "Attachments that are wanted, and that are there",
    ),
    (
        "reconstruct_volume_operations_total", COUNTER, "",
        "Volumes of pods that this start found, in the journal or by their directories",
    ),
    (
        "reconstruct_volume_operations_errors_total", COUNTER, "",
        "Of those the directories that no plugin could make a volume of",
    ),
    (
        "force_cleaned_failed_volume_operations_total", COUNTER, "",
        "Such directories that were torn down by their name alone",
    ),
    (
        "force_cleaned_failed_volume_operation_errors_total", COUNTER, "",
        "Attempts at that which failed",
    ),
    (
        "orphan_pod_cleaned_volumes", GAUGE, "",
        "Pod directories of unknown pods that the last housekeeping met",
    ),
    (
        "orphan_pod_cleaned_volumes_errors", GAUGE, "",
        "Of those the ones that it left, since something is in them or they could not be removed",
    ),
)  # fmt: skip

_SELINUX = _all(
    *(
        (f"volume_manager_selinux_{what}_total", GAUGE, labels, text)
        for what, labels, text in (
            ("container_errors", "access_mode", "Volumes that are not mounted: a label cannot be made"),
            ("container_warnings", "access_mode", "The same where it will matter one day"),
            (
                "pod_context_mismatch_errors", "access_mode",
                "Volumes that are not mounted: containers of one pod want different SELinux labels for it",
            ),
            ("pod_context_mismatch_warnings", "access_mode", "The same where it will matter one day"),
            (
                "volume_context_mismatch_errors", "access_mode volume_plugin",
                "Volumes that are not mounted: another pod has them with another SELinux label",
            ),
            (
                "volume_context_mismatch_warnings", "access_mode volume_plugin",
                "The same where it will matter one day",
            ),
            ("volumes_admitted", "access_mode volume_plugin", "Volumes that are mounted with an SELinux label"),
        )
    )
)  # fmt: skip

_CLAIMS = _all(
    ("pv_collector_total_pv_count", GAUGE, "plugin_name volume_mode", "PersistentVolumes"),
    ("pv_collector_bound_pv_count", GAUGE, "storage_class", "PersistentVolumes in phase Bound"),
    ("pv_collector_unbound_pv_count", GAUGE, "storage_class", "PersistentVolumes in another phase"),
    (
        "pv_collector_bound_pvc_count", GAUGE, "namespace storage_class volume_attributes_class",
        "PersistentVolumeClaims in phase Bound",
    ),
    (
        "pv_collector_unbound_pvc_count", GAUGE, "namespace storage_class volume_attributes_class",
        "PersistentVolumeClaims in another phase",
    ),
)  # fmt: skip

_STATS = _all(
    *(
        (f"kubelet_volume_stats_{what}", GAUGE, "namespace persistentvolumeclaim", text)
        for what, text in (
            ("capacity_bytes", "Size of the volume of a claim"),
            ("available_bytes", "Bytes that can still be written to it"),
            ("used_bytes", "Bytes that are in it"),
            ("inodes", "Inodes that it has in all"),
            ("inodes_free", "Inodes that are free"),
            ("inodes_used", "Inodes that are used"),
            ("health_status_abnormal", "1 when its driver says that it is not as it should be, 0 when it says it is"),
        )
    ),
    (
        "kubelet_volume_metric_collection_duration_seconds", HISTOGRAM, "metric_source",
        "How long it took to measure a volume, by how it was measured",
    ),
    (
        "volumehost_volume_stats_unanswered", GAUGE, "volume_plugin",
        "Volumes that have been measured for more than 10 seconds without an answer; their values are not told",
    ),
    (
        "volumehost_volume_stats_errors_total", COUNTER, "volume_plugin",
        "How often a volume could not be measured",
    ),
)  # fmt: skip

_OWN = _all(
    ("volumehost_build_info", GAUGE, "version python_version", "Always 1: the program and the Python that runs it"),
    ("volumehost_operations_running", GAUGE, "operation_name", "Operations that a worker is at"),
    (
        "volumehost_operations_oldest_seconds", GAUGE, "operation_name",
        "Age of the operation that has been running, or waiting for a worker, for the longest time",
    ),
    (
        "volumehost_operations_stuck", GAUGE, "operation_name step",
        "Operations that have been running for more than 10 seconds, by the step that they are at",
    ),
    ("volumehost_operations_waiting", GAUGE, "", "Operations that wait for a worker"),
    ("volumehost_operations_to_retry", GAUGE, "operation_name", "Operations that failed and are to be tried again"),
    ("volumehost_worker_threads", GAUGE, "", "Threads for operations"),
    ("volumehost_worker_threads_limit", GAUGE, "", "Threads for operations at most"),
    ("volumehost_pods", GAUGE, "state", "Pods of this node by the state of their volumes"),
    ("volumehost_orphaned_pods_removed_total", COUNTER, "", "Pod directories of unknown pods that were removed"),
    ("volumehost_journal_bytes", GAUGE, "", "Size of the journal"),
    ("volumehost_store_bytes", GAUGE, "", "Size of the embedded store with its log"),
    (
        "volumehost_store_errors_total", COUNTER, "",
        "Reads and writes of the embedded store by this process that failed because of the file",
    ),
    ("volumehost_driver_state", GAUGE, "driver_name state", "Always 1: the state that each storage driver is in"),
    (
        "volumehost_driver_up", GAUGE, "driver_name",
        "Whether a storage driver answers; not told of one that is stopped because nobody needs it",
    ),
    (
        "volumehost_driver_restarts_total", COUNTER, "driver_name",
        "How often the process of a supervised storage driver was started again",
    ),
    (
        "volumehost_scrape_errors_total", COUNTER, "part",
        "How often a part of the metrics was left out of a scrape because it failed or did not answer",
    ),
)  # fmt: skip

_CONTROLLERS = _all(
    (
        "leader_election_master_status", GAUGE, "name",
        "Whether this controller is the one that the lease of that name elects",
    ),
    (
        "volumehost_controller_failing_objects", GAUGE, "controller",
        "Objects that a controller could not get on with at its last attempt",
    ),
)  # fmt: skip

#: By name.
CATALOGUE: Final = {**_OPERATIONS, **_NODE, **_SELINUX, **_CLAIMS, **_STATS, **_OWN, **_CONTROLLERS}
