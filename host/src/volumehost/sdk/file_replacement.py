"""Writes a small file so that a crash at any instant leaves the old content or the new one, never a part of it."""

from __future__ import annotations

import contextlib
import os


def replace_file(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Put ``data`` at ``path``: a temporary name beside it, synced, renamed over it, the directory synced.

    A link at ``path`` is replaced, not followed; an empty directory is replaced too. One writer at a time for each
    path: two would share the temporary name, ``.<name>.new``, which is what a crash can leave behind and the next call
    takes over.

    :raises OSError: it cannot be written; what was at ``path`` is still there, and the temporary file is gone.
    """
    directory, name = os.path.split(path)
    folder = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        temporary = f".{name}.new"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(temporary, flags, mode, dir_fd=folder)
            try:
                os.fchmod(file, mode)
                written = 0
                while written < len(data):
                    written += os.write(file, data[written:])
                os.fsync(file)
            finally:
                os.close(file)
            try:
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except IsADirectoryError:
                os.rmdir(name, dir_fd=folder)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)
    finally:
        os.close(folder)
