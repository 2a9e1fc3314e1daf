"""What the CSI sidecars do, for a driver that is named: its volumes are made, attached, detached and deleted."""

from __future__ import annotations

import pytest

from volumehost.controller.settings import chosen_controllers
from volumehost.errors import StorageDriverError
from volumehost_csi_kit.fake import FakeDriverProcess

DRIVER = "csi.example.com"
STORAGE = "storage.k8s.io/v1"


def test_a_volume_by_the_drivers_controller_service(cluster, wait, tmp_path) -> None:
    cluster.attacher.works = False
    endpoint = f"unix://{tmp_path}/csi.sock"
    cluster.node()
    cluster.driver()
    cluster.put("CSINode", "n1", STORAGE, spec={"drivers": [{"name": DRIVER, "nodeID": "machine-1"}]})
    cluster.put("StorageClass", "fast", STORAGE, provisioner=DRIVER, reclaimPolicy="Delete")
    with FakeDriverProcess(endpoint, str(tmp_path / "driver"), name=DRIVER, node_id="machine-1") as driver:
        controllers = chosen_controllers([], sidecars=True)
        cluster.start(cluster.settings(drivers=((DRIVER, endpoint),), controllers=controllers))
        cluster.put(
            "PersistentVolumeClaim",
            "data",
            metadata={"namespace": "default"},
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        )
        claim = wait(lambda: _bound(cluster), "the claim to be bound")
        cluster.pod()
        (handle,) = wait(cluster.attached, "the attachment")
        assert len(driver.calls("ControllerPublishVolume")) == 1
        assert cluster.attachments()[0]["metadata"]["finalizers"] == ["external-attacher/csi-example-com"]
        assert (
            cluster.objects.get("persistentvolumes", claim["spec"]["volumeName"])["spec"]["csi"]["volumeHandle"]
            == handle
        )
        cluster.end_pod()
        wait(lambda: not cluster.attachments(), "the detach")
        assert len(driver.calls("ControllerUnpublishVolume")) == 1
        cluster.objects.delete("persistentvolumeclaims", "data", "default")
        wait(lambda: not cluster.objects.list("persistentvolumes"), "the volume to be deleted")
        assert len(driver.calls("DeleteVolume")) == 1


def test_another_drivers_volumes_are_left_to_its_sidecars(cluster, wait, tmp_path) -> None:
    """Never two on one object: what is not named is somebody else's."""
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    drivers = (("other.example.com", f"unix://{tmp_path}/none.sock"),)
    cluster.start(cluster.settings(drivers=drivers, controllers=chosen_controllers([], sidecars=True)))
    wait(lambda: cluster.attached() == ["data"], "the attachment, by its external-attacher")


@pytest.mark.parametrize("identity", ["", "leader"])
def test_what_is_no_endpoint_ends_the_daemon_with_a_word_on_it(cluster, identity) -> None:
    """Whether or not it had to become the leader before."""
    daemon = cluster.start(cluster.settings(identity, drivers=((DRIVER, "tcp://10.0.0.1:1"),)))
    cluster.daemons.clear()
    with pytest.raises(StorageDriverError, match="unix sockets only"):
        daemon.join(30)


def _bound(cluster):
    claim = cluster.objects.get("persistentvolumeclaims", "data", "default")
    return claim if claim["status"].get("phase") == "Bound" else None
