"""What is set up on this node since it was booted: small files under the boot's id, so that a reboot forgets them all.

They are renamed into place but not synced: a process that is killed loses nothing, and a machine that goes down makes
them worthless anyway (BR-58). They say what was asked for; whether it is there is asked of the kernel each time.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from typing import Final

import msgspec

from volumehost_loop_driver.records import StagedVolume

logger = logging.getLogger(__name__)

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_SUFFIX: Final = ".json"


def read_boot_id() -> str:
    """The kernel's id of this boot."""
    with open(_BOOT_ID, encoding="ascii") as file:
        return file.read().strip()


class NodeState:
    """Staged volumes by their handles. Safe for threads; changes to one volume come one at a time.

    :param directory: holds one directory for each boot; those of earlier boots are removed.
    :raises OSError: it cannot be made or read.
    """

    def __init__(self, directory: str, boot_id: str) -> None:
        self._directory = os.path.join(directory, boot_id)
        self._lock = threading.Lock()
        self._by_id: dict[str, StagedVolume] = {}
        self._encode = msgspec.json.Encoder().encode
        os.makedirs(self._directory, 0o700, exist_ok=True)
        for name in os.listdir(directory):
            if name != boot_id:
                # Only plain files of our own are in there.
                shutil.rmtree(os.path.join(directory, name))
        decode = msgspec.json.Decoder(StagedVolume).decode
        for name in os.listdir(self._directory):
            path = os.path.join(self._directory, name)
            try:
                with open(path, "rb") as file:
                    staged = decode(file.read())
            except (OSError, msgspec.MsgspecError) as error:
                logger.warning("%s cannot be read and is dropped: %s", path, error)
                _drop(path)
            else:
                self._by_id[staged.id] = staged

    def get(self, id: str) -> StagedVolume | None:
        """What is set up of the volume."""
        return self._by_id.get(id)

    def all(self) -> list[StagedVolume]:
        """Everything that is set up."""
        with self._lock:
            return list(self._by_id.values())

    def put(self, staged: StagedVolume) -> None:
        """Remember what is about to be set up, or how it changed.

        :raises OSError: it cannot be written.
        """
        path = self._path(staged)
        with open(path + ".new", "wb") as file:
            file.write(self._encode(staged))
        os.replace(path + ".new", path)
        with self._lock:
            self._by_id[staged.id] = staged

    def remove(self, staged: StagedVolume) -> None:
        """Forget what is gone."""
        try:
            os.unlink(self._path(staged))
        except FileNotFoundError:
            logger.debug("%s was forgotten already", staged.id)
        with self._lock:
            self._by_id.pop(staged.id, None)

    def _path(self, staged: StagedVolume) -> str:
        return os.path.join(self._directory, staged.key + _SUFFIX)


def _drop(path: str) -> None:
    """Remove what stands in the place of a file, a directory only when it is empty; what cannot be removed may stay."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.unlink(path)
    except OSError as error:
        logger.warning("%s stays where it is: %s", path, error)
