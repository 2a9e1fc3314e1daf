"""Registration through a socket with the embedded store: what the cluster sees (CSI-NIM, CSI-REG)."""

from __future__ import annotations

import pytest

from volumehost.api.objects import CSIDriver, CSIDriverSpec, Node, ObjectMeta

pytestmark = pytest.mark.timeout(60)

A = "a.example.com"


def test_a_driver_is_in_csi_node_while_it_is_registered(api_node, plugin, wait_until) -> None:
    """CSI-REG-07, -12."""
    fake = plugin(api_node.socket("a-reg.sock"), node_id="n1", max_volumes=3, topology={"t/zone": "z"})
    assert fake.statuses.get(timeout=20) == (True, "")
    assert [(each.name, each.node_id, each.topology_keys) for each in api_node.csi_node().spec.drivers] == [
        (A, "n1", ["t/zone"])
    ]
    assert api_node.node().metadata.labels["t/zone"] == "z"
    fake.stop()
    wait_until(lambda: not api_node.csi_node().spec.drivers, "the entry gone")
    assert api_node.node().metadata.labels["t/zone"] == "z"


def test_a_collision_of_labels_is_told_to_the_driver(api_node, api, plugin, wait_until) -> None:
    """CSI-NIM-11, BR-25: with what to do; once the label is gone it registers by itself."""
    first = plugin(api_node.socket("a-reg.sock"), topology={"t/zone": "z1"})
    assert first.statuses.get(timeout=20)[0]
    first.stop()
    api_node.wait_gone(A)
    fake = plugin(api_node.socket("b-reg.sock"), topology={"t/zone": "z2"})
    registered, reason = fake.statuses.get(timeout=20)
    assert not registered
    assert "t/zone=z2 where the node has z1" in reason
    assert "remove the old label (t/zone) from the Node" in reason
    assert api_node.wait_state(fake.registration_socket, "failed").error == reason
    api.patch(Node, "node-a", {"metadata": {"labels": {"t/zone": None}}})
    api_node.wait_registered(A)


def test_a_driver_that_restarts_with_the_same_answers_writes_nothing(api_node, plugin, short_dir, wait_until) -> None:
    """CSI-NIM-17, BR-21: what the scheduler sees does not flicker."""
    import os

    old = plugin(api_node.socket("a-reg.sock"))
    assert old.statuses.get(timeout=20)[0]
    before = api_node.csi_node().metadata.resource_version
    new = plugin("")
    new.serve_registration(f"{short_dir}/new.sock")
    os.rename(f"{short_dir}/new.sock", old.registration_socket)
    assert new.statuses.get(timeout=20) == (True, "")
    api_node.wait_idle()
    assert api_node.csi_node().metadata.resource_version == before


def test_a_host_that_ends_takes_no_driver_out(api_node, plugin) -> None:
    """CSI-RAPI-12 is for a plugin that cannot be told; here it is the host that goes, and the next one asks again."""
    fake = plugin(api_node.socket("a-reg.sock"), held="NotifyRegistrationStatus")
    assert fake.statuses.get(timeout=20) == (True, "")
    api_node.registration.stop(30)
    assert [each.name for each in api_node.csi_node().spec.drivers] == [A]


def test_a_limit_is_refreshed_on_demand_and_by_period(api_node, api, plugin, wait_until) -> None:
    """CSI-REG-16, CSI-UPD-02, -03."""
    api.create(CSIDriver(metadata=ObjectMeta(name=A), spec=CSIDriverSpec(node_allocatable_update_period_seconds=10)))
    fake = plugin(api_node.socket("a-reg.sock"), max_volumes=3)
    assert fake.statuses.get(timeout=20)[0]
    wait_until(lambda: api_node.registration.updater.period(A) == 10, "scheduled")
    fake.says["max_volumes"] = 8
    api_node.registration.updater.refresh(A)
    assert api_node.csi_node().spec.drivers[0].allocatable.count == 8
    assert api_node.store.get(A).node_info.max_volumes == 8
