"""Checks of refreshing a volume that pods are using: what fails must not take away what works."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.testing.conformance.check import check, not_applicable, require
from volumehost.testing.conformance.driving import arguments_for

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial


@check("PLUG-05", "VOL-04")
def a_refresh_keeps_the_volume(trial: Trial) -> None:
    """A set_up with is_remount of a volume that is in use succeeds and keeps its mounts; where nothing has to be
    refreshed, its content too.
    """
    mounted = trial.set_up()
    refreshes = trial.plugin.requires_remount(trial.spec)
    content = None if refreshes else trial.put_content(mounted)
    mounts = len(trial.new_mounts())
    trial.set_up(args=replace(arguments_for(trial.pod), is_remount=True))
    require(os.path.lexists(mounted.path), f"after the refresh there is nothing at {mounted.path}")
    require(len(trial.new_mounts()) == mounts, f"the refresh changed the mounts: {'; '.join(trial.new_mounts())}")
    if content is not None:
        content.require_kept("a refresh")


@check("VOL-04", "OPERR-04")
def a_refresh_that_fails_keeps_the_volume(trial: Trial) -> None:
    """When a set_up with is_remount fails, the mount and the content are still there: a pod is using them."""
    faults = trial.use_faulty_mounter()
    mounted = trial.set_up()
    content = trial.put_content(mounted)
    mounts = trial.new_mounts()
    trial.forget_objects()
    faults.failing = True
    try:
        trial.plugin.new_mounter(trial.spec, trial.pod).set_up(replace(arguments_for(trial.pod), is_remount=True))
        failed = False
    except Exception:  # noqa: BLE001 - that it fails is wanted; what is left counts
        failed = True
    faults.failing = False
    content.require_kept("a refresh" + " that failed" * failed)
    require(
        set(mounts) <= set(trial.new_mounts()),
        f"a refresh that failed took mounts away: {'; '.join(sorted(set(mounts) - set(trial.new_mounts())))}",
    )
    if not failed:
        not_applicable("a refresh cannot be made to fail: it mounts nothing and reads no object of the files")
