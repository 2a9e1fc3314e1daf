"""Checks of raw block volumes: the paths, the device's way to the pod and back, and the rebuilt spec."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from volumehost.testing.conformance.check import check, fail, require
from volumehost.testing.conformance.driving import attach

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.testing.conformance.trial import Trial
    from volumehost.volumes import BlockVolumeMapper, BlockVolumeUnmapper


@check("PLUG-28", "VOL-01", "LAYOUT-01", mode="Block", interface="BlockVolumePlugin")
def block_maps_are_where_the_layout_says(trial: Trial) -> None:
    """get_global_map_path lies below the plugin's volumeDevices directory, get_pod_device_map_path is the pod's
    directory of the plugin and the volume's name, and mapper and unmapper agree.
    """
    mapper, unmapper = _mapper(trial), _unmapper(trial)
    own = trial.host.get_volume_device_plugin_dir(trial.plugin.name)
    paths = [mapper.get_global_map_path(trial.spec), unmapper.get_global_map_path(trial.spec)]
    require(paths[0].startswith(f"{own}/"), f"get_global_map_path is {paths[0]!r}, which is not below {own}")
    require(paths[0] == paths[1], f"the mapper's global map path is {paths[0]!r}, the unmapper's {paths[1]!r}")
    maps = [tuple(mapper.get_pod_device_map_path()), tuple(unmapper.get_pod_device_map_path())]
    wanted = (trial.host.get_pod_volume_device_dir(trial.pod.metadata.uid, trial.plugin.name), trial.spec.name())
    require(maps[0] == wanted, f"get_pod_device_map_path is {maps[0]}, not {wanted}")
    require(maps[0] == maps[1], f"the mapper's pod device map path is {maps[0]}, the unmapper's {maps[1]}")


@check("VOL-07", "VOL-08", mode="Block", interface="BlockVolumePlugin")
def block_volumes_come_and_go(trial: Trial) -> None:
    """set_up_device and map_pod_device can run twice and lead to something; unmap_pod_device and tear_down_device of a
    new plugin object can run twice and leave no mount.
    """
    device = _map(trial)
    require(device and os.path.lexists(device), f"the device for the pod is {device!r}, where there is nothing")
    trial.restart()
    _unmap(trial, device)
    require(not trial.new_mounts(), f"after tear_down_device there is left {'; '.join(trial.new_mounts())}")


@check("PLUG-28", "METRICS-02", mode="Block", interface="BlockVolumePlugin")
def block_metrics_are_supported_or_not(trial: Trial) -> None:
    """supports_metrics returns a bool, the same for mapper and unmapper."""
    answers: list[object] = [_mapper(trial).supports_metrics(), _unmapper(trial).supports_metrics()]
    require(all(isinstance(answer, bool) for answer in answers), f"supports_metrics returned {answers[0]!r}")
    require(answers[0] == answers[1], f"supports_metrics is {answers[0]} for the mapper, {answers[1]} for the unmapper")


@check("PLUG-28", "RECON-10", mode="Block", interface="BlockVolumePlugin")
def the_block_spec_can_be_rebuilt(trial: Trial) -> None:
    """construct_block_volume_spec gives a spec of the volume's name and volumeMode Block that the plugin supports."""
    device = _map(trial)
    trial.restart()
    path, name = _unmapper(trial).get_pod_device_map_path()
    try:
        spec = trial.plugin.construct_block_volume_spec(trial.pod.metadata.uid, trial.spec.name(), f"{path}/{name}")
    finally:
        _unmap(trial, device)
    require(spec.name() == trial.spec.name(), f"the rebuilt spec is named {spec.name()!r}, not {trial.spec.name()!r}")
    require(spec.volume_mode() == "Block", f"the rebuilt spec has volumeMode {spec.volume_mode()}")
    require(trial.plugin.can_support(spec) is True, f"can_support is false for the rebuilt spec {spec!r}")


def _map(trial: Trial) -> str:
    """All that the plugin does until the pod has the device, each step twice; returns the device."""
    trial.will_let_go()
    device = attach(trial.plugin, trial.spec, trial.pod, trial.host.get_node_name())
    mapper: Any = _mapper(trial)
    for _ in range(2):
        if hasattr(mapper, "set_up_device"):
            mapper.set_up_device()
            device = mapper.map_pod_device() or device
    return device


def _unmap(trial: Trial, device: str) -> None:
    unmapper: Any = _unmapper(trial)
    if hasattr(unmapper, "unmap_pod_device"):
        _twice(unmapper.unmap_pod_device, "unmap_pod_device")
        path = unmapper.get_global_map_path(trial.spec)
        _twice(lambda: unmapper.tear_down_device(path, device), "tear_down_device")
    trial.let_go()


def _mapper(trial: Trial) -> BlockVolumeMapper:
    return trial.plugin.new_block_volume_mapper(trial.spec, trial.pod)


def _unmapper(trial: Trial) -> BlockVolumeUnmapper:
    return trial.plugin.new_block_volume_unmapper(trial.spec.name(), trial.pod.metadata.uid)


def _twice(call: Callable[[], None], what: str) -> None:
    call()
    try:
        call()
    except Exception as error:  # noqa: BLE001 - that it raises is the finding
        fail(f"the second {what} raised {type(error).__name__}: {error}")
