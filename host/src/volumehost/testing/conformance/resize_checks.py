"""Checks of the interfaces that change a volume's size: by the control plane, on the node, while the pod runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError, OperationNotSupportedError, VolumeHostError
from volumehost.sdk.quantity import parse_quantity
from volumehost.testing.conformance.check import check, fail, not_applicable, require
from volumehost.testing.conformance.driving import attach, has_device_mount
from volumehost.volumes import NodeResizeOptions

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial

_DEFAULT_SIZE = 64 << 20


@check("PLUG-26", "PLUG-27", "PLUG-32", of_volume=False)
def requires_fs_resize_is_answered_with_yes_or_no(trial: Trial) -> None:
    """requires_fs_resize returns a bool, which counts for growing by the control plane and on the node alike."""
    from volumehost.hookspecs import ExpandableVolumePlugin, NodeExpandableVolumePlugin

    plugin = trial.plugin
    if not plugin.supports(ExpandableVolumePlugin) and not plugin.supports(NodeExpandableVolumePlugin):
        not_applicable("it is neither an ExpandableVolumePlugin nor a NodeExpandableVolumePlugin")
    answer: object = plugin.requires_fs_resize()
    require(isinstance(answer, bool), f"requires_fs_resize returned {answer!r}, not a bool")


@check("PLUG-26", mode="", interface="ExpandableVolumePlugin")
def expanding_gives_at_least_what_was_asked_for(trial: Trial) -> None:
    """expand_volume_device returns the size in bytes that the volume has then, at least the one asked for; asked for
    the same again it does nothing.
    """
    trial.will_let_go()
    attach(trial.plugin, trial.spec, trial.pod, trial.host.get_node_name())
    old = _size(trial)
    new = 2 * old
    for _ in range(2):
        size: object = trial.plugin.expand_volume_device(trial.spec, new, old)
        require(type(size) is int, f"expand_volume_device returned {size!r}, not a number of bytes")
        require(isinstance(size, int) and size >= new, f"asked for {new} bytes it returned {size}")


@check("PLUG-27", "ERR-06", interface="NodeExpandableVolumePlugin")
def growing_on_the_node_keeps_the_content(trial: Trial) -> None:
    """node_expand of a mounted volume returns whether it did something, keeps the content, and can run twice."""
    mounted = trial.set_up()
    content = trial.put_content(mounted)
    plugin, spec = trial.plugin, trial.spec
    path = mounted.path
    if has_device_mount(plugin, spec):
        path = plugin.new_device_mounter().get_device_mount_path(spec)
    old = _size(trial)
    options = NodeResizeOptions(
        volume_spec=spec,
        device_path=attach(plugin, spec, trial.pod, trial.host.get_node_name()),
        device_mount_path=path,
        device_stage_path=path,
        new_size=2 * old,
        old_size=old,
    )
    for _ in range(2):
        try:
            done: object = plugin.node_expand(options)
        except (OperationNotSupportedError, FailedPreconditionError) as error:
            not_applicable(f"node_expand of a mounted volume: {error}")
        require(isinstance(done, bool), f"node_expand returned {done!r}, not a bool")
        content.require_kept("node_expand")


@check("PLUG-29", interface="ResizableEphemeralVolumePlugin")
def resizing_while_the_pod_runs_keeps_the_content(trial: Trial) -> None:
    """resize_ephemeral_volume to more, to less and to no limit keeps the content and the mount."""
    mounted = trial.set_up()
    content = trial.put_content(mounted)
    mounts = len(trial.new_mounts())
    for size in (2 * _DEFAULT_SIZE, _DEFAULT_SIZE, None):
        try:
            trial.plugin.resize_ephemeral_volume(trial.spec, trial.pod, size)
        except OperationNotSupportedError as error:
            not_applicable(f"resize_ephemeral_volume: {error}")
        what = "resize_ephemeral_volume to " + (f"{size} bytes" if size is not None else "no limit")
        content.require_kept(what)
        require(len(trial.new_mounts()) == mounts, f"{what} changed the mounts: {'; '.join(trial.new_mounts())}")


@check("PLUG-29", "ERR-06", interface="ResizableEphemeralVolumePlugin")
def a_size_that_cannot_be_is_refused_or_keeps_the_content(trial: Trial) -> None:
    """resize_ephemeral_volume to a size that makes no sense or is less than what is in the volume either raises an
    error of the tree or does nothing; the content stays.
    """
    content = trial.put_content(trial.set_up())
    for size in (-1, 0, 1):
        try:
            trial.plugin.resize_ephemeral_volume(trial.spec, trial.pod, size)
        except VolumeHostError:
            pass
        except Exception as error:  # noqa: BLE001 - an error from outside of the tree is the finding
            fail(f"resizing to {size} bytes raised {type(error).__name__}: {error}, which is no VolumeHostError")
        content.require_kept(f"resizing to {size} bytes")


def _size(trial: Trial) -> int:
    """The volume's size in bytes, as its PersistentVolume says."""
    volume = trial.spec.persistent_volume
    text = volume.spec.capacity.get("storage", "") if volume is not None else ""
    return parse_quantity(text).value() if text else _DEFAULT_SIZE
