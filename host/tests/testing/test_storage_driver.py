"""The fake storage driver keeps the contract, and does what a test tells it to."""

from __future__ import annotations

from pathlib import Path

import pytest

from volumehost.errors import StorageDriverError, StorageDriverUncertainError
from volumehost.storage_driver import CreateVolumeRequest, StorageDriver, VolumeCapability
from volumehost.testing.storage_driver import FakeStorageDriver
from volumehost.testing.storage_driver_contract import StorageDriverContract

REQUEST = CreateVolumeRequest("pvc-1", [VolumeCapability("SINGLE_NODE_WRITER")], 2**30)


class TestContract(StorageDriverContract):
    @pytest.fixture
    def driver(self) -> StorageDriver:
        return FakeStorageDriver()


class TestContractWithAState(StorageDriverContract):
    @pytest.fixture
    def driver(self, tmp_path: Path) -> StorageDriver:
        return FakeStorageDriver(state_file=str(tmp_path / "state.json"))


def test_it_remembers_across_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "state.json")
    made = FakeStorageDriver(state_file=path).create_volume(REQUEST)
    again = FakeStorageDriver(state_file=path)
    assert again.create_volume(REQUEST).handle == made.handle
    assert again.volumes == {made.handle: 2**30}


def test_failures_come_in_order_and_calls_are_counted() -> None:
    driver = FakeStorageDriver()
    driver.fail("create_volume", "DEADLINE_EXCEEDED", after_effect=True)
    driver.fail("create_volume", "INTERNAL", message="no")
    with pytest.raises(StorageDriverUncertainError):
        driver.create_volume(REQUEST)
    assert len(driver.volumes) == 1
    with pytest.raises(StorageDriverError, match="INTERNAL: no"):
        driver.create_volume(REQUEST)
    driver.create_volume(REQUEST)
    assert (driver.count("create_volume"), len(driver.volumes)) == (3, 1)
    assert driver.last("create_volume")["request"] == REQUEST


def test_nonsense_on_demand() -> None:
    driver = FakeStorageDriver()
    driver.answer_bytes, driver.answer_handle, driver.forget_source = 7, "odd", True
    created = driver.create_volume(REQUEST)
    assert (created.capacity_bytes, created.handle, created.source_volume) == (7, "odd", "")
    driver.delete_volume("odd", {})
    assert not driver.volumes
