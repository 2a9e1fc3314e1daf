"""Opens and creates paths inside a directory that others can write to, without ever leaving it (BR-71).

Called by the subpath code and by whatever writes into a volume. Paths are walked by descriptors: by the kernel in one
call (openat2, kernel 5.6), else component by component; a path is never checked as text and used later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Final

from volumehost.errors import UnsafePathError
from volumehost.mount import syscalls
from volumehost.mount.refs import path_within_base

_PATH: Final = 0o10000000  # O_PATH, by number because other platforms lack the name
_INSIDE: Final = syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_MAGICLINKS
_NO_LINKS: Final = _INSIDE | syscalls.RESOLVE_NO_SYMLINKS
#: How often a lookup is tried that the kernel breaks off because somebody renames something at the same time.
_RACES: Final = 16


def check_relative(path: str) -> list[str]:
    """The components of a path that is meant to lie inside something; empty for the thing itself (SUBPATH-01).

    :raises UnsafePathError: it is absolute, or has a ``..`` component. Names like ``..a`` are fine.
    """
    if path.startswith("/"):
        raise UnsafePathError("it must not be an absolute path", action=f"use the path {path}", subject=path)
    components = [item for item in path.split("/") if item not in {"", "."}]
    if ".." in components:
        raise UnsafePathError('it must not contain ".."', action=f"use the path {path}", subject=path)
    if "\0" in path:
        raise UnsafePathError("it holds a NUL character", action="use a path", subject=path)
    return components


def open_beneath(base_fd: int, relative: str, flags: int = _PATH, mode: int = 0) -> int:
    """Open what lies at ``relative`` in the directory ``base_fd``; any symbolic link on the way is refused.

    :param flags: of open(2); O_PATH by default, which opens sockets, FIFOs and devices without touching them.
    :raises UnsafePathError: the path leaves the directory or holds a symbolic link.
    :raises OSError: it cannot be opened.
    """
    components = check_relative(relative)
    path = "/".join(components) or "."
    try:
        # Without O_NOFOLLOW: with it, and O_PATH, a link at the end would be opened itself instead of refused.
        if flags == _PATH:
            return _open_path(base_fd, path, _NO_LINKS)
        return syscalls.openat2(base_fd, path, flags, _NO_LINKS, mode)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EXDEV}:
            raise _unsafe(path) from error
        if error.errno != errno.ENOSYS:
            raise
    return walk_beneath(base_fd, components, flags, mode)


def open_inside(base_fd: int, relative: str) -> int | None:
    """A path-only descriptor of what ``relative`` leads to, links followed as long as they stay in the directory.

    The kernel decides at each link, in one lookup. None is for what it leaves open: a link that leads out, one that is
    absolute and may lead back in, and all of it before kernel 5.6.

    :raises UnsafePathError: the path is absolute, or has a ``..`` component.
    :raises OSError: it does not exist, or cannot be reached.
    """
    path = "/".join(check_relative(relative)) or "."
    for _ in range(_RACES):
        try:
            return _open_path(base_fd, path, _INSIDE)
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.ELOOP, errno.ENOSYS}:
                raise
            return None
    return None


def _open_path(base_fd: int, path: str, resolve: int) -> int:
    """As a directory where it is one: with O_PATH alone an automount point at the end would not mount (SUBPATH-21)."""
    try:
        return syscalls.openat2(base_fd, path, _PATH | os.O_DIRECTORY, resolve)
    except NotADirectoryError:
        return syscalls.openat2(base_fd, path, _PATH, resolve)


def walk_beneath(base_fd: int, components: list[str], flags: int = _PATH, mode: int = 0) -> int:
    """``open_beneath`` for kernels before 5.6: component by component, none of them a link (SUBPATH-21)."""
    current = os.open(".", _PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=base_fd)
    for position, name in enumerate(components):
        last = position == len(components) - 1
        try:
            following = _open_component(
                current, name, flags if last else _PATH, mode, "/".join(components[: position + 1])
            )
        finally:
            os.close(current)
        current = following
    if components:
        return current
    try:
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=current)
    finally:
        os.close(current)


def _open_component(dir_fd: int, name: str, flags: int, mode: int, path: str) -> int:
    with contextlib.suppress(OSError):
        # With a slash at the end an automount point mounts; whether there is one is not known, so errors mean nothing.
        os.stat(f"{name}/", dir_fd=dir_fd)
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _unsafe(path) from error
        raise
    if stat.S_ISLNK(os.fstat(fd).st_mode):
        os.close(fd)
        raise _unsafe(path)
    return fd


def _unsafe(path: str) -> UnsafePathError:
    return UnsafePathError(f"unexpected symlink found {path}", action=f"open {path} inside a directory", subject=path)


def resolved_within(path: str, base: str) -> str:
    """The path relative to the base after both have been resolved, links and all.

    A snapshot only: open it with ``open_beneath``, which notices what was changed since.

    :raises UnsafePathError: it lies outside of the base.
    :raises OSError: it does not exist.
    """
    resolved_base = os.path.realpath(base, strict=True)
    resolved = os.path.realpath(path, strict=True)
    if not path_within_base(resolved, resolved_base):
        raise UnsafePathError(
            f"it leads to {resolved}, outside of {resolved_base}", action=f"use the path {path}", subject=path
        )
    return os.path.relpath(resolved, resolved_base)


def open_base(base: str) -> int:
    """A path-only descriptor of a directory that the host trusts, links on the way followed; the caller closes it."""
    return os.open(os.path.realpath(base, strict=True), _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def make_dirs_beneath(dir_fd: int, components: list[str], mode: int) -> None:
    """Create the directories one in the other, each with exactly this mode, whatever the umask (SUBPATH-14).

    :raises UnsafePathError: another process put a link in the place of one.
    :raises OSError: one exists already, or cannot be created.
    """
    current = os.dup(dir_fd)
    try:
        for name in components:
            os.mkdir(name, 0o700 & mode, dir_fd=current)
            following = _open_created(current, name)
            os.close(current)
            current = following
            # mkdir applies the umask and drops the setgid bit that it inherits: set what was asked for.
            os.fchmod(current, mode)
    finally:
        os.close(current)


def _open_created(dir_fd: int, name: str) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise _unsafe(name) from error
        raise


def open_existing_prefix(base_fd: int, components: list[str]) -> tuple[int, int]:
    """(descriptor, number of components) of the longest part of the path that exists, links followed (SUBPATH-12).

    Where it leads is for the caller to check; descriptors are path-only, so that nothing there is touched.

    :raises OSError: any other error than that a component does not exist.
    """
    current = os.open(".", _PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=base_fd)
    for count, name in enumerate(components):
        try:
            following = _open_following(current, name)
        except FileNotFoundError:
            return current, count
        except BaseException:
            os.close(current)
            raise
        os.close(current)
        current = following
    return current, len(components)


def _open_following(dir_fd: int, name: str) -> int:
    try:
        return syscalls.openat2(dir_fd, name, _PATH, syscalls.RESOLVE_NO_MAGICLINKS)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    return os.open(name, _PATH | os.O_CLOEXEC, dir_fd=dir_fd)


def path_of(fd: int) -> str:
    """The path of an open descriptor, as the kernel sees it now."""
    return os.readlink(f"/proc/thread-self/fd/{fd}")
