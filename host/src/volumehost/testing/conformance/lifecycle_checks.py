"""Checks of the ordinary life of a volume: set up, used, set up again, torn down, torn down again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import OperationNotSupportedError, VolumeHostError
from volumehost.testing.conformance.check import check, fail, not_applicable, require
from volumehost.testing.conformance.driving import arguments_for, let_go, mount_device
from volumehost.testing.conformance.driving import attach as attach_volume
from volumehost.testing.conformance.support_checks import wire
from volumehost.volumes import Attributes

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial


@check("VOL-01", "VOL-03", "VOL-05")
def it_can_be_set_up(trial: Trial) -> None:
    """After set_up there is something at the absolute path that get_path tells, and get_attributes gives Attributes."""
    mounted = trial.set_up()
    require(os.path.isabs(mounted.path), f"get_path() is {mounted.path!r}, which is not absolute")
    attributes: object = mounted.attributes
    require(isinstance(attributes, Attributes), f"get_attributes() is {attributes!r}, not Attributes")


@check("VOL-03", "VOL-05")
def its_content_can_be_written(trial: Trial) -> None:
    """Files can be written into the volume unless it is read-only, and are there for who reads them."""
    mounted = trial.set_up()
    if not mounted.writable:
        reason = "is no directory" if not os.path.isdir(mounted.path) else "is read-only"
        not_applicable(f"the volume {trial.spec.name()} {reason}")
    try:
        content = trial.put_content(mounted)
    except OSError as error:
        fail(f"{mounted.path} cannot be written, and neither spec nor attributes say read-only: {error}")
    content.require_kept("writing")


@check("VOL-05", "MOUNTOP-15")
def set_up_twice_is_harmless(trial: Trial) -> None:
    """A set_up of a volume that is set up succeeds, keeps its content and its path, and mounts nothing on top."""
    first = trial.set_up()
    content = trial.put_content(first)
    mounts = trial.new_mounts()
    second = trial.set_up()
    require(second.path == first.path, f"the second set_up gave another path: {second.path}, not {first.path}")
    content.require_kept("the second set_up")
    more = len(trial.new_mounts()) - len(mounts)
    require(more <= 0, f"the second set_up made {more} more mount(s): {'; '.join(trial.new_mounts())}")


@check("VOL-06", "LAYOUT-01")
def tear_down_leaves_nothing(trial: Trial) -> None:
    """After tear_down (and unmounting and detaching its device) no mount, directory or file of the volume is left."""
    trial.put_content(trial.set_up())
    trial.tear_down(keep_content=True)
    trial.let_go()
    trial.require_nothing_left()


@check("VOL-06")
def tear_down_twice_is_harmless(trial: Trial) -> None:
    """A tear_down of a volume that is gone succeeds."""
    trial.set_up()
    trial.tear_down()
    _second(trial, "the second tear_down")


@check("VOL-06", "EMPTYDIR-41")
def tear_down_without_set_up_is_harmless(trial: Trial) -> None:
    """A tear_down of a volume that was never set up succeeds: after a crash nobody knows whether it was."""
    _second(trial, "tear_down of a volume that was never set up")


def _second(trial: Trial, what: str) -> None:
    try:
        trial.tear_down()
    except Exception as error:  # noqa: BLE001 - that it raises is the finding
        fail(f"{what} raised {type(error).__name__}: {error}")
    require(not trial.leftovers(trial.pod), f"{what} left {'; '.join(trial.leftovers(trial.pod))}")


@check("VOL-05")
def it_can_be_set_up_again_after_tear_down(trial: Trial) -> None:
    """A pod that comes back gets its volume again, after it was torn down to the last step."""
    trial.set_up()
    trial.tear_down()
    trial.let_go()
    trial.put_content(trial.set_up()).require_kept("set_up, tear_down and set_up")
    trial.tear_down()
    trial.let_go()
    trial.require_nothing_left(after="the second tear_down")


@check("VOL-05", "VOL-06", "WRAP-01")
def it_can_be_set_up_at_another_directory(trial: Trial) -> None:
    """set_up_at and tear_down_at work at the directory of another plugin, which wraps this one, and leave nothing."""
    args, node = arguments_for(trial.pod), trial.host.get_node_name()
    directory = trial.host.get_pod_volume_dir(trial.pod.metadata.uid, "example.com/wrapping", "wrapped")
    mount_device(trial.plugin, trial.spec, attach_volume(trial.plugin, trial.spec, trial.pod, node))
    mounter = trial.plugin.new_mounter(trial.spec, trial.pod)
    try:
        mounter.set_up_at(directory, args)
    except OperationNotSupportedError as error:
        not_applicable(f"set_up_at: {error.reason}")
    require(os.path.lexists(directory), f"after set_up_at there is nothing at {directory}")
    mounter.set_up_at(directory, args)
    unmounter = trial.plugin.new_unmounter(trial.spec.name(), trial.pod.metadata.uid)
    for _ in range(2):
        unmounter.tear_down_at(directory)
    let_go(trial.plugin, trial.spec, node)
    require(not os.path.lexists(directory), f"after tear_down_at there still is {directory}")
    trial.require_nothing_left(after="tear_down_at")


@check("PLUG-06")
def spec_and_pod_are_only_lent(trial: Trial) -> None:
    """The plugin changes neither the spec nor the pod that it is handed."""
    from volumehost.api.convert import to_wire

    spec, pod = wire(trial.spec), to_wire(trial.pod)
    trial.set_up()
    trial.tear_down()
    trial.let_go()
    require(wire(trial.spec) == spec, f"the spec was changed: {wire(trial.spec)}, which was {spec}")
    require(to_wire(trial.pod) == pod, "the pod was changed")


@check("ERR-01", "MOUNTOP-01")
def a_mount_that_fails_raises_from_the_tree_and_leaves_nothing(trial: Trial) -> None:
    """When the kernel refuses to mount, set_up raises an error of the tree, and tear_down then leaves nothing."""
    faults = trial.use_faulty_mounter()
    trial.plugin  # noqa: B018 - loaded before mounting begins to fail
    faults.failing = True
    error: Exception | None = None
    try:
        trial.set_up()
    except Exception as raised:  # noqa: BLE001 - which kind it is will be looked at
        error = raised
    faults.failing = False
    if not faults.refused:
        not_applicable("set_up mounts nothing with the host's mounter")
    if error is None:
        fail("set_up succeeded although every mount was refused")
    require(
        isinstance(error, VolumeHostError),
        f"set_up raised {type(error).__name__}: {error}, which is no VolumeHostError",
    )
    trial.tear_down()
    trial.let_go()
    trial.require_nothing_left(after="the failed set_up and a tear_down")
