"""Watches that what pods use is never taken away from them: the mount that a path leads to stays the same one."""

from __future__ import annotations

from collections.abc import Mapping


class KeptMounts:
    """The mount ids of pods that are mounted, by pod and path. A container that runs holds just these mounts."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, int]] = {}
        #: Looks at one mount of one pod that found it unchanged.
        self.looks = 0

    def learn(self, mounts_of: Mapping[str, set[str]], ids: Mapping[str, int]) -> None:
        """These pods are mounted now, as ``ids`` of the mounts by path tell. What is known already stays as it was."""
        for pod, paths in mounts_of.items():
            known = self._ids.setdefault(pod, {})
            for path in paths:
                known.setdefault(path, ids[path])

    def forget(self, pod: str) -> None:
        """The pod goes, or what it has was taken away on purpose."""
        self._ids.pop(pod, None)

    def problems(self, ids: Mapping[str, int]) -> list[str]:
        """Which mounts of which pods are gone, or others than they were."""
        found = []
        for pod, known in self._ids.items():
            for path, mount_id in known.items():
                if ids.get(path) == mount_id:
                    self.looks += 1
                else:
                    state = "another mount" if path in ids else "nothing"
                    found.append(f"pod {pod}, which is wanted all the time, lost its mount at {path}: there is {state}")
        return found
