"""A registrar puts its socket into the directory, and what follows (CSI-RAPI, CSI-REG, BR-25)."""

from __future__ import annotations

import os
import socket

import pytest

pytestmark = pytest.mark.timeout(60)


def test_a_driver_registers_and_leaves(node, plugin) -> None:
    """CSI-RAPI-09, CSI-RGR-06, CSI-SOLO-05."""
    fake = plugin(node.socket("a.example.com-reg.sock"), node_id="n1", max_volumes=7, topology={"t/zone": "z"})
    node.wait_registered("a.example.com", fake.driver_socket)
    assert fake.statuses.get(timeout=20) == (True, "")
    instance = node.store.get("a.example.com")
    assert (instance.node_info.node_id, instance.node_info.max_volumes) == ("n1", 7)
    assert instance.node_info.topology == {"t/zone": "z"}
    assert node.registration.node_info.local["a.example.com"] == instance.node_info
    assert node.wait_state(fake.registration_socket, "registered").name == "a.example.com"
    fake.stop()
    node.wait_gone("a.example.com")
    node.wait_idle()
    assert node.manager.statuses() == []
    assert node.registration.node_info.local == {}
    assert "was removed" in node.manager.explain("a.example.com")


def test_sockets_that_lie_there_before_the_start_are_found(make_node, bare_host, plugin) -> None:
    """CSI-WATCH-01, CSI-EDGE-39."""
    os.makedirs(bare_host.get_plugins_registry_dir())
    fake = plugin(f"{bare_host.get_plugins_registry_dir()}/a-reg.sock")
    make_node(bare_host).wait_registered("a.example.com", fake.driver_socket)


def test_without_an_endpoint_the_registration_socket_is_the_endpoint(node, plugin, short_dir) -> None:
    """CSI-RAPI-08: the same server then serves the driver; here it does not, so the registration fails in its call."""
    fake = plugin(node.socket("a-reg.sock"), endpoint="")
    registered, reason = fake.statuses.get(timeout=20)
    assert not registered
    assert "UNIMPLEMENTED" in reason
    assert node.wait_state(fake.registration_socket, "failed").endpoint == fake.registration_socket


@pytest.mark.parametrize("prefix", ["unix://", "unix:"])
def test_an_endpoint_may_have_a_scheme(node, plugin, short_dir, prefix) -> None:
    """CSI-RGR-08."""
    path = f"{short_dir}/d.sock"
    plugin(node.socket("a-reg.sock"), driver_socket=path, endpoint=f"{prefix}{path}")
    node.wait_registered("a.example.com", path)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ({"versions": []}, "no version at all"),
        ({"versions": ["0.3.0"]}, "'0.3.0'"),
        ({"name": "../../etc"}, "is not the name of a CSI driver"),
        ({"name": ""}, "is not the name of a CSI driver"),
        ({"name": "a" * 64}, "is not the name of a CSI driver"),
        ({"name": "a..b"}, "between dots is empty"),
        ({"endpoint": "csi.sock"}, "is not absolute"),
        ({"endpoint": "tcp://127.0.0.1:1"}, "unix sockets only"),
        ({"endpoint": "/nowhere/csi.sock"}, "no such socket"),
        ({"endpoint": "/etc/passwd"}, "it is not a socket"),
        ({"endpoint": "/tmp/" + "x" * 200}, "too long"),
        ({"type": "DevicePlugin"}, "plugins of type CSIPlugin only, not 'DevicePlugin'"),
        ({"type": "DRAPlugin"}, "plugins of type CSIPlugin only, not 'DRAPlugin'"),
        ({"own_name": "b.example.com"}, "is named 'b.example.com', not 'a.example.com'"),
        ({"node_id": ""}, "empty node id"),
        ({"node_id": "n" * 257}, "257 bytes"),
        ({"fail": {"NodeGetInfo": "UNIMPLEMENTED"}}, "NodeGetInfo does not work"),
        ({"fail": {"NodeGetInfo": "INTERNAL"}}, "INTERNAL: NodeGetInfo does not work"),
        ({"fail": {"GetPluginInfo": "UNAVAILABLE"}}, "GetPluginInfo does not work"),
    ],
)
def test_a_refusal_is_told_and_shown_word_for_word(node, plugin, says, reason) -> None:
    """BR-25, CSI-REG-01 improved, CSI-REG-02, -04, CSI-NAME-14, CSI-RAPI-07, -10, -11, CSI-NIM-09."""
    fake = plugin(node.socket("x-reg.sock"), **says)
    registered, told = fake.statuses.get(timeout=20)
    assert not registered
    assert reason in told
    status = node.wait_state(fake.registration_socket, "failed")
    assert status.error == told
    assert status.notification == ""
    assert status.retry_at is not None
    assert node.store.names() == []
    if says.get("name", "a") == "a":
        assert told in node.manager.explain("a.example.com")


def test_a_failure_that_passes_is_tried_again_each_time_with_its_reason(node, plugin) -> None:
    """BR-25: UNAVAILABLE, then an empty node id, then versions that cannot be used, then all is well."""
    fake = plugin(node.socket("a-reg.sock"), fail={"NodeGetInfo": "UNAVAILABLE"})
    assert "UNAVAILABLE" in fake.statuses.get(timeout=20)[1]
    fake.says.update(fail={}, node_id="")
    assert "empty node id" in fake.statuses.get(timeout=20)[1]
    fake.says.update(node_id="n", versions=["2.0.0"])
    assert "2.0.0" in fake.statuses.get(timeout=20)[1]
    fake.says.update(versions=["1.0.0"])
    assert fake.statuses.get(timeout=20) == (True, "")
    node.wait_registered("a.example.com")
    status = node.wait_state(fake.registration_socket, "registered")
    assert (status.error, status.attempts, status.retry_at) == ("", 4, None)


def test_what_cannot_be_delivered_is_told_apart_from_the_reason(node, process, short_dir) -> None:
    """CSI-RAPI-13 improved, CSI-RGR-05: the registrar exits inside of the call."""
    path = node.socket("a-reg.sock")
    registrar = process(path, f"{short_dir}/d.sock", node_id="", exit_when_refused=True)
    assert "empty node id" in registrar.told()[1]
    status = node.wait_state(path, "failed")
    assert "empty node id" in status.error
    assert "NotifyRegistrationStatus failed" in status.notification
    assert "NotifyRegistrationStatus" not in status.error


def test_a_driver_that_cannot_be_told_that_it_is_registered_is_not(node, plugin) -> None:
    """CSI-RAPI-12; it works again once it can be told."""
    fake = plugin(node.socket("a-reg.sock"), fail={"NotifyRegistrationStatus": "INTERNAL"})
    assert fake.statuses.get(timeout=20) == (True, "")
    node.wait_state(fake.registration_socket, "failed")
    assert node.store.names() == []
    fake.says["fail"] = {}
    node.wait_registered("a.example.com")


def test_a_socket_that_leaves_while_it_is_registered_is_deregistered(node, plugin, wait_until) -> None:
    """CSI-RAPI-09: NodeGetInfo is under way when the socket goes."""
    fake = plugin(node.socket("a-reg.sock"), held="NodeGetInfo")
    wait_until(lambda: "NodeGetInfo" in fake.calls, "NodeGetInfo")
    os.unlink(fake.registration_socket)
    wait_until(lambda: not node.manager.statuses(), "the removal seen")
    fake.hold.set()
    node.wait_idle()
    wait_until(lambda: "a.example.com" in node.manager._departed, "the departure")
    node.wait_idle()
    assert node.store.names() == []
    assert node.registration.node_info.local == {}


def test_a_driver_that_hangs_holds_up_no_other(node, plugin, wait_until) -> None:
    """CSI-PM-09."""
    hanging = [plugin(node.socket(f"h{n}-reg.sock"), name=f"h{n}.example.com", held="NodeGetInfo") for n in range(4)]
    plugin(node.socket("z-reg.sock"), name="z.example.com")
    node.wait_registered("z.example.com")
    for each in hanging:
        each.hold.set()
    for n in range(4):
        node.wait_registered(f"h{n}.example.com")


def test_ending_does_not_wait_for_a_driver_that_hangs(new_threads, make_node, bare_host, plugin, wait_until) -> None:
    node = make_node(bare_host)
    fake = plugin(node.socket("a-reg.sock"), held="NodeGetInfo")
    wait_until(lambda: "NodeGetInfo" in fake.calls, "NodeGetInfo")
    node.close()
    assert not new_threads("volumehost-")
    assert fake.statuses.empty(), "a plugin is not refused because the host ends"


def test_ending_does_not_wait_for_what_does_not_answer(
    new_threads, make_node, bare_host, short_dir, wait_until
) -> None:
    """CSI-RAPI-05: something listens and says nothing."""
    node = make_node(bare_host)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(node.socket("mute.sock"))
        listener.listen()
        listener.settimeout(20)
        connection, _ = listener.accept()
        with connection:
            node.close()
    assert not new_threads("volumehost-")


def test_drivers_stay_registered_when_the_registrar_is_asked_by_others_too(node, plugin) -> None:
    """CSI-RGR-07: a health probe calls GetInfo on the same server."""
    from volumehost_csi.registration.protocol import RegistrationSocket

    fake = plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com")
    with RegistrationSocket(fake.registration_socket) as probe:
        probe.connect()
        assert probe.get_info().name == "a.example.com"
    assert node.store.names() == ["a.example.com"]
