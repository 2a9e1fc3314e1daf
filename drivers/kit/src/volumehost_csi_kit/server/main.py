"""The ``main()`` of a driver: options from the command line and the environment, serving until told to stop."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from volumehost_csi_kit.endpoints import EndpointError, socket_path
from volumehost_csi_kit.server.capabilities import DriverDefinitionError
from volumehost_csi_kit.server.driver import Driver
from volumehost_csi_kit.server.serving import CsiServer

log = logging.getLogger("volumehost_csi_kit.server")

_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True)
class Options:
    """What a driver was started with. ``arguments`` has everything, an author's own flags too."""

    endpoint: str
    node_id: str
    registration_dir: str = ""
    arguments: argparse.Namespace = field(default_factory=argparse.Namespace)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that every driver has, with their defaults from the environment."""
    parser.add_argument(
        "--endpoint",
        default=os.environ.get("CSI_ENDPOINT", ""),
        help="socket to serve on, as unix:///run/csi.sock (default: $CSI_ENDPOINT)",
    )
    parser.add_argument(
        "--node-id",
        default=os.environ.get("KUBE_NODE_NAME") or socket.gethostname(),
        help="what this node is called (default: $KUBE_NODE_NAME, or the host name)",
    )
    parser.add_argument(
        "--registration-dir",
        default=os.environ.get("CSI_REGISTRATION_DIR", ""),
        help="the kubelet's plugins_registry, to register there without a sidecar (default: $CSI_REGISTRATION_DIR)",
    )
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="how much to log (default: info)")


def options_from(argv: Sequence[str] | None = None, parser: argparse.ArgumentParser | None = None) -> Options:
    """The options from the command line and the environment; sets up logging to standard error.

    Ends the process, as argparse does, when they are wrong.
    """
    parser = parser or argparse.ArgumentParser(description="A CSI driver.")
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    try:
        if not arguments.endpoint:
            parser.error("no endpoint: give --endpoint unix:///path/to/csi.sock or set CSI_ENDPOINT")
        socket_path(arguments.endpoint)
    except EndpointError as error:
        parser.error(str(error))
    logging.basicConfig(
        stream=sys.stderr,
        level=arguments.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    return Options(arguments.endpoint, arguments.node_id, arguments.registration_dir, arguments)


class Stoppable(Protocol):
    """Something that serves in the background; ``stop`` returns the calls that do not end within the grace time."""

    def start(self) -> None:
        """Serve from now on."""
        ...

    def stop(self, grace_seconds: float) -> list[str]:
        """Serve no more."""
        ...


def serve(
    driver: Driver | Callable[[Options], Driver],
    argv: Sequence[str] | None = None,
    *,
    parser: argparse.ArgumentParser | None = None,
    grace_seconds: float = 30.0,
    on_serving: Callable[[], None] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT, then let running calls end for ``grace_seconds``; the exit code for ``sys.exit``.

    ``driver`` is a driver, or a function that makes one of the :class:`Options`; ``parser`` may bring more flags. See
    :func:`run` for the rest.
    """
    options = options_from(argv, parser)
    try:
        made = driver if isinstance(driver, Driver) else driver(options)
        server = CsiServer(made, options.endpoint, registration_dir=options.registration_dir)
    except DriverDefinitionError as error:
        log.critical("cannot start: %s", error)
        return 2
    return run(server, grace_seconds=grace_seconds, on_serving=on_serving)


def run(server: Stoppable, *, grace_seconds: float = 30.0, on_serving: Callable[[], None] | None = None) -> int:
    """Start ``server`` and stop it at SIGTERM or SIGINT; the exit code. To be called in the main thread.

    ``on_serving`` is called once it answers; systemd is told too, where it asks to be. The exit code is 0 after a clean
    end and 2 when it cannot start. Where a call does not end within the grace time, or at a second signal, the process
    ends at once with 1: its threads could hold it up for ever.
    """
    stop = _stop_signal()
    try:
        server.start()
    except EndpointError as error:
        log.critical("cannot start: %s", error)
        return 2
    notify_service_manager("READY=1")
    if on_serving is not None:
        on_serving()
    stop.wait()
    notify_service_manager("STOPPING=1")
    log.info("stopping; running calls have %.0f s to end", grace_seconds)
    if server.stop(grace_seconds):
        logging.shutdown()
        os._exit(1)  # an ordinary exit would wait for the threads of those calls (BR-52)
    log.info("stopped")
    return 0


def _stop_signal() -> threading.Event:
    """An event that the first SIGTERM or SIGINT sets; the second ends the process."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(1)  # and nothing else: the signal may have come in the middle of writing to the log
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop


def notify_service_manager(state: str) -> None:
    """Tell systemd, where it started this process and asked to be told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.connect("\0" + address[1:] if address.startswith("@") else address)
        link.sendall(state.encode())
