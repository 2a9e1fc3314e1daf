"""``python -m volumehost_csi_kit.fake --endpoint unix:///run/x/csi.sock --control /run/x/control.sock``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading

from volumehost_csi_kit.fake.control import ControlServer
from volumehost_csi_kit.fake.driver import FakeDriver
from volumehost_csi_kit.fake.null import null_driver
from volumehost_csi_kit.server.main import options_from, run
from volumehost_csi_kit.server.serving import CsiServer


def main() -> int:
    """Serve until told to stop; the exit code."""
    parser = argparse.ArgumentParser(
        prog="volumehost_csi_kit.fake", description="A CSI driver that does as it is told."
    )
    parser.add_argument("--control", default="", help="socket to take scripts and questions at")
    parser.add_argument("--calls", default="", help="file to append every call to, as JSON lines")
    parser.add_argument("--state", default="", help="file to keep volumes and snapshots in")
    parser.add_argument("--config", type=json.loads, default={}, help="JSON with fields of FakeConfig")
    parser.add_argument("--null", action="store_true", help="no work, no records: a driver for benchmarks")
    parser.add_argument("--name", default="null.csi.example.com", help="name of the null driver")
    parser.add_argument(
        "--attached",
        action="store_true",
        help="write a line to standard output once it serves, and die when standard input ends",
    )

    options = options_from(parser=parser)
    given = options.arguments

    def announce() -> None:
        if given.attached:
            threading.Thread(target=_die_with_standard_input, name="fake-attached", daemon=True).start()
            sys.stdout.write("serving\n")
            sys.stdout.flush()

    if given.null:
        driver = null_driver(given.name, options.node_id)
        return run(CsiServer(driver, options.endpoint, registration_dir=options.registration_dir), on_serving=announce)
    fake = FakeDriver(
        options.endpoint,
        registration_dir=options.registration_dir,
        state_path=given.state,
        calls_path=given.calls,
        on_death=_die,
        **{"node_id": options.node_id, **given.config},
    )
    if given.control:
        ControlServer(fake, given.control)
    return run(fake, on_serving=announce)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_with_standard_input() -> None:
    """A test that is killed leaves no driver behind: its end of the pipe closes."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _die()


if __name__ == "__main__":
    sys.exit(main())
