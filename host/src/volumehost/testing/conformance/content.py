"""What is in a mounted volume, written and looked for again: the checks' notion of "the content was kept"."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass

from volumehost.testing.conformance.check import fail, require


@dataclass(frozen=True, slots=True)
class Content:
    """What was in a volume at a moment. ``file`` is the one that was written, "" when the volume is not for writing."""

    path: str
    file: str = ""
    text: str = ""
    names: tuple[str, ...] = ()
    kind: int = 0

    def require_kept(self, after: str, path: str = "") -> None:
        """Fail the check unless the content is still there.

        :param after: what was done meanwhile, for the message.
        :param path: where the volume is now, when that is another place.
        """
        where = path or self.path
        require(os.path.lexists(where), f"after {after} there is nothing at {where}")
        if self.file:
            found = _read(f"{where}/{self.file}")
            if found is None:
                fail(
                    f"after {after} the file {self.file} that was written before is gone from {where}, "
                    f"which holds {_names(where)}"
                )
            require(
                found == self.text, f"after {after} the file {where}/{self.file} holds {found!r}, not {self.text!r}"
            )
            return
        require(_kind(where) == self.kind, f"after {after} {where} is no longer what it was")
        missing = set(self.names) - set(_names(where))
        require(not missing, f"after {after} {sorted(missing)} are gone from {where}")


def write_content(path: str) -> Content:
    """Write a file into the volume.

    :raises OSError: it cannot be written.
    """
    name, text = f"volumehost-{secrets.token_hex(4)}", secrets.token_hex(16)
    descriptor = os.open(f"{path}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
    return Content(path, name, text, (), _kind(path))


def observe_content(path: str) -> Content:
    """Remember what is in a volume that cannot be written, or that is no directory."""
    return Content(path, names=tuple(_names(path)), kind=_kind(path))


def remove_content(content: Content) -> None:
    """Take the written file away again: what is mounted may belong to somebody."""
    if content.file:
        with suppress(OSError):
            os.unlink(f"{content.path}/{content.file}")


def _names(path: str) -> list[str]:
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def _kind(path: str) -> int:
    return os.stat(path).st_mode & 0o170000


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return None
