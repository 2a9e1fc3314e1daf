"""``drivers register``: drivers that somebody else runs, remembered over restarts of the host."""

from __future__ import annotations

import os
import threading

import pytest

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin, DriverState
from volumehost_csi.drivers.locks import locked
from volumehost_csi_kit.fake import FakeDriver, Rule

FAKE = "fake.example.com"


def test_it_is_known_now_and_to_the_next_host(fake, new_drivers, root, status_of):
    first = new_drivers()
    status = first.register(FAKE, f"unix://{root}/fake.sock")
    assert (status.origin, status.state, status.endpoint) == (
        DriverOrigin.COMMAND,
        DriverState.READY,
        f"{root}/fake.sock",
    )
    assert (status.node_id, status.version, status.log_file) == ("node-1", "1.0.0", "")
    first.close()
    second = new_drivers()
    before = status_of(second, FAKE)
    assert (before.origin, before.state, before.node_id) == (DriverOrigin.COMMAND, DriverState.READY, "node-1")
    assert before.capabilities.controls("CREATE_DELETE_VOLUME")
    assert second.driver(FAKE, timeout=30).node_id == "node-1"
    assert status_of(second, FAKE).state is DriverState.READY


def test_its_state_is_told_without_a_registration(fake, new_drivers, root, status_of):
    first = new_drivers()
    first.register(FAKE, f"{root}/fake.sock")
    first.close()
    fake.stop(0)
    status = status_of(new_drivers(), FAKE)
    assert status.state is DriverState.FAILED
    assert f"nothing answers at {root}/fake.sock" in status.error


def test_br27_a_mount_does_not_wait_in_silence_for_one_that_is_not_there(fake, new_drivers, root):
    """It fails soon, with the reason and as transient: the operation comes again. Its deadline is never reached."""
    first = new_drivers()
    first.register(FAKE, f"{root}/fake.sock")
    first.close()
    fake.stop(0)
    second, failed = new_drivers(), threading.Event()

    def mount():
        with pytest.raises(StorageDriverUnavailableError, match="nothing serves at its endpoint"):
            second.node_client(FAKE, timeout=3600)
        failed.set()

    threading.Thread(target=mount, daemon=True).start()
    assert failed.wait(60)


def test_a_started_host_meets_it_by_itself(fake, new_drivers, root, wait_until):
    first = new_drivers()
    first.register(FAKE, f"{root}/fake.sock")
    first.close()
    second = new_drivers()
    second.start()
    wait_until(lambda: second.store.get(FAKE), "the driver")


def test_one_that_is_not_there_yet_is_waited_for(fake, new_drivers, root):
    first = new_drivers()
    first.register(FAKE, f"{root}/fake.sock")
    first.close()
    fake.stop(0)
    second = new_drivers()
    with pytest.raises(StorageDriverUnavailableError, match=f"unregister {FAKE}"):
        second.driver(FAKE, timeout=0.1)
    found = []
    thread = threading.Thread(target=lambda: found.append(second.driver(FAKE, timeout=30)))
    thread.start()
    fake.start()
    thread.join(30)
    assert found[0].node_id == "node-1"


def test_what_is_just_being_written_down_is_not_taken_for_forgotten(fake, new_drivers, root, wait_until):
    drivers = new_drivers()
    places = drivers._places(FAKE)
    places.prepare()
    done = []
    with locked(places.start_lock, 5) as mine:
        assert mine
        thread = threading.Thread(target=lambda: done.append(drivers.register(FAKE, f"{root}/fake.sock")))
        thread.start()
        wait_until(lambda: drivers.store.get(FAKE), "the registration")
        drivers._follow_commands()
        assert drivers.store.get(FAKE) is not None
    thread.join(30)
    assert [status.state for status in done] == [DriverState.READY]
    drivers._follow_commands()
    assert drivers.store.get(FAKE) is not None


def test_a_host_that_runs_follows_what_other_processes_register_and_forget(fake, new_drivers, root, wait_until):
    agent, command = new_drivers(), new_drivers()
    agent._rounds._period = 0.05
    agent.start()
    command.register(FAKE, f"{root}/fake.sock")
    wait_until(lambda: agent.store.get(FAKE), "the driver")
    command.unregister(FAKE)
    wait_until(lambda: agent.store.get(FAKE) is None, "its end")


def test_it_is_forgotten_for_good(fake, new_drivers, root, status_of):
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    drivers.unregister(FAKE)
    assert status_of(drivers, FAKE) is None
    with pytest.raises(StorageDriverUnavailableError):
        drivers.driver(FAKE, timeout=0)
    with pytest.raises(StorageDriverUnavailableError, match="registered by command"):
        drivers.unregister(FAKE)
    assert status_of(new_drivers(), FAKE) is None


@pytest.mark.parametrize(
    ("name", "endpoint", "words"),
    [
        ("other.example.com", "{root}/fake.sock", "fake.example.com"),
        ("../x", "{root}/fake.sock", "not the name of a CSI driver"),
        (FAKE, "{root}/absent.sock", "no such socket"),
        (FAKE, "{root}", "not a socket"),
        (FAKE, "tcp://localhost:1", "unix sockets only"),
        (FAKE, "relative.sock", "not absolute"),
        (FAKE, "", "names no socket"),
        (FAKE, "/" + "x" * 300, "too long"),
    ],
)
def test_what_cannot_be_registered_leaves_nothing_behind(fake, new_drivers, root, name, endpoint, words, status_of):
    drivers = new_drivers()
    with pytest.raises(StorageDriverError) as caught:
        drivers.register(name, endpoint.format(root=root))
    assert words in str(caught.value)
    assert not os.path.exists(f"{root}/drivers")
    assert status_of(drivers, FAKE) is None


def test_the_name_of_an_installed_driver_is_taken(drivers, fake, root):
    fake.configure(name="acme.example.com")
    with pytest.raises(StorageDriverError, match=r"installed, by acme-driver 1\.0"):
        drivers.register("acme.example.com", f"{root}/fake.sock")


def test_a_second_driver_with_the_name_is_refused_and_the_first_serves_on(fake, new_drivers, root):
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    with FakeDriver(f"unix://{root}/second.sock", name=FAKE, node_id="node-2") as second:
        assert second.config.node_id == "node-2"
        # By the same way it takes the place of the first: that is how a driver moves.
        assert drivers.register(FAKE, f"{root}/second.sock").endpoint == f"{root}/second.sock"
        assert drivers.driver(FAKE, timeout=30).node_id == "node-2"
    drivers.register(FAKE, f"{root}/fake.sock")
    assert drivers.driver(FAKE, timeout=30).node_id == "node-1"


def test_an_empty_node_id_is_refused(fake, new_drivers, root):
    fake.script(Rule("NodeGetInfo", reply={}))
    with pytest.raises(StorageDriverError, match="empty node id"):
        new_drivers().register(FAKE, f"{root}/fake.sock")


def test_a_socket_path_that_is_too_long_for_the_kernel_is_reached_all_the_same(new_drivers, root):
    directory = f"{root}/{'x' * 100}"
    os.mkdir(directory)
    with FakeDriver(f"unix://{directory}/d.sock", name=FAKE, node_id="n"):
        drivers = new_drivers()
        drivers.register(FAKE, f"{directory}/d.sock")
        assert drivers.driver(FAKE, timeout=30).capabilities().controls("LIST_VOLUMES")
