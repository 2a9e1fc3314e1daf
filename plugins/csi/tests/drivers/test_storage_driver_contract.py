"""Drivers on a real socket keep the contract that the host's fake storage driver keeps."""

from __future__ import annotations

import pytest

from volumehost.storage_driver import StorageDriver, VolumeCapability
from volumehost.testing.storage_driver_contract import StorageDriverContract


class TestScriptableDriver(StorageDriverContract):
    @pytest.fixture
    def driver(self, called) -> StorageDriver:
        return called


@pytest.mark.root
class TestLoopDriver(StorageDriverContract):
    """The loop driver in a process of its own, started because somebody asks for it."""

    @pytest.fixture
    def driver(self, new_drivers) -> StorageDriver:
        pytest.importorskip("volumehost_loop_driver")
        return new_drivers().driver("loop.csi.volumehost", timeout=30)

    @pytest.fixture
    def capability(self) -> VolumeCapability:
        return VolumeCapability("SINGLE_NODE_WRITER", fs_type="ext4")
