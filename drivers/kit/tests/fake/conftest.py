"""A fake driver in this process with stubs to it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.fake import FakeDriver


@pytest.fixture
def connect(channel):
    """Makes the stubs of a driver at an endpoint."""

    def connect(endpoint):
        opened = channel(endpoint)
        return SimpleNamespace(
            identity=stubs.IdentityStub(opened),
            controller=stubs.ControllerStub(opened),
            node=stubs.NodeStub(opened),
        )

    return connect


@pytest.fixture
def fake(directory):
    """A fake driver with a place for its files."""
    os.mkdir(f"{directory}/data")
    with FakeDriver(f"unix://{directory}/csi.sock", data_dir=f"{directory}/data") as driver:
        yield driver


@pytest.fixture
def rpc(fake, connect):
    """Stubs to the fake driver."""
    return connect(fake.endpoint)


@pytest.fixture
def requests(directory, capability):
    """Makes the node's requests for a volume, with its paths in the test's directory."""

    def make(volume_id="v", *, target="target", wanted=None):
        cap = wanted or capability()
        staging = f"{directory}/staging-{volume_id}"
        os.makedirs(staging, exist_ok=True)
        common = {"volume_id": volume_id}
        return SimpleNamespace(
            staging=staging,
            target=f"{directory}/{target}",
            stage=csi.NodeStageVolumeRequest(**common, staging_target_path=staging, volume_capability=cap),
            publish=csi.NodePublishVolumeRequest(
                **common, staging_target_path=staging, target_path=f"{directory}/{target}", volume_capability=cap
            ),
            unpublish=csi.NodeUnpublishVolumeRequest(**common, target_path=f"{directory}/{target}"),
            unstage=csi.NodeUnstageVolumeRequest(**common, staging_target_path=staging),
        )

    return make
