"""Whether volumes in memory can be kept out of swap, so that their content never reaches a disk (EMPTYDIR-27)."""

from __future__ import annotations

import logging
import os
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface

logger = logging.getLogger(__name__)

NO_SWAP = "noswap"
_TRIAL_PREFIX = "tmpfs-noswap-test-"
#: The first kernel whose tmpfs knows the option.
_SINCE = (6, 4)
_WHOLE_RANGE = "4294967295"


class SwapControl:
    """Knows, after the first question, whether tmpfs takes ``noswap`` here; an older kernel may have it patched in.

    :param plugin_dir: where a trial mount can be made.
    """

    def __init__(
        self,
        mounter: MountInterface,
        plugin_dir: str,
        *,
        release: str | None = None,
        uid_map: str = "/proc/self/uid_map",
    ) -> None:
        self._mounter = mounter
        self._plugin_dir = plugin_dir
        self._release = release if release is not None else os.uname().release
        self._uid_map = uid_map
        self._lock = threading.Lock()
        self._known: bool | None = None

    def supported(self) -> bool:
        """Whether ``noswap`` can be given to a tmpfs."""
        with self._lock:
            if self._known is None:
                self._known = self._find_out()
            return self._known

    def _find_out(self) -> bool:
        if in_user_namespace(self._uid_map):
            return False
        if kernel_version(self._release) >= _SINCE:
            return True
        return self._trial_mount()

    def _trial_mount(self) -> bool:
        from volumehost.sdk import make_directories

        directory = f"{self._plugin_dir}/{_TRIAL_PREFIX}{os.urandom(6).hex()}"
        try:
            make_directories(self._plugin_dir)
            self._clear_trials()
            make_directories(directory, 0o700)
            self._mounter.mount("tmpfs", directory, "tmpfs", [NO_SWAP], systemd=False)
        except (OSError, VolumeHostError) as error:
            logger.info("tmpfs does not take noswap here: %s", error)
            supported = False
        else:
            supported = True
        self._clear_trials()
        return supported

    def _clear_trials(self) -> None:
        """Also those of processes that were killed in the middle; one process at a time works in this directory."""
        try:
            trials = [name for name in os.listdir(self._plugin_dir) if name.startswith(_TRIAL_PREFIX)]
        except OSError:
            return
        for name in trials:
            with suppress(OSError, VolumeHostError):
                self._mounter.unmount(f"{self._plugin_dir}/{name}")
                os.rmdir(f"{self._plugin_dir}/{name}")


def in_user_namespace(uid_map: str) -> bool:
    """Whether this process is not in the machine's first user namespace, whose map is the identity."""
    try:
        with open(uid_map, encoding="ascii") as file:
            return file.read().split() != ["0", "0", _WHOLE_RANGE]
    except OSError:
        return False


def kernel_version(release: str) -> tuple[int, int]:
    """Major and minor number; (0, 0) for a text without them, which counts as old."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)
