"""Checks of what a plugin object knows after the process that mounted is gone: nothing but what is on the disk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.testing.conformance.check import check, not_applicable, require
from volumehost.testing.conformance.driving import arguments_for
from volumehost.volumes import ReconstructedVolume

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial


@check("PLUG-07", "VOL-12")
def a_new_plugin_tears_down_what_an_old_one_set_up(trial: Trial) -> None:
    """A plugin object that knows nothing but the volume's name and the pod's uid takes the volume away, to the last
    directory.
    """
    trial.put_content(trial.set_up())
    trial.restart()
    trial.tear_down(keep_content=True)
    trial.let_go()
    trial.require_nothing_left(after="a restart and tear_down")


@check("VOL-04", "VOL-12")
def a_new_plugin_sets_up_again_what_an_old_one_set_up(trial: Trial) -> None:
    """After a restart a set_up of what is mounted succeeds, and keeps the content and the mounts as they are."""
    mounted = trial.set_up()
    content = trial.put_content(mounted)
    mounts = trial.new_mounts()
    trial.restart()
    again = trial.set_up(args=replace(arguments_for(trial.pod), reconstructed_volume=True))
    require(again.path == mounted.path, f"set_up after a restart gave another path: {again.path}, not {mounted.path}")
    content.require_kept("a restart and set_up")
    require(
        len(trial.new_mounts()) <= len(mounts),
        f"set_up after a restart mounted again: {'; '.join(trial.new_mounts())}",
    )


@check("PLUG-08", "SPEC-08")
def the_spec_can_be_rebuilt_from_the_directory(trial: Trial) -> None:
    """construct_volume_spec gives a spec of the volume's name that the plugin supports, or marks it as incomplete."""
    rebuilt = _rebuild(trial)
    name = rebuilt.spec.name()
    require(name == trial.spec.name(), f"the rebuilt spec is named {name!r}; the directory is {trial.spec.name()!r}")
    require(
        not rebuilt.complete or trial.plugin.can_support(rebuilt.spec),
        f"the rebuilt spec has the source {rebuilt.spec.source() or 'none'}, which the plugin does not support, "
        "and is not marked as incomplete",
    )


@check("PLUG-03", "PLUG-08", "SPEC-08")
def a_complete_rebuilt_spec_names_the_same_storage(trial: Trial) -> None:
    """A rebuilt spec that counts as complete has the volume name of the original: it is used for new mounts."""
    rebuilt = _rebuild(trial)
    if not rebuilt.complete:
        not_applicable("the rebuilt spec is marked as incomplete: it serves for teardown and naming alone")
    name, original = trial.plugin.get_volume_name(rebuilt.spec), trial.plugin.get_volume_name(trial.spec)
    require(name == original, f"the rebuilt spec has the volume name {name!r}, the original {original!r}")


@check("PLUG-08", "BR-15")
def rebuilding_survives_what_is_not_mounted(trial: Trial) -> None:
    """construct_volume_spec of a directory on which nothing is mounted any more gives a spec or raises from the tree;
    it makes and removes nothing.
    """
    from volumehost.errors import VolumeHostError

    path = trial.volume_dir(trial.pod)
    try:
        trial.plugin.construct_volume_spec(trial.spec.name(), path)
    except VolumeHostError:
        pass
    except Exception as error:  # noqa: BLE001 - an error from outside of the tree is the finding
        require(False, f"construct_volume_spec raised {type(error).__name__}: {error}, which is no VolumeHostError")
    trial.require_nothing_left(after="construct_volume_spec of what is not there")


def _rebuild(trial: Trial) -> ReconstructedVolume:
    mounted = trial.set_up()
    trial.restart()
    rebuilt: object = trial.plugin.construct_volume_spec(trial.spec.name(), mounted.path)
    require(isinstance(rebuilt, ReconstructedVolume), f"it returned {rebuilt!r}, not a ReconstructedVolume")
    assert isinstance(rebuilt, ReconstructedVolume)
    return rebuilt
