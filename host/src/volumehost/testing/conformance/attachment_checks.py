"""Checks of attaching volumes to the node, and of mounting their device once for all pods."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.testing.conformance.check import check, fail, not_applicable, require
from volumehost.testing.conformance.driving import (
    ATTACH_TIMEOUT,
    attach,
    has_device_mount,
    mount_device,
    needs_attaching,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.testing.conformance.trial import Trial


@check("PLUG-24", "PLUG-25", mode="", interface="DeviceMountableVolumePlugin")
def questions_about_the_device_are_answered_with_yes_or_no(trial: Trial) -> None:
    """can_device_mount, can_attach and verify_exhausted_resource return a bool."""
    plugin, spec = trial.plugin, trial.spec
    answers: dict[str, object] = {"can_device_mount": plugin.can_device_mount(spec)}
    if plugin.supports(_attachable()):
        answers["can_attach"] = plugin.can_attach(spec)
        answers["verify_exhausted_resource"] = plugin.verify_exhausted_resource(spec)
    for hook, answer in answers.items():
        require(isinstance(answer, bool), f"{hook} returned {answer!r}, not a bool")


@check("VOL-10", mode="", interface="AttachableVolumePlugin")
def attaching_twice_gives_the_same_device(trial: Trial) -> None:
    """An attach of a volume that is attached to the node already returns the same path; wait_for_attach finds it."""
    node = _require_attaching(trial)
    attacher = trial.plugin.new_attacher()
    paths = [attacher.attach(trial.spec, node), trial.plugin.new_attacher().attach(trial.spec, node)]
    require(paths[0] == paths[1], f"attach returned {paths[0]!r} at first, then {paths[1]!r}")
    device = attacher.wait_for_attach(trial.spec, paths[0], trial.pod, ATTACH_TIMEOUT)
    require(os.path.lexists(device), f"wait_for_attach returned {device!r}, where there is nothing")


@check("VOL-10", "VOL-11", mode="", interface="AttachableVolumePlugin")
def volumes_are_attached_tells_the_truth(trial: Trial) -> None:
    """volumes_are_attached answers for each spec: true after attach, false after detach."""
    node = _require_attaching(trial)
    attacher, spec = trial.plugin.new_attacher(), trial.spec
    attacher.attach(spec, node)
    answer = dict(attacher.volumes_are_attached([spec], node))
    require(answer.get(spec) is True, f"after attach volumes_are_attached says {answer.get(spec)!r}")
    trial.plugin.new_detacher().detach(trial.plugin.get_volume_name(spec), node)
    answer = dict(attacher.volumes_are_attached([spec], node))
    require(answer.get(spec) is False, f"after detach volumes_are_attached says {answer.get(spec)!r}")


@check("PLUG-03", "VOL-11", "VOL-12", mode="", interface="AttachableVolumePlugin")
def a_new_plugin_detaches_what_an_old_one_attached(trial: Trial) -> None:
    """A detach works from the volume name alone, in a plugin object that attached nothing, and is harmless the second
    time.
    """
    node = _require_attaching(trial)
    trial.plugin.new_attacher().attach(trial.spec, node)
    name = trial.plugin.get_volume_name(trial.spec)
    trial.restart()
    _twice(lambda: trial.plugin.new_detacher().detach(name, node), "detach")
    answer = dict(trial.plugin.new_attacher().volumes_are_attached([trial.spec], node))
    require(answer.get(trial.spec) is False, f"after detach volumes_are_attached says {answer.get(trial.spec)!r}")


@check("VOL-10", "LAYOUT-01", interface="DeviceMountableVolumePlugin")
def the_device_mount_path_is_the_plugins_own(trial: Trial) -> None:
    """get_device_mount_path is absolute, below the plugin's directory, and the same for every plugin object."""
    _require_device_mount(trial)
    path = trial.plugin.new_device_mounter().get_device_mount_path(trial.spec)
    own = trial.host.get_plugin_dir(trial.plugin.name)
    require(path.startswith(f"{own}/"), f"it is {path!r}, which is not below {own}")
    again = trial.restart().new_device_mounter().get_device_mount_path(trial.spec)
    require(again == path, f"it is {path!r}, and {again!r} after a restart")


@check("VOL-10", "MOUNTOP-07", interface="DeviceMountableVolumePlugin")
def mounting_the_device_twice_is_harmless(trial: Trial) -> None:
    """mount_device of a device that is mounted at the path succeeds and mounts nothing on top."""
    path = _mount(trial)
    mounts = trial.new_mounts()
    require(any(mount.startswith(f"{path} ") for mount in mounts), f"after mount_device nothing is mounted at {path}")
    mount_device(trial.plugin, trial.spec, attach(trial.plugin, trial.spec, trial.pod, trial.host.get_node_name()))
    require(len(trial.new_mounts()) == len(mounts), f"the second mount_device left {'; '.join(trial.new_mounts())}")


@check("VOL-11", "VOL-12", interface="DeviceMountableVolumePlugin")
def a_new_plugin_unmounts_the_device_of_an_old_one(trial: Trial) -> None:
    """unmount_device works from the path alone, in a plugin object that mounted nothing, leaves nothing at the path,
    and is harmless the second time.
    """
    path = _mount(trial)
    trial.restart()
    _twice(lambda: trial.plugin.new_device_unmounter().unmount_device(path), "unmount_device")
    left = [mount for mount in trial.new_mounts() if mount.startswith(f"{path} ")]
    require(not left, f"after unmount_device there is left {'; '.join(left)}")
    require(not os.path.lexists(path), f"after unmount_device there still is {path}")


@check("PLUG-24", "MOUNT-33", interface="DeviceMountableVolumePlugin")
def device_mount_refs_are_the_mounts_of_pods(trial: Trial) -> None:
    """get_device_mount_refs names the other mounts of the device, so none when no pod has the volume."""
    path = _mount(trial)
    pods_path = trial.set_up().path
    refs = list(trial.plugin.get_device_mount_refs(path))
    require(path not in refs, f"get_device_mount_refs names {path} itself")
    if trial.host.get_mounter().is_mount_point(pods_path):
        require(
            pods_path in refs, f"get_device_mount_refs says {refs}, without {pods_path}, where a pod has the volume"
        )
    trial.tear_down()
    refs = list(trial.plugin.get_device_mount_refs(path))
    require(not refs, f"when no pod has the volume, get_device_mount_refs says {refs}")


def _attachable() -> type:
    from volumehost.hookspecs import AttachableVolumePlugin

    return AttachableVolumePlugin


def _require_attaching(trial: Trial) -> str:
    """The node's name; the check does not apply to a volume that is not attached."""
    if not needs_attaching(trial.plugin, trial.spec):
        not_applicable(f"can_attach is false for the volume {trial.spec.name()}")
    trial.will_let_go()
    return trial.host.get_node_name()


def _require_device_mount(trial: Trial) -> None:
    if not has_device_mount(trial.plugin, trial.spec):
        not_applicable(f"can_device_mount is false for the volume {trial.spec.name()}")


def _mount(trial: Trial) -> str:
    """Mount the device; its path."""
    _require_device_mount(trial)
    trial.stage()
    return trial.plugin.new_device_mounter().get_device_mount_path(trial.spec)


def _twice(call: Callable[[], None], what: str) -> None:
    call()
    try:
        call()
    except Exception as error:  # noqa: BLE001 - that it raises is the finding
        fail(f"the second {what} raised {type(error).__name__}: {error}")
