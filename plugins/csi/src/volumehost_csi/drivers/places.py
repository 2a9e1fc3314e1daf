"""Where the files of one driver are: record, logs, locks and data under ``<root>/drivers/<name>``, its socket."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverUnavailableError
from volumehost.sdk import make_directories

if TYPE_CHECKING:
    from volumehost.volume_host import VolumeHost

#: Holds state that other users must not read, logs of drivers among it.
_MODE = 0o700


@dataclass(frozen=True, slots=True)
class DriverPlaces:
    """The paths of one driver; ``directory`` is ``<root>/drivers/<name>``. Only :meth:`prepare` touches the disk."""

    name: str
    directory: str
    socket_directory: str

    @classmethod
    def of(cls, host: VolumeHost, drivers_dir: str, name: str) -> DriverPlaces:
        """Those of the driver ``name``, which was checked before."""
        return cls(name, f"{drivers_dir}/{name}", host.get_plugin_dir(name))

    @property
    def process_file(self) -> str:
        """What runs, written by its keeper before the driver itself begins."""
        return f"{self.directory}/process.json"

    @property
    def exit_file(self) -> str:
        """How the last process ended, written by its keeper."""
        return f"{self.directory}/exit.json"

    @property
    def facts_file(self) -> str:
        """What the driver told when it was last asked, and what was wrong with it."""
        return f"{self.directory}/facts.json"

    @property
    def registered_file(self) -> str:
        """The endpoint that ``drivers register`` gave; absent otherwise."""
        return f"{self.directory}/registered.json"

    @property
    def users_lock(self) -> str:
        """Held shared by every host that needs the driver."""
        return f"{self.directory}/users.lock"

    @property
    def start_lock(self) -> str:
        """Held by the host that starts, replaces or records the driver."""
        return f"{self.directory}/start.lock"

    @property
    def log_file(self) -> str:
        """What the driver prints; older parts end in ``.1``, ``.2``."""
        return f"{self.directory}/log"

    @property
    def data_directory(self) -> str:
        """For the driver itself; survives everything."""
        return f"{self.directory}/data"

    def prepare(self) -> None:
        """Make the directories.

        :raises OSError: they cannot be made.
        """
        make_directories(self.data_directory, _MODE)

    def socket(self) -> str:
        """Where the driver is to serve; makes the directory.

        ``<root>/plugins/<name>/csi.sock``, or where that is too long for the kernel a path in the runtime directory.

        :raises StorageDriverUnavailableError: there is no place that is short enough and safe.
        """
        from volumehost_csi_kit.endpoints import LONGEST_SOCKET_PATH

        path = f"{self.socket_directory}/csi.sock"
        if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
            make_directories(self.socket_directory, 0o750)
            return path
        digest = hashlib.sha256(os.fsencode(self.socket_directory)).hexdigest()[:16]
        base = f"{_runtime_directory()}/volumehost"
        short = f"{base}/{digest}/csi.sock"
        try:
            if len(os.fsencode(short)) > LONGEST_SOCKET_PATH:
                raise OSError(f"{short} is too long too")
            for directory in (base, os.path.dirname(short)):
                make_directories(directory, _MODE)
                _require_own(directory)
        except OSError as error:
            raise StorageDriverUnavailableError(
                f"the socket path {path} is longer than the {LONGEST_SOCKET_PATH} bytes that the kernel allows, and "
                f"there is no shorter place for it: {error}",
                driver=self.name,
                action=f"starting the CSI driver {self.name}",
                hint="use a shorter --root-dir",
            ) from error
        return short


def _runtime_directory() -> str:
    if os.geteuid() == 0:
        return "/run"
    return os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"


def _require_own(directory: str) -> None:
    """Refuse a directory that somebody else made: who owns it can put a socket of his own there."""
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise PermissionError(f"{directory} is not a directory of this user alone")
