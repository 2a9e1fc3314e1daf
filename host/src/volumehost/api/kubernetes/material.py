"""Certificates and keys: in files, which may be replaced at any time, or in memory, which never reach a disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Material:
    """PEM text in a file or as data; data counts where both are given. Nothing at all is false."""

    path: str = ""
    data: bytes = field(default=b"", repr=False)

    def __bool__(self) -> bool:
        return bool(self.path or self.data)

    @property
    def version(self) -> tuple[object, ...]:
        """Changes when the content may have changed."""
        if self.data or not self.path:
            return (hash(self.data),)
        try:
            found = os.stat(self.path)
        except OSError:
            return (self.path, 0)
        return (self.path, found.st_mtime_ns, found.st_size, found.st_ino)


class MaterialFile:
    """A name under which the content can be opened as long as this object lives."""

    def __init__(self, material: Material) -> None:
        self._descriptor = -1
        self.name = material.path
        if material.data:
            # OpenSSL takes client certificates by file name only.
            self._descriptor = os.memfd_create("volumehost-credentials")
            os.write(self._descriptor, material.data)
            self.name = f"/proc/self/fd/{self._descriptor}"

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
