"""Checks of a volume's metrics and of its ownership: what a node asks and does once the volume is there."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from volumehost.errors import MetricsError, NotSupportedMetricsError
from volumehost.testing.conformance.check import check, fail, not_applicable, require
from volumehost.testing.conformance.driving import arguments_for
from volumehost.volumes import VolumeMetrics

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial

_GROUP = 2000
_FIRST_MOMENT = 1_000_000_000  # seconds since the epoch: a clock that shows less was not asked


@check("VOL-02", "METRICS-01", "METRICS-10")
def metrics_are_sensible_or_not_supported(trial: Trial) -> None:
    """get_metrics of a volume that is set up gives numbers that can be true, or raises NotSupportedMetricsError."""
    mounted = trial.set_up()
    metrics = _measure(mounted.mounter.get_metrics, "the mounter")
    if metrics is None:
        not_applicable("get_metrics: not supported")
    require(
        _FIRST_MOMENT < metrics.time <= time.time(),
        f"time is {metrics.time!r}, not the seconds since the epoch at which measuring began",
    )
    numbers = {field.name: getattr(metrics, field.name) for field in fields(metrics)}
    for name in ("used", "capacity", "available", "inodes_used", "inodes", "inodes_free"):
        value = numbers[name]
        require(value is None or (isinstance(value, int) and value >= 0), f"{name} is {value!r}")
    for part in ("available", "used"):
        value = numbers[part]
        if value is not None and metrics.capacity:
            require(value <= metrics.capacity, f"{part} is {value}, more than the capacity {metrics.capacity}")


@check("VOL-02", "VOL-06", "METRICS-01")
def metrics_of_what_is_gone_raise_from_the_tree(trial: Trial) -> None:
    """get_metrics of a volume that is not there, asked of mounter or unmounter, returns or raises a MetricsError."""
    mounter = trial.set_up().mounter
    trial.tear_down()
    unmounter = trial.plugin.new_unmounter(trial.spec.name(), trial.pod.metadata.uid)
    for what, measure in (("mounter", mounter.get_metrics), ("unmounter", unmounter.get_metrics)):
        try:
            _measure(measure, f"the {what}, after tear_down,")
        except MetricsError:
            continue


def _measure(get_metrics: Callable[[], VolumeMetrics], who: str) -> VolumeMetrics | None:
    """The metrics, None when they are not supported."""
    try:
        metrics: object = get_metrics()
    except NotSupportedMetricsError:
        return None
    except MetricsError:
        raise
    except Exception as error:  # noqa: BLE001 - an error from outside of the tree is the finding
        fail(f"get_metrics of {who} raised {type(error).__name__}: {error}, which is no MetricsError")
    require(isinstance(metrics, VolumeMetrics), f"get_metrics of {who} returned {metrics!r}, not VolumeMetrics")
    assert isinstance(metrics, VolumeMetrics)
    return metrics


@check("FSGRP-03", "VOL-03", "VOL-04")
def the_group_of_the_pod_owns_a_managed_volume(trial: Trial) -> None:
    """When attributes say managed, the pod's fsGroup owns the volume's directory and may write in it, and what is made
    in it later belongs to the group too.
    """
    mounted = trial.set_up(args=replace(arguments_for(trial.pod), fs_group=_GROUP))
    if not mounted.attributes.managed:
        not_applicable("its attributes do not say managed: ownership is not the host's to change")
    if not os.path.isdir(mounted.path):
        not_applicable(f"{mounted.path} is no directory")
    status = os.stat(mounted.path)
    wanted = 0o050 if mounted.attributes.read_only else 0o070
    require(status.st_gid == _GROUP, f"{mounted.path} belongs to group {status.st_gid}, not to fsGroup {_GROUP}")
    mode = stat.S_IMODE(status.st_mode)
    require(mode & wanted == wanted, f"{mounted.path} has mode {mode:04o}: too little for the group")
    require(mode & stat.S_ISGID, f"{mounted.path} has mode {mode:04o}: no setgid bit, so new files have another group")
