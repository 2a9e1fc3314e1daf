"""What every StorageDriver does, as tests: run against the fake and against drivers that are reached for real.

::

    class TestMine(StorageDriverContract):
        @pytest.fixture
        def driver(self):
            ...  # a driver without volumes, whatever stands behind it

What a driver does not declare is not asked of it.
"""

# ruff: noqa: D102 - the names of tests say what they ask for

from __future__ import annotations

import uuid

import pytest

from volumehost.errors import StorageDriverError
from volumehost.storage_driver import CreateVolumeRequest, StorageDriver, VolumeCapability

MIB = 2**20
_SIZE = 32 * MIB
_PATIENCE = 60


class StorageDriverContract:
    """A subclass in a test module brings the fixture ``driver``."""

    @pytest.fixture
    def driver(self) -> StorageDriver:
        """The driver under test."""
        raise NotImplementedError("override the fixture driver")

    @pytest.fixture
    def capability(self) -> VolumeCapability:
        """How the volumes are to be used."""
        return VolumeCapability("SINGLE_NODE_WRITER")

    @pytest.fixture
    def request_for(self, capability: VolumeCapability) -> CreateVolumeRequest:
        """A volume with a name of its own."""
        return CreateVolumeRequest(f"contract-{uuid.uuid4().hex[:12]}", [capability], _SIZE)

    def test_it_says_who_it_is(self, driver: StorageDriver) -> None:
        assert driver.name
        assert isinstance(driver.node_id, str)
        assert driver.capabilities().controls("CREATE_DELETE_VOLUME")

    def test_creating_twice_is_creating_once(self, driver: StorageDriver, request_for: CreateVolumeRequest) -> None:
        """CSI-WIRE-13: the controllers ask again after every answer that was lost."""
        first, second = driver.create_volume(request_for), driver.create_volume(request_for)
        assert first.handle
        assert first.handle == second.handle
        assert first.capacity_bytes == 0 or first.capacity_bytes >= _SIZE
        driver.delete_volume(first.handle, {})

    def test_volumes_are_told_apart_by_name(
        self, driver: StorageDriver, request_for: CreateVolumeRequest, capability: VolumeCapability
    ) -> None:
        other = CreateVolumeRequest(f"{request_for.name}-2", [capability], _SIZE)
        handles = {driver.create_volume(each).handle for each in (request_for, other)}
        assert len(handles) == 2
        for handle in handles:
            driver.delete_volume(handle, {})

    def test_deleting_what_is_gone_works(self, driver: StorageDriver, request_for: CreateVolumeRequest) -> None:
        handle = driver.create_volume(request_for).handle
        driver.delete_volume(handle, {})
        driver.delete_volume(handle, {})
        assert driver.create_volume(request_for).handle
        driver.delete_volume(driver.create_volume(request_for).handle, {})

    def test_a_volume_is_listed_while_it_is_there(
        self, driver: StorageDriver, request_for: CreateVolumeRequest
    ) -> None:
        _needs(driver, "LIST_VOLUMES")
        handle = driver.create_volume(request_for).handle
        assert handle in {volume.handle for volume in driver.list_volumes()}
        driver.delete_volume(handle, {})
        assert handle not in {volume.handle for volume in driver.list_volumes()}

    def test_publishing_and_back_twice(
        self, driver: StorageDriver, request_for: CreateVolumeRequest, capability: VolumeCapability
    ) -> None:
        _needs(driver, "PUBLISH_UNPUBLISH_VOLUME")
        created = driver.create_volume(request_for)
        first, second = (
            driver.publish_volume(
                created.handle, driver.node_id, capability, read_only=False, context=created.context, secrets={}
            )
            for _ in range(2)
        )
        assert dict(first) == dict(second)
        for _ in range(2):
            driver.unpublish_volume(created.handle, driver.node_id, {})
        driver.delete_volume(created.handle, {})

    def test_publishing_what_is_not_there_is_final(self, driver: StorageDriver, capability: VolumeCapability) -> None:
        _needs(driver, "PUBLISH_UNPUBLISH_VOLUME")
        with pytest.raises(StorageDriverError) as caught:
            driver.publish_volume("never-made", driver.node_id, capability, read_only=False, context={}, secrets={})
        assert caught.value.code == "NOT_FOUND"
        assert caught.value.driver == driver.name
        assert caught.value.call

    def test_growing(
        self, driver: StorageDriver, request_for: CreateVolumeRequest, capability: VolumeCapability
    ) -> None:
        _needs(driver, "EXPAND_VOLUME")
        handle = driver.create_volume(request_for).handle
        for _ in range(2):
            grown = driver.expand_volume(handle, 2 * _SIZE, capability, {})
            assert grown.capacity_bytes >= 2 * _SIZE
        driver.delete_volume(handle, {})

    def test_a_volume_can_do_what_it_was_made_for(
        self, driver: StorageDriver, request_for: CreateVolumeRequest, capability: VolumeCapability
    ) -> None:
        created = driver.create_volume(request_for)
        problem = driver.validate_volume(
            created.handle, [capability], context=created.context, parameters={}, secrets={}
        )
        assert problem == ""
        driver.delete_volume(created.handle, {})

    def test_capacity_is_told(self, driver: StorageDriver) -> None:
        _needs(driver, "GET_CAPACITY")
        assert driver.get_capacity().available_bytes >= 0

    def test_a_clone_says_what_it_was_made_from(
        self, driver: StorageDriver, request_for: CreateVolumeRequest, capability: VolumeCapability
    ) -> None:
        _needs(driver, "CLONE_VOLUME")
        source = driver.create_volume(request_for).handle
        clone = driver.create_volume(
            CreateVolumeRequest(f"{request_for.name}-2", [capability], _SIZE, source_volume=source)
        )
        assert (clone.source_volume, clone.source_snapshot) == (source, "")
        for handle in (clone.handle, source):
            driver.delete_volume(handle, {})

    def test_a_snapshot_from_its_making_to_its_end(
        self, driver: StorageDriver, request_for: CreateVolumeRequest, capability: VolumeCapability
    ) -> None:
        _needs(driver, "CREATE_DELETE_SNAPSHOT")
        source, name = driver.create_volume(request_for).handle, f"{request_for.name}-snap"
        snapshot = driver.create_snapshot(source, name, {}, {})
        for _ in range(_PATIENCE):
            if snapshot.ready_to_use:
                break
            snapshot = driver.create_snapshot(source, name, {}, {})
        assert snapshot.ready_to_use
        assert (snapshot.source_volume, snapshot.creation_time > 0) == (source, True)
        assert driver.create_snapshot(source, name, {}, {}).handle == snapshot.handle
        restored = driver.create_volume(
            CreateVolumeRequest(f"{request_for.name}-2", [capability], _SIZE, source_snapshot=snapshot.handle)
        )
        assert restored.source_snapshot == snapshot.handle
        if driver.capabilities().controls("LIST_SNAPSHOTS"):
            assert snapshot.handle in {each.handle for each in driver.list_snapshots({}, source_volume=source)}
        driver.delete_volume(restored.handle, {})
        for _ in range(2):
            driver.delete_snapshot(snapshot.handle, {})
        assert driver.get_snapshot(snapshot.handle, {}) is None
        driver.delete_volume(source, {})


def _needs(driver: StorageDriver, capability: str) -> None:
    if not driver.capabilities().controls(capability):
        pytest.skip(f"driver {driver.name} does not declare {capability}")
