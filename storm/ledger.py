"""Users' data: what was written into each volume, and whether every byte of it is still there."""

from __future__ import annotations

import hashlib
import os
import random
import stat
from dataclasses import dataclass, field

#: How many files a volume has at most; then the oldest one goes.
FILES = 6
_BLOCK = 4096


@dataclass
class _Volume:
    files: dict[str, str] = field(default_factory=dict)
    written: int = 0


class Ledger:
    """The content of volumes by a key of their storage, which outlives whoever mounts it. Not safe for threads."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._volumes: dict[str, _Volume] = {}
        self.files_written = 0
        self.files_checked = 0
        self.bytes_checked = 0

    def write(self, key: str, path: str) -> None:
        """Write one more file into the directory, or one more block onto the device, durably."""
        volume = self._volumes.setdefault(key, _Volume())
        volume.written += 1
        content = self._random.randbytes(self._random.randrange(1, 2 * _BLOCK))
        if is_device(path):
            slot = volume.written % FILES
            content = content[:_BLOCK].ljust(_BLOCK, b"\0")
            _write_block(path, slot, content)
            volume.files[str(slot)] = _digest(content)
        else:
            name = f"data-{volume.written:05d}"
            _write_file(f"{path}/{name}", content)
            volume.files[name] = _digest(content)
            if len(volume.files) > FILES:
                oldest = min(volume.files)
                del volume.files[oldest]
                os.unlink(f"{path}/{oldest}")
        self.files_written += 1

    def problems(self, key: str, path: str) -> list[str]:
        """What is not as it was written; [] for nothing."""
        volume = self._volumes.get(key, _Volume())
        try:
            found = self._read(volume, path)
        except OSError as error:
            return [f"{key}: {path} cannot be read: {error}"] if volume.files else []
        self.files_checked += len(found)
        self.bytes_checked += sum(map(len, found.values()))
        lost = [f"{key}: {name} is lost from {path}" for name in volume.files if name not in found]
        odd = [f"{key}: {name} in {path} was written by nobody" for name in found if name not in volume.files]
        changed = [
            f"{key}: {name} in {path} has other content"
            for name, content in found.items()
            if name in volume.files and _digest(content) != volume.files[name]
        ]
        return [*lost, *odd, *changed]

    def forget(self, key: str) -> None:
        """The storage has gone, as was wished."""
        self._volumes.pop(key, None)

    def holds(self, key: str) -> bool:
        """Whether anything was written there."""
        return bool(self._volumes.get(key, _Volume()).files)

    def _read(self, volume: _Volume, path: str) -> dict[str, bytes]:
        if is_device(path):
            return {slot: _read_block(path, int(slot)) for slot in volume.files}
        found = {}
        for name in os.listdir(path):
            if name.startswith("data-"):
                with open(f"{path}/{name}", "rb") as file:
                    found[name] = file.read()
        return found


def is_device(path: str) -> bool:
    """Whether it is a device rather than a directory. Raises no error for what is not there."""
    try:
        return stat.S_ISBLK(os.stat(path).st_mode)
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_file(path: str, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _write_block(path: str, slot: int, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, content, slot * _BLOCK)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_block(path: str, slot: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, _BLOCK, slot * _BLOCK)
    finally:
        os.close(descriptor)
