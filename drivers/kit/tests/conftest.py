"""Servers and channels that end with their test, and a guard that finds mounts which one leaves behind."""

from __future__ import annotations

import contextlib
import ctypes
import os

import grpc
import pytest

from volumehost_csi_kit import csi
from volumehost_csi_kit.endpoints import dial
from volumehost_csi_kit.server import CsiServer


@pytest.fixture
def directory(tmp_path):
    """A directory; whatever is still mounted below it at the end is unmounted, and fails the test."""
    path = os.path.realpath(tmp_path)
    yield path
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        left = [line.split()[4] for line in table if line.split()[4].startswith(f"{path}/")]
    for mount in reversed(left):
        ctypes.CDLL(None).umount2(os.fsencode(mount), 2)
    assert not left, f"mounts left behind: {left}"


@pytest.fixture
def channel():
    """Makes channels to endpoints, and closes them."""
    with contextlib.ExitStack() as stack:

        def make(endpoint):
            opened = dial(endpoint)
            stack.callback(opened.close)
            return opened

        yield make


@pytest.fixture
def served(directory, channel):
    """Serves a driver, and gives a channel to it; ``served.server`` is the last server."""
    with contextlib.ExitStack() as stack:

        def serve(driver, **options):
            serve.server = stack.enter_context(
                CsiServer(driver, f"unix://{directory}/csi.sock", **{"grace_seconds": 0, **options})
            )
            return channel(f"{directory}/csi.sock")

        yield serve


@pytest.fixture
def failure():
    """What a call failed with: the name of the code, and the message."""

    def of(call, *arguments, **options):
        with pytest.raises(grpc.RpcError) as caught:
            call(*arguments, **{"timeout": 30, **options})
        return caught.value.code().name, caught.value.details()

    return of


def capability(mode="SINGLE_NODE_WRITER", *, block=False, **mount):
    """A volume capability."""
    access = csi.VolumeCapability.AccessMode(mode=csi.VolumeCapability.AccessMode.Mode.Value(mode))
    if block:
        return csi.VolumeCapability(block=csi.VolumeCapability.BlockVolume(), access_mode=access)
    return csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume(**mount), access_mode=access)


@pytest.fixture(name="capability")
def capability_factory():
    """Makes volume capabilities: mounted and SINGLE_NODE_WRITER unless told otherwise."""
    return capability
