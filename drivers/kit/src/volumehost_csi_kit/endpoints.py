"""Where a driver serves: parsing endpoints, and connecting to them.

CSI knows unix sockets only (CSI-WIRE-03). Registrars write plain paths, drivers ``unix:///…``: both do (CSI-RGR-08).
"""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import grpc

#: Bytes of a path that the kernel takes in a socket's address: 108 with the closing zero (CSI-WATCH-14).
LONGEST_SOCKET_PATH = 107
#: Bytes of the longest message that is accepted: a list of some tens of thousands of volumes.
LONGEST_MESSAGE = 16 * 1024 * 1024

_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
_OPTIONS = (
    ("grpc.default_authority", "localhost"),  # some servers refuse the socket's path as an authority
    ("grpc.enable_http_proxy", 0),
    # Without a pool of its own a channel may get the dead connection of an earlier one to the same path.
    ("grpc.use_local_subchannel_pool", 1),
    # A driver that restarts is back in a moment; grpc's own backoff goes up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 5000),  # in spite of its name: how long connecting may take
    ("grpc.max_receive_message_length", LONGEST_MESSAGE),
)


class EndpointError(ValueError):
    """An endpoint that cannot be used; ``endpoint`` is what was given. For whoever gave it."""

    def __init__(self, endpoint: str, reason: str) -> None:
        self.endpoint = endpoint
        self.reason = reason
        super().__init__(f"endpoint {endpoint!r}: {reason}")


def socket_path(endpoint: str) -> str:
    """The absolute path of the socket that ``unix:///run/x.sock``, ``unix:/run/x.sock`` or ``/run/x.sock`` names.

    :raises EndpointError: it is none of these.
    """
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", endpoint)
    if scheme and scheme.group().lower() != "unix:":
        raise EndpointError(endpoint, f"CSI is served on unix sockets only, not on {scheme.group()[:-1]!r}")
    path = endpoint[scheme.end() :] if scheme else endpoint
    if scheme and path.startswith("//"):
        path = path[2:]
    if not path:
        raise EndpointError(endpoint, "names no socket; write unix:///path/to/csi.sock")
    if "\0" in path:
        raise EndpointError(endpoint, "holds a zero byte")
    if not path.startswith("/"):
        raise EndpointError(endpoint, f"its path {path!r} is not absolute; write unix:///path/to/csi.sock")
    if path.endswith("/"):
        raise EndpointError(endpoint, "ends with a slash, so it names a directory, not a socket")
    return path


@contextlib.contextmanager
def reachable(path: str) -> Iterator[str]:
    """A path to the same socket that is short enough for the kernel, while the context lasts (CSI-WATCH-14).

    It is ``path`` itself where that fits; otherwise its directory is opened, and the way leads through the descriptor.

    :raises EndpointError: even the name alone is too long, or there is no such directory.
    """
    descriptor, short = _short_path(path)
    try:
        yield short
    finally:
        if descriptor is not None:
            os.close(descriptor)


def grpc_address(path: str) -> str:
    """The address that grpc takes for a socket's path, which it reads as a URI."""
    if _PLAIN.fullmatch(path):
        return f"unix:{path}"
    from urllib.parse import quote  # seldom needed, and not cheap to import

    return "unix:" + quote(path)


def dial(endpoint: str) -> grpc.Channel:
    """A channel to the driver at ``endpoint``: insecure, as the socket's permissions guard it.

    It connects with the first call and again, within about a second, whenever the driver comes back; the calls bring
    their own deadlines. One channel is enough for any number of calls and threads. Close it when the driver has gone:
    where the path is too long for the kernel the channel holds its directory.

    :raises EndpointError: it is no endpoint of a driver, or cannot be reached from here.
    """
    import grpc

    descriptor, short = _short_path(socket_path(endpoint))
    channel = grpc.insecure_channel(grpc_address(short), options=_OPTIONS)
    if descriptor is not None:
        weakref.finalize(channel, os.close, descriptor)
    return channel


def _short_path(path: str) -> tuple[int | None, str]:
    """A directory's descriptor to keep open, if one is needed, and the path to use."""
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return None, path
    directory, name = os.path.split(path)
    try:
        descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise EndpointError(
            path,
            f"longer than the {LONGEST_SOCKET_PATH} bytes that the kernel takes, and its directory cannot be opened "
            f"to shorten it: {error.strerror}",
        ) from error
    short = f"/proc/self/fd/{descriptor}/{name}"
    if len(os.fsencode(short)) > LONGEST_SOCKET_PATH:
        os.close(descriptor)
        raise EndpointError(
            path,
            f"even its last component of {len(os.fsencode(name))} bytes is too long: the kernel takes "
            f"{LONGEST_SOCKET_PATH} bytes for a socket; give the driver a shorter name or serve it elsewhere",
        )
    return descriptor, short
