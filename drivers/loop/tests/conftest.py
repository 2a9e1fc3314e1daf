"""A data directory, the driver's parts over it, and the driver as a process; whatever a test leaves behind fails it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import grpc
import pytest

from volumehost.mount import loop
from volumehost.mount.mounter import LinuxMounter
from volumehost_csi_kit import csi
from volumehost_csi_kit.endpoints import dial
from volumehost_csi_kit.stubs import ControllerStub, GroupControllerStub, IdentityStub, NodeStub
from volumehost_loop_driver.ephemeral import EphemeralVolumes
from volumehost_loop_driver.filesystems import Filesystems
from volumehost_loop_driver.publishing import Publishing
from volumehost_loop_driver.records import Capability
from volumehost_loop_driver.snapshots import Snapshots
from volumehost_loop_driver.staging import Staging
from volumehost_loop_driver.state import DriverState
from volumehost_loop_driver.stats import Stats
from volumehost_loop_driver.volumes import Volumes, Wanted

MiB = 1 << 20
WRITER = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4")
MULTI = Capability(block=False, mode="SINGLE_NODE_MULTI_WRITER", fs_type="ext4")
BLOCK = Capability(block=True, mode="SINGLE_NODE_MULTI_WRITER")


def devices_below(directory: str) -> list[str]:
    return [item.device for item in loop.list_attached() if item.backing_file.startswith(directory + "/")] + [
        view.device
        for item in loop.list_attached()
        if item.backing_file.startswith(directory + "/")
        for view in loop.list_attached()
        if view.backing_file == item.device
    ]


def mounts_below(directory: str) -> list[str]:
    return [mount.path for mount in LinuxMounter().list_mounts() if mount.path.startswith(directory + "/")]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """An empty directory; mounts and loop devices that are left in it are taken away, and fail the test."""
    path = os.path.realpath(tmp_path)
    yield path
    mounts, devices = mounts_below(path), devices_below(path)
    for mount in reversed(mounts):
        LinuxMounter().unmount(mount)
    for device in reversed(devices):
        loop.detach(device)
    assert not mounts, f"mounts left behind: {mounts}"
    assert not devices, f"loop devices left behind: {devices}"


class Parts:
    """The driver without gRPC. ``steps`` collects what the observer saw; ``at_step`` acts there, once."""

    WRITER, MULTI, BLOCK = WRITER, MULTI, BLOCK

    def __init__(self, place: str, *, boot_id: str = "boot-1", capacity: int | None = None, data: str = "data") -> None:
        self.place = place
        self.closed = False
        self.successor: Parts | None = None
        self.steps: list[str] = []
        self.at_step: dict[str, Callable[[], object]] = {}
        self.state = DriverState(
            os.path.join(place, data), "node-1", capacity=capacity, observe=self._observe, boot_id=boot_id
        )
        self.volumes = Volumes(self.state)
        self.snapshots = Snapshots(self.state)
        filesystems = Filesystems(self.state.mounter)
        self.staging = Staging(self.state, filesystems)
        self.publishing = Publishing(self.state, filesystems, self.staging)
        self.ephemeral = EphemeralVolumes(self.state, self.staging)
        self.stats = Stats(self.state, self.volumes)

    def _observe(self, step: str) -> None:
        self.steps.append(step)
        action = self.at_step.pop(step, None)
        if action is not None:
            action()

    def path(self, name: str) -> str:
        return os.path.join(self.place, name)

    def directory(self, name: str) -> str:
        os.makedirs(self.path(name), exist_ok=True)
        return self.path(name)

    def image(self, id: str) -> str:
        return self.state.images.path(self.state.volume(id).key)

    def image_of(self, key: str) -> str:
        return self.state.images.path(key)

    def create(self, name: str = "one", size: int = 16 * MiB, fs_type: str = "ext4", **more: object) -> str:
        return self.volumes.create(Wanted(name, required=size, fs_type=fs_type, **more)).id  # type: ignore[arg-type]

    def staged(self, name: str = "one", capability: Capability = WRITER, size: int = 16 * MiB, **more: object) -> str:
        id = self.create(name, size, "" if capability.block else capability.fs_type, **more)
        self.staging.stage(id, self.directory(f"stage-{name}"), capability)
        return id

    def tear_down(self, id: str) -> None:
        """Everything back, however far it went."""
        staged = self.state.node.get(id)
        if staged is not None:
            for target in staged.publications:
                self.publishing.unpublish(id, target)
            if staged.staging_path:
                self.staging.unstage(id, staged.staging_path)
        self.volumes.delete(id)

    def reopened(self, **more: object) -> Parts:
        """The same after the process has ended, with its records and what it has mounted."""
        self.state.close()
        self.closed = True
        self.successor = Parts(self.place, **more)  # type: ignore[arg-type]
        return self.successor

    def close(self) -> None:
        if self.successor is not None:
            self.successor.close()
        elif not self.closed:
            self.state.close()
        self.closed = True


@pytest.fixture
def make_parts(place: str) -> Iterator[Callable[..., Parts]]:
    """Opens data directories below ``place``; closed with the test."""
    made: list[Parts] = []

    def make(**more: Any) -> Parts:
        made.append(Parts(place, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def parts(place: str) -> Iterator[Parts]:
    made = Parts(place)
    yield made
    made.close()


#: Starts the driver, ending it with SIGKILL when the step that the first argument names is reached.
_PROGRAM = """
import os, signal, sys
from volumehost_loop_driver.main import main
deadly = sys.argv.pop(1)
def observe(step):
    if step == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main(observe=observe))
"""


class DriverProcess:
    """The driver as a real process, on a real socket."""

    def __init__(self, place: str, *arguments: str, deadly_step: str = "", data: str = "data") -> None:
        self.place = place
        self.socket = os.path.join(place, "csi.sock")
        self.log = os.path.join(place, "driver.log")
        environment = {
            **os.environ,
            "CSI_ENDPOINT": f"unix://{self.socket}",
            "KUBE_NODE_NAME": "node-1",
            "VOLUMEHOST_DRIVER_DATA_DIR": os.path.join(place, data),
        }
        with suppress(FileNotFoundError):
            os.unlink(self.socket)  # a process that was killed leaves it
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, deadly_step, *arguments],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_it_serves(self) -> None:
        """Or until it has ended, for those that cannot start."""
        until = time.monotonic() + 30
        while not os.path.exists(self.socket) and self.process.poll() is None:
            assert time.monotonic() < until, self.text()
            time.sleep(0.005)

    def text(self) -> str:
        return Path(self.log).read_text(encoding="utf-8")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


@pytest.fixture
def start(place: str) -> Iterator[Callable[..., DriverProcess]]:
    """Starts driver processes, which are ended with the test."""
    started: list[DriverProcess] = []

    def begin(*arguments: str, **more: str) -> DriverProcess:
        started.append(DriverProcess(place, *arguments, **more))
        started[-1].wait_until_it_serves()
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(30)


SECONDS = 30.0


class Client:
    """One channel, every stub. ``call`` makes a request of keyword arguments."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._connect()

    def _connect(self) -> None:
        self._channel = dial(self._endpoint)
        self._stubs = [kind(self._channel) for kind in (IdentityStub, ControllerStub, NodeStub, GroupControllerStub)]

    def reconnect(self) -> None:
        """Go to the driver's next process at once, without grpc's pause."""
        self._channel.close()
        self._connect()

    @staticmethod
    def capability(
        *,
        block: bool = False,
        mode: str = "SINGLE_NODE_MULTI_WRITER",
        fs_type: str = "ext4",
        group: str = "",
        flags: tuple[str, ...] = (),
    ) -> csi.VolumeCapability:
        one = csi.VolumeCapability
        access = one.AccessMode(mode=one.AccessMode.Mode.Value(mode))
        if block:
            return one(block=one.BlockVolume(), access_mode=access)
        mount = one.MountVolume(fs_type=fs_type, mount_flags=flags, volume_mount_group=group)
        return one(mount=mount, access_mode=access)

    def call(self, method: str, timeout: float = SECONDS, **fields: Any) -> Any:
        """Make the call; waits until the driver is there."""
        return self._function(method)(getattr(csi, f"{method}Request")(**fields), timeout=timeout, wait_for_ready=True)

    def future(self, method: str, timeout: float = SECONDS, **fields: Any) -> Any:
        """Begin the call."""
        request = getattr(csi, f"{method}Request")(**fields)
        return self._function(method).future(request, timeout=timeout, wait_for_ready=True)

    def fails(self, method: str, **fields: Any) -> tuple[str, str]:
        """Make the call, which must fail: code and message."""
        try:
            self.call(method, **fields)
        except grpc.RpcError as error:
            return error.code().name, error.details() or ""
        raise AssertionError(f"{method} succeeded")

    def image_of(self, key: str) -> str:
        return self.state.images.path(key)

    def create(self, name: str, size: int = 16 << 20, **more: Any) -> csi.Volume:
        more.setdefault("volume_capabilities", [self.capability()])
        return self.call(
            "CreateVolume", name=name, capacity_range=csi.CapacityRange(required_bytes=size), **more
        ).volume

    def _function(self, method: str) -> Callable[..., Any]:
        for stub in self._stubs:
            if hasattr(stub, method):
                return getattr(stub, method)
        raise AttributeError(method)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()


@pytest.fixture
def client(place: str) -> Iterator[Client]:
    with Client(f"unix://{os.path.join(place, 'csi.sock')}") as made:
        yield made
