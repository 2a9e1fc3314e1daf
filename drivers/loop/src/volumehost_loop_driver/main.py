"""The loop driver's program: checks that the machine can do it, opens the data directory, serves until told to stop."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from volumehost.errors import MissingPrivilegeError, QuantityError, VolumeHostError
from volumehost.mount.privileges import check_mount_privileges
from volumehost.mount.programs import Programs
from volumehost.sdk import parse_quantity
from volumehost_csi_kit.server import Driver, Options, serve
from volumehost_loop_driver.driver import make_driver
from volumehost_loop_driver.state import DriverState
from volumehost_loop_driver.steps import StepObserver, unobserved

logger = logging.getLogger(__name__)

DEFAULT_DATA_DIR: Final = "/var/lib/volumehost-loop-driver"
_LOOP_CONTROL: Final = "/dev/loop-control"


def main(argv: Sequence[str] | None = None, *, observe: StepObserver = unobserved) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Mounts stay when it ends.

    :param observe: told of the steps of every operation; for tests.
    """
    try:
        return serve(lambda options: _make(options, observe), argv, parser=_parser())
    except (VolumeHostError, OSError) as error:
        sys.stderr.write(f"volumehost-loop-driver: cannot start: {error}\n")
        return 2


def check_machine(loop_control: str = _LOOP_CONTROL) -> None:
    """Return when this process can do what the driver does; changes nothing.

    :raises MissingPrivilegeError: it cannot; says what is missing and what to do.
    """
    check_mount_privileges()
    try:
        os.close(os.open(loop_control, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise MissingPrivilegeError(
            f"{loop_control}: {error.strerror}",
            action="prepare to use loop devices",
            subject=loop_control,
            hint="load the kernel's module loop (modprobe loop); in a container, mount /dev of the machine",
        ) from error
    if Programs().find("mkfs.ext4") is None:
        raise MissingPrivilegeError(
            "the program mkfs.ext4 is not installed",
            action="prepare to make filesystems",
            subject="mkfs.ext4",
            hint="install e2fsprogs",
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="volumehost-loop-driver",
        description="A CSI driver for one machine: volumes are files on loop devices, with a real size limit.",
    )
    parser.add_argument(
        "--data-dir",
        default=os.environ.get("VOLUMEHOST_DRIVER_DATA_DIR") or DEFAULT_DATA_DIR,
        help=f"where volumes and snapshots are kept (default: $VOLUMEHOST_DRIVER_DATA_DIR, or {DEFAULT_DATA_DIR})",
    )
    parser.add_argument(
        "--capacity",
        type=_capacity,
        help="how much all volumes and snapshots together may promise, such as 100Gi (default: what the disk has)",
    )
    return parser


def _capacity(text: str) -> int:
    try:
        size = parse_quantity(text).value()
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if size <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return size


def _make(options: Options, observe: StepObserver) -> Driver:
    check_machine()
    arguments = options.arguments
    state = DriverState(arguments.data_dir, options.node_id, capacity=arguments.capacity, observe=observe)
    logger.info(
        "data directory %s: %d volumes, %d snapshots",
        arguments.data_dir,
        len(state.volumes.keys()),
        len(state.snapshots.keys()),
    )
    return make_driver(state)
