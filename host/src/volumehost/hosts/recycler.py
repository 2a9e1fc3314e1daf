"""Empties a released hostPath volume in this process, where no cluster runs recycler pods (RECYCLE-02, -08)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import OperationError, RemovalError, SpecError, StillMountedError, UnsafePathError
from volumehost.mount.removal import remove_all_at
from volumehost.sdk.recycler import validate_recycler_pod_template

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.host_services import RecycleEventRecorder

_DEFAULT_SECONDS = 60


class LocalRecycler:
    """Does what the recycler pod's script does: everything below the directory goes, the directory stays.

    Works by descriptors, follows no links and stops in front of every mount.
    """

    def __init__(self, root_dir: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._root_dir = root_dir
        self._clock = clock

    def recycle(self, pv_name: str, pod: Pod, recorder: RecycleEventRecorder) -> None:
        """Empty the pod's first volume within its active deadline.

        :raises SpecError: the pod has no hostPath volume.
        :raises UnsafePathError: the path is one that must never be emptied.
        :raises OperationError: it is not empty afterwards, or the deadline passed.
        """
        validate_recycler_pod_template(pod)
        source = pod.spec.volumes[0].host_path
        action = f"recycling the volume {pv_name}"
        if source is None or not source.path:
            raise SpecError("the recycler pod's first volume has no hostPath", action=action, subject=pv_name)
        self._check(source.path, action)
        deadline = self._clock() + (pod.spec.active_deadline_seconds or _DEFAULT_SECONDS)
        try:
            directory = os.open(source.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise OperationError(f"{source.path}: {error.strerror}", action=action, subject=pv_name) from error
        recorder("Normal", f"Recycler: emptying {source.path}")
        try:
            failures = self._scrub(directory, source.path, deadline)
            left = os.listdir(directory)
        finally:
            os.close(directory)
        if left:
            reason = failures[0] if failures else f"{len(left)} entries are left"
            recorder("Warning", f"Recycler: {source.path} is not empty: {reason}")
            raise OperationError(f"failed to recycle volume: {reason}", action=action, subject=pv_name)

    def _check(self, path: str, action: str) -> None:
        resolved = os.path.realpath(path)
        inside = os.path.commonpath([resolved, self._root_dir])
        if not os.path.isabs(path) or resolved == "/" or inside in (resolved, self._root_dir):
            raise UnsafePathError(
                "this directory must not be emptied", action=action, subject=path, hint="correct the volume's path"
            )

    def _scrub(self, directory: int, path: str, deadline: float) -> list[str]:
        failures = []
        for name in os.listdir(directory):
            if self._clock() > deadline:
                failures.append("the deadline passed before everything was removed")
                break
            try:
                remove_all_at(directory, name, f"{path}/{name}")
            except (StillMountedError, RemovalError) as error:
                failures.append(error.reason)
        return failures
