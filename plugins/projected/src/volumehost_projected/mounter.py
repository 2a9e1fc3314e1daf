"""Fills a volume with files: fetches what they are made of, then writes them, and swaps them in all at once.

Everything that can be found wrong is found before anything of the volume is touched, so that a missing object leaves
nothing behind on the first mount and the old files in place on a refresh (PAYLOAD-02).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost import Attributes
from volumehost.errors import UncertainProgressError, VolumeHostError
from volumehost.sdk import FileProjection
from volumehost_projected.volume_place import VolumePlace

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.volumes import MounterArgs, VolumeMetrics

logger = logging.getLogger(__name__)

#: Makes a volume's files: path in the volume to file.
Collect = Callable[["MounterArgs"], Mapping[str, FileProjection]]

_ATTRIBUTES = Attributes(read_only=True, managed=True, selinux_relabel=True)


class FilesMounter:
    """Sets one volume of one pod up, and refreshes it."""

    metric_source = "du"

    def __init__(self, place: VolumePlace, pod: Pod, collect: Collect) -> None:
        self._place = place
        self._pod = pod
        self._collect = collect

    def get_path(self) -> str:
        """The directory with the files."""
        return self._place.directory(self._pod.metadata.uid)

    def get_attributes(self) -> Attributes:
        """Read-only for the pod, and the host's own to give to a group and to label (PAYLOAD-01)."""
        return _ATTRIBUTES

    def get_metrics(self) -> VolumeMetrics:
        """What the files occupy."""
        from volumehost.sdk import DuMetrics

        return DuMetrics(self.get_path()).get_metrics()

    def set_up(self, args: MounterArgs) -> None:
        """Set up at the plugin's own path."""
        self.set_up_at(self.get_path(), args)

    def set_up_at(self, directory: str, args: MounterArgs) -> None:
        """Make the files in ``directory`` what they should be; cheap when they are (PAYLOAD-02, PAYLOAD-05).

        :raises VolumeHostError: they cannot be had, or not written. Nothing is left behind of a volume that was not
            there before; files that were there stay as they were (PAYLOAD-04, improved).
        :raises UncertainProgressError: the same, and the volume is there.
        """
        from volumehost.sdk import clean_payload

        wrapped = self._place.wrapped_mounter(self._pod)
        files = clean_payload(self._collect(args))
        # The group gets what is written, not the empty directory.
        wrapped.set_up_at(directory, replace(args, fs_group=None, volume_ownership_applicator=None))
        try:
            self._write(directory, files, args)
        except Exception as error:
            self._failed(directory, args, error)
            raise

    def _write(self, directory: str, files: Mapping[str, FileProjection], args: MounterArgs) -> None:
        from volumehost.sdk import AtomicWriter, apply_ownership, make_nested_mount_points

        def give_to_group(_generation: str) -> None:
            apply_ownership(self, directory, replace(args, fs_group_change_policy=None), pod=self._pod)

        make_nested_mount_points(self._place.name, self._pod, directory)
        # Nothing is synced: whatever a power cut leaves is compared byte by byte before a pod sees it again.
        writer = AtomicWriter(directory, sync=False)
        writer.write(files, give_to_group if args.fs_group is not None else None)

    def _failed(self, directory: str, args: MounterArgs, error: Exception) -> None:
        """Take away what was begun; what a pod may be reading already is kept.

        :raises UncertainProgressError: it is still there and has to be torn down one day.
        """
        if args.is_remount:
            return
        if not os.path.lexists(f"{directory}/..data"):
            try:
                self._place.wrapped_unmounter(self._pod.metadata.uid).tear_down_at(directory)
            except VolumeHostError as problem:
                logger.warning("%s is left behind for teardown: %s", directory, problem)
            else:
                return
        raise UncertainProgressError(
            f"the volume is there, but its files are not what they should be: {error}",
            action=f"setting up the {self._place.kind} volume {self._place.name}",
            subject=self._place.name,
        ) from error
