"""FakeHostUtils: a HostUtils over a map of paths, for tests that should touch no disk (HOSTUTIL-12).

It runs the same contract tests as the real one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from volumehost.mount.hostutil import UnrecognisedFileTypeError

if TYPE_CHECKING:
    from volumehost.api.objects import SELinuxOptions

_KNOWN = frozenset({"Directory", "File", "Socket", "CharDevice", "BlockDevice"})


class FakeHostUtils:
    """Knows exactly the paths it was told of, and what was made since.

    :param file_types: path to type: one of those that ``get_file_type`` returns; anything else (``"FIFO"``) is
        there but not recognised.
    :param links: symbolic links, path to target.
    :param owners: path to (uid, gid); (0, 0) where not given.
    :param modes: path to permission bits; 0755 for directories and 0644 for the rest where not given.
    :param opened_devices: devices that somebody holds open.
    :param selinux: path prefixes whose mounts carry labels, to their ``context=`` option ("" for none). Where there
        are any, the machine has SELinux on.
    """

    def __init__(
        self,
        file_types: Mapping[str, str] | None = None,
        *,
        links: Mapping[str, str] | None = None,
        owners: Mapping[str, tuple[int, int]] | None = None,
        modes: Mapping[str, int] | None = None,
        opened_devices: frozenset[str] = frozenset(),
        selinux: Mapping[str, str] | None = None,
    ) -> None:
        self._types = dict(file_types or {})
        self._links = dict(links or {})
        self._owners = dict(owners or {})
        self._modes = dict(modes or {})
        self._opened = opened_devices
        self._selinux = dict(selinux or {})
        self.shared: list[str] = []

    def device_opened(self, path: str) -> bool:
        """Whether the test said so; False for what is no device."""
        return self.path_is_device(path) and self.eval_host_symlinks(path) in self._opened

    def path_is_device(self, path: str) -> bool:
        """By the map."""
        return self._type(path) in {"CharDevice", "BlockDevice"}

    def get_file_type(self, path: str) -> str:
        """By the map; FileNotFoundError for a path that is not in it."""
        found = self._type(path)
        if found not in _KNOWN:
            raise UnrecognisedFileTypeError(
                "only recognise file, directory, socket, block device and character device",
                action=f"find out what {path} is",
                subject=path,
            )
        return found

    def path_exists(self, path: str) -> bool:
        """Whether it is in the map, links followed."""
        try:
            self._type(path)
        except FileNotFoundError:
            return False
        return True

    def make_dir(self, path: str) -> None:
        """Add the directory and its parents."""
        while path not in {"", "/"} and not self.path_exists(path):
            self._types[path] = "Directory"
            path = os.path.dirname(path)
        if self.path_exists(path) and self._type(path) != "Directory":
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def make_file(self, path: str) -> None:
        """Add the file unless it is there; its directory must be."""
        if self.path_exists(path):
            if self._type(path) == "Directory":
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            return
        if not self.path_exists(os.path.dirname(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._types[path] = "File"

    def eval_host_symlinks(self, path: str) -> str:
        """Follow the links of the map; FileNotFoundError where they lead nowhere."""
        self._type(path)
        return self._follow(path)

    def get_owner(self, path: str) -> tuple[int, int]:
        """By the map."""
        return self._owners.get(self.eval_host_symlinks(path), (0, 0))

    def get_mode(self, path: str) -> int:
        """By the map."""
        resolved = self.eval_host_symlinks(path)
        return self._modes.get(resolved, 0o755 if self._types[resolved] == "Directory" else 0o644)

    def make_rshared(self, path: str) -> None:
        """Remember the path in ``shared``."""
        resolved = self.eval_host_symlinks(path)
        if resolved not in self.shared:
            self.shared.append(resolved)

    def selinux_enabled(self) -> bool:
        """Whether the test named any path with labels."""
        return bool(self._selinux)

    def selinux_file_label(self, options: SELinuxOptions) -> str:
        """As the policy of most systems has it; "" without a level."""
        if not options.level or not self._selinux:
            return ""
        return f"{options.user or 'system_u'}:object_r:container_file_t:{options.level}"

    def get_selinux_support(self, path: str) -> bool:
        """Whether the path lies below one that the test named."""
        return self._selinux_prefix(path) is not None

    def get_selinux_mount_context(self, path: str) -> str:
        """The context that the test gave, "" when none."""
        prefix = self._selinux_prefix(path)
        return "" if prefix is None else self._selinux[prefix]

    def _selinux_prefix(self, path: str) -> str | None:
        matching = [item for item in self._selinux if path == item or path.startswith(item.rstrip("/") + "/")]
        return max(matching, key=len, default=None)

    def _type(self, path: str) -> str:
        try:
            return self._types[self._follow(path)]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, f'path "{path}" does not exist', path) from None

    def _follow(self, path: str) -> str:
        for _ in range(40):
            if path not in self._links:
                return path
            path = os.path.normpath(os.path.join(os.path.dirname(path), self._links[path]))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
