"""The socket that a driver listens on: put in place whole, and removed only while it is still ours (BR-21)."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from dataclasses import dataclass

import grpc

from volumehost_csi_kit.endpoints import EndpointError, grpc_address, reachable

_numbers = itertools.count(1)


@dataclass(frozen=True)
class OwnSocket:
    """A socket at ``path`` that this process listens on, with the identity of its file.

    ``bound_path`` is how the kernel knows it (``/proc/net/unix``): the name that it was made under.
    """

    path: str
    bound_path: str
    device: int
    inode: int

    def is_in_place(self) -> bool:
        """Whether the path still leads to it: another instance may have put its own there."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def remove(self) -> bool:
        """Remove it if it is still in place; whether it was."""
        if not self.is_in_place():
            return False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        return True


def listen(server: grpc.Server, path: str, *, mode: int | None = None) -> OwnSocket:
    """Let ``server`` listen at ``path``, instead of whatever socket an earlier instance has left there.

    The socket is made under a hidden name and then renamed, so that the path leads to the old or to the new one at any
    instant, and grpc, which removes what it has bound when it stops, never removes another instance's (BR-21).

    :raises EndpointError: something that is no socket is there (CSI-RGR-01), or the kernel refuses.
    """
    _refuse_other_files(path)
    directory = os.path.dirname(path)
    hidden = os.path.join(directory, f".{os.getpid()}-{next(_numbers)}.sock")
    try:
        os.makedirs(directory, mode=0o755, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(hidden)
        with reachable(path), reachable(hidden) as short:  # the first only to know that others can reach it
            bound = server.add_insecure_port(grpc_address(short))
    except (OSError, RuntimeError) as error:
        raise EndpointError(path, f"cannot listen there: {error}") from error
    if not bound:  # how older grpc says it
        raise EndpointError(path, "cannot listen there: grpc does not say why; does the directory allow it?")
    try:
        if mode is not None:
            os.chmod(hidden, mode)
        found = os.lstat(hidden)
        os.rename(hidden, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(hidden)
        raise EndpointError(path, f"cannot put the socket in place: {error.strerror}") from error
    return OwnSocket(path, short, found.st_dev, found.st_ino)


def _refuse_other_files(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise EndpointError(path, f"cannot look at it: {error.strerror}") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise EndpointError(path, "something is there that is not a socket; move it away or choose another endpoint")
