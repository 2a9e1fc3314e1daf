"""Drivers and registrars that end, come back, move, and race with each other (BR-21, CSI-PM, CSI-REG-06, -13)."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from volumehost_csi.registration.checks import DriverNameTakenError
from volumehost_csi.registration.manager import PluginManager
from volumehost_csi.registration.operations import CSI_PLUGIN

pytestmark = pytest.mark.timeout(90)


def test_a_new_socket_renamed_over_the_old(node, plugin, short_dir) -> None:
    """BR-21 (a): the driver stays registered, with the newer, through whatever is told of the older."""
    old = plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com", old.driver_socket)
    new = plugin("")
    new.serve_registration(f"{short_dir}/new.sock")
    os.rename(f"{short_dir}/new.sock", old.registration_socket)
    node.wait_registered("a.example.com", new.driver_socket)
    assert new.statuses.get(timeout=20) == (True, "")
    node.wait_idle()
    assert [each.endpoint for each in node.store.instances("a.example.com")] == [new.driver_socket]


def test_the_driver_is_never_away_while_it_is_replaced(node, plugin, short_dir, wait_until) -> None:
    """BR-21 (a): until the newer has answered, the older is in use."""
    old = plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com", old.driver_socket)
    seen: list[str] = []
    node.store.subscribe(lambda name: seen.append(node.endpoint(name)))
    new = plugin("", held="NodeGetInfo")
    new.serve_registration(f"{short_dir}/new.sock")
    os.rename(f"{short_dir}/new.sock", old.registration_socket)
    wait_until(lambda: "NodeGetInfo" in new.calls, "the newer asked")
    assert node.endpoint("a.example.com") == old.driver_socket
    new.hold.set()
    node.wait_registered("a.example.com", new.driver_socket)
    node.wait_idle()
    assert seen == [new.driver_socket]


def test_a_replacement_that_fails_takes_the_old_one_with_it(node, plugin, short_dir) -> None:
    """The older one's socket is gone, so it is gone; the newer one's reason is told."""
    old = plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com")
    new = plugin("", node_id="")
    new.serve_registration(f"{short_dir}/new.sock")
    os.rename(f"{short_dir}/new.sock", old.registration_socket)
    node.wait_gone("a.example.com")
    assert "empty node id" in node.wait_state(old.registration_socket, "failed").error
    new.says["node_id"] = "n"
    node.wait_registered("a.example.com", new.driver_socket)


def test_a_replacement_under_another_name(node, plugin, short_dir) -> None:
    """CSI-EDGE-39."""
    old = plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com")
    new = plugin("", name="b.example.com")
    new.serve_registration(f"{short_dir}/new.sock")
    os.rename(f"{short_dir}/new.sock", old.registration_socket)
    node.wait_registered("b.example.com")
    node.wait_gone("a.example.com")


def test_the_older_process_unlinks_the_newer_ones_socket(node, process, short_dir) -> None:
    """BR-21 (b): B listens on an unlinked inode; that is told, and B registers when its socket is there again."""
    path = node.socket("a-reg.sock")
    first = process(path, f"{short_dir}/a.sock")
    node.wait_registered("a.example.com", f"{short_dir}/a.sock")
    second = process(path, f"{short_dir}/b.sock")
    node.wait_registered("a.example.com", f"{short_dir}/b.sock")
    os.unlink(path)
    node.wait_gone("a.example.com")
    assert "was removed" in node.manager.explain("a.example.com")
    assert "restart it or its registrar" in node.manager.explain("a.example.com")
    first.kill()
    second.terminate()
    process(path, f"{short_dir}/c.sock")
    node.wait_registered("a.example.com", f"{short_dir}/c.sock")
    node.wait_state(path, "registered")
    assert node.manager.explain("a.example.com") == ""


def test_two_sockets_of_one_name_and_the_older_leaves(make_node, bare_host, plugin) -> None:
    """BR-21 (c), CSI-REG-06, -13: the second is refused while the first is there, and registered at once afterwards.

    The clock stands still, so that no retry comes by itself.
    """
    node = on_a_clock_that_stands_still(make_node(bare_host, start=False))
    first = plugin(node.socket("1-reg.sock"))
    node.wait_registered("a.example.com", first.driver_socket)
    second = plugin(node.socket("2-reg.sock"))
    registered, reason = second.statuses.get(timeout=20)
    assert not registered
    assert first.driver_socket in reason
    node.wait_state(second.registration_socket, "failed")
    first.stop()
    node.wait_registered("a.example.com", second.driver_socket)
    assert second.statuses.get(timeout=20) == (True, "")


def on_a_clock_that_stands_still(node: Any) -> Any:
    registration = node.registration
    manager = PluginManager(node.directory, {CSI_PLUGIN: node.handler}, clock=lambda: 1000.0)
    registration.manager = node.manager = manager
    node.store.subscribe(manager.retry_refused)
    registration.start()
    return node


def test_a_higher_version_takes_over_and_the_older_one_comes_back(node, plugin) -> None:
    """CSI-REG-06, CSI-STORE-07, CSI-EDGE-02."""
    first = plugin(node.socket("1-reg.sock"), node_id="n1")
    node.wait_registered("a.example.com", first.driver_socket)
    second = plugin(node.socket("2-reg.sock"), versions=["1.0.1"], node_id="n2")
    node.wait_registered("a.example.com", second.driver_socket)
    assert node.registration.node_info.local["a.example.com"].node_id == "n2"
    second.stop()
    node.wait_registered("a.example.com", first.driver_socket)
    node.wait_idle()
    assert node.registration.node_info.local["a.example.com"].node_id == "n1"


def test_removing_an_older_socket_leaves_the_newer_driver_alone(node, plugin) -> None:
    """BR-21 (c), CSI-REG-13 improved."""
    first = plugin(node.socket("1-reg.sock"))
    node.wait_registered("a.example.com", first.driver_socket)
    second = plugin(node.socket("2-reg.sock"), versions=["1.0.1"])
    node.wait_registered("a.example.com", second.driver_socket)
    first.stop()
    node.wait_idle()
    assert node.endpoint("a.example.com") == second.driver_socket


def test_ten_sockets_of_one_name(node, plugin, wait_until) -> None:
    """CSI-EDGE-39: ten desired entries, one is registered; each time that one leaves, another takes its place."""
    fakes = [plugin(node.socket(f"{n}-reg.sock")) for n in range(10)]
    by_endpoint = {each.driver_socket: each for each in fakes}
    assert len(dict.fromkeys(path for path, state in node.manager.total_plugins() if state.startswith("desired"))) <= 10
    last = ""
    for remaining in range(10, 0, -1):
        wait_until(lambda last=last: node.endpoint("a.example.com") not in {"", last}, "another one registered")
        last = node.endpoint("a.example.com")
        assert len(node.store.instances("a.example.com")) == 1
        wait_until(lambda remaining=remaining: len(node.manager.statuses()) == remaining, "all sockets seen")
        by_endpoint[last].stop()
    node.wait_gone("a.example.com")


def test_a_killed_driver_leaves_its_socket_and_comes_back_on_it(node, process, short_dir, wait_until) -> None:
    """CSI-RGR-06, CSI-RGR-01: kill -9, then a new process that removes the stale socket."""
    path, endpoint = node.socket("a-reg.sock"), f"{short_dir}/a.sock"
    first = process(path, endpoint, node_id="n1")
    node.wait_registered("a.example.com")
    before = node.store.get("a.example.com")
    first.kill()
    second = process(path, endpoint, node_id="n2")
    assert second.told() == (True, "")
    wait_until(lambda: node.store.get("a.example.com") not in (None, before), "another instance")
    node.wait_idle()
    assert node.store.get("a.example.com").node_id == "n2"
    assert len(node.store.instances("a.example.com")) == 1


def test_a_stale_socket_is_tried_quietly(make_node, bare_host, process, short_dir) -> None:
    """CSI-RGR-06: a killed registrar's socket lies there when the host starts."""
    os.makedirs(bare_host.get_plugins_registry_dir())
    path = f"{bare_host.get_plugins_registry_dir()}/a-reg.sock"
    process(path, f"{short_dir}/a.sock").kill()
    node = make_node(bare_host)
    assert "nobody listens" in node.wait_state(path, "failed").error
    assert process(path, f"{short_dir}/a.sock").told() == (True, "")
    node.wait_registered("a.example.com")


def test_a_new_socket_does_not_wait_for_the_backoff_of_the_old(make_node, bare_host, plugin, wait_until) -> None:
    """CSI-PM-12 improved: on a clock that stands still no retry ever comes."""
    node = on_a_clock_that_stands_still(make_node(bare_host, start=False))
    broken = plugin(node.socket("a-reg.sock"), node_id="")
    node.wait_state(broken.registration_socket, "failed")
    node.wait_idle()
    assert node.status(broken.registration_socket).attempts == 1
    broken.stop()
    wait_until(lambda: not node.manager.statuses(), "the socket gone")
    plugin(broken.registration_socket)
    node.wait_registered("a.example.com")


class Recorder:
    """A handler that keeps the order of its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def validate(self, name: str, endpoint: str, versions: Any, **_: Any) -> None:
        self.calls.append(f"validate {name}")

    def register(self, name: str, endpoint: str, versions: Any, timeout: Any = None, **_: Any) -> None:
        self.calls.append(f"register {name}")

    def deregister(self, name: str, endpoint: str, **_: Any) -> None:
        self.calls.append(f"deregister {name}")

    def close(self) -> None:
        self.calls.append("close")


def test_a_handler_sees_its_calls_in_order(short_dir, plugin, wait_until) -> None:
    """CSI-EDGE-39, CSI-PM-13: a handler of another type, added while the manager runs."""
    manager, handler = PluginManager(f"{short_dir}/registry"), Recorder()
    manager.start()
    manager.start()
    try:
        fake = plugin(f"{short_dir}/registry/x.sock", type="DRAPlugin", name="x.example.com")
        assert fake.statuses.get(timeout=20)[0] is False
        manager.add_handler("DRAPlugin", handler)
        assert fake.statuses.get(timeout=20) == (True, "")
        wait_until(lambda: manager.statuses()[0].state == "registered", "registered")
        states = sorted(state for _, state in manager.total_plugins())
        assert states == ["actual_state_of_world", "desired_state_of_world"]  # CSI-PM-14
        fake.stop()
        wait_until(lambda: not list(manager.total_plugins()), "gone")
        wait_until(lambda: not manager._running, "idle")
    finally:
        manager.stop(30)
    assert handler.calls == ["validate x.example.com", "register x.example.com", "deregister x.example.com", "close"]
    manager.start()
    assert manager._thread is None or not manager._thread.is_alive(), "a stopped manager stays stopped"


def test_a_name_that_becomes_free_while_it_is_refused_is_not_missed(short_dir, plugin, wait_until) -> None:
    """BR-21 (c): the older driver leaves between the check and the end of the refusal; no retry comes by itself."""

    class Late(Recorder):
        def validate(self, name: str, endpoint: str, versions: Any, **_: Any) -> None:
            super().validate(name, endpoint, versions)
            if len(self.calls) == 1:
                manager.retry_refused(name)
                raise DriverNameTakenError("taken a moment ago")

    manager = PluginManager(f"{short_dir}/registry", {CSI_PLUGIN: Late()}, clock=lambda: 1000.0)
    manager.start()
    try:
        plugin(f"{short_dir}/registry/a.sock")
        wait_until(lambda: [each.state for each in manager.statuses()] == ["registered"], "registered")
    finally:
        manager.stop(30)


def test_who_listens_is_told_of_changes(node, plugin, wait_until) -> None:
    heard: list[str] = []

    def fails(path: str) -> None:
        raise RuntimeError("a listener's fault costs nobody else anything")

    node.manager.on_change(fails)
    node.manager.on_change(heard.append)
    fake = plugin(node.socket("a-reg.sock"))
    wait_until(lambda: heard, "a change")
    assert set(heard) == {fake.registration_socket}


def test_the_watching_outlives_a_machine_without_threads_to_spare(node, plugin, monkeypatch) -> None:
    """What cannot be begun now is begun later; nothing is taken for running meanwhile."""
    start, failed = threading.Thread.start, []

    def refuse_once(thread: threading.Thread) -> None:
        if thread.name == "volumehost-register" and not failed:
            failed.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com")
    assert failed
