"""Where the demo happens: a temporary directory that is gone in the end, with everything that was mounted in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from volumehost.cli.kernel_view import loop_devices_below, mounts_below
from volumehost.errors import VolumeHostError
from volumehost.mount import loop
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.removal import remove_all_one_filesystem


@dataclass(frozen=True, slots=True)
class DemoPlace:
    """The directories of one demo; ``base`` holds the others and has its links resolved."""

    base: str

    @property
    def root_dir(self) -> str:
        """The root directory of the host."""
        return f"{self.base}/root"

    @property
    def host_dir(self) -> str:
        """What is on the machine already: the data of the hostPath volumes."""
        return f"{self.base}/host"

    @property
    def container_dir(self) -> str:
        """What a container would have as its root."""
        return f"{self.base}/container"

    def short(self, text: str, pod_uid: str = "") -> str:
        """The text with the parts that differ from run to run written as variables."""
        shown = text.replace(self.base, "$DEMO")
        return shown.replace(pod_uid, "$UID") if pod_uid else shown


@contextmanager
def demo_place() -> Iterator[DemoPlace]:
    """Make the place, and in the end, also after an error or an interrupt, unmount and remove all that is in it."""
    base = os.path.realpath(tempfile.mkdtemp(prefix="volumehost-demo-"))
    try:
        place = DemoPlace(base)
        for directory in (place.host_dir, place.container_dir):
            os.mkdir(directory)
        yield place
    finally:
        _clear(base)


def _clear(base: str) -> None:
    """Unmount what is still mounted there, the last first, and remove the rest; never reaches into a mount.

    Loop devices of files in it are let go of: after an interrupt a driver's may be left.

    :raises VolumeHostError: something stays; it is named.
    """
    mounter = LinuxMounter()
    for entry in reversed(mounts_below(base)):
        mounter.unmount(entry.path, timeout=10)
    for device in loop_devices_below(base):
        loop.detach(device)
    try:
        remove_all_one_filesystem(base)
    except VolumeHostError as error:
        error.hint = error.hint or f"unmount what is in {base} and remove it"
        raise
