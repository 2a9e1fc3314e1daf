"""Makes a root directory usable, or says why it is not; the volume manager calls it before all else."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from volumehost.errors import RootDirectoryError
from volumehost.hosts.layout import Layout

#: Mode of every directory that the host itself makes (LAYOUT-06): volumes hold secrets.
DIRECTORY_MODE = 0o750

_REASONS = {
    errno.EROFS: ("the filesystem is mounted read-only", "mount it read-write or choose another root directory"),
    errno.ENOSPC: ("the filesystem is full", "free some space or choose another root directory"),
    errno.EDQUOT: ("the disk quota is used up", "raise the quota or choose another root directory"),
    errno.EACCES: ("permission denied", "run as root or choose a root directory that this user can write"),
    errno.EPERM: ("operation not permitted", "run as root or choose a root directory that this user can write"),
    errno.ENAMETOOLONG: ("the path is too long", "choose a shorter root directory"),
    errno.ENOTDIR: ("a part of the path is not a directory", "choose another root directory"),
    errno.ELOOP: ("the path has a loop of symbolic links", "choose another root directory"),
}

#: How filesystems refuse that have no files without a name.
_NO_NAMELESS_FILES = {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL}


def resolve_root_dir(path: str) -> str:
    """The one form in which the root directory is used everywhere: links resolved once (BR-69). Changes nothing.

    :raises RootDirectoryError: the path is not absolute and canonical (LAYOUT-06), is ``/``, or is not a directory.
    """
    action = f"using {path!r} as root directory"
    expected = os.path.normpath(os.path.join("/", path)) if path else ""
    if expected.startswith("//"):  # POSIX lets normpath keep exactly two slashes
        expected = expected[1:]
    if not path or "\0" in path or path != expected:
        reason = f"rootDirectory not in canonical form: expected {expected or 'an absolute path'}, was {path}"
        raise RootDirectoryError(reason, action=action, subject=path, hint="give the canonical absolute path")
    resolved = os.path.realpath(path)
    if resolved == "/":
        raise RootDirectoryError(
            "the root of the filesystem cannot be the root directory",
            action=action,
            subject=path,
            hint="use a directory of its own, such as /var/lib/volumehost",
        )
    return resolved


def prepare_root_dir(path: str) -> str:
    """Create what the host needs under ``path`` (0750) and prove that it can be written; returns the resolved root.

    Existing directories keep their mode.

    :raises RootDirectoryError: not canonical, not a directory, read-only, full, no permission (LAYOUT-06).
    """
    root = resolve_root_dir(path)
    layout = Layout(root)
    action = f"preparing the root directory {path}"
    try:
        _make_directory(root, parents=True)
        for directory in (
            layout.pods_dir(),
            layout.plugins_dir(),
            layout.plugins_registry_dir(),
            layout.pod_resources_dir(),
        ):
            _make_directory(directory)
        _prove_writable(root)
    except OSError as error:
        raise root_directory_error(error, path, action) from error
    return root


def check_readable(root: str) -> None:
    """Whoever may not look into the root directory must not take it for an empty one. Changes nothing.

    :param root: resolved; it need not be there.
    :raises RootDirectoryError: this user may not.
    """
    if os.path.lexists(root) and not os.access(root, os.R_OK | os.X_OK):
        error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), root)
        raise root_directory_error(error, root, f"reading the root directory {root}")


def root_directory_error(error: OSError, path: str, action: str) -> RootDirectoryError:
    """The error for a refusal by the kernel, with its cause in words and what to do."""
    where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
    reason, hint = _REASONS.get(error.errno or 0, (os.strerror(error.errno or 0), "choose another root directory"))
    return RootDirectoryError(f"{reason}{where}", action=action, subject=path, hint=hint)


def _make_directory(path: str, *, parents: bool = False) -> None:
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return
    except FileNotFoundError:
        if parents:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except FileExistsError:  # somebody else made it meanwhile
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        return
    # A link here would let whoever made it move every volume elsewhere.
    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


def _prove_writable(root: str) -> None:
    """Write a block that nobody sees: a full or read-only filesystem shows now, not in the middle of a mount."""
    descriptor = _open_nameless(root)
    try:
        os.write(descriptor, b"\0" * 4096)
    finally:
        os.close(descriptor)


def _open_nameless(directory: str) -> int:
    """A file without a name, so that nothing of it is left, whenever the process is killed."""
    try:
        return os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NO_NAMELESS_FILES:
            raise
    probe = f"{directory}/.write-probe"  # one name, so that what a kill leaves is taken over
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(probe)
    return descriptor
