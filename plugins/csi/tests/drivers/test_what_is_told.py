"""What a list of drivers, the node's events and the metrics tell beside names and states."""

from __future__ import annotations

import os

from volumehost.api.objects import Event
from volumehost.api.store import EmbeddedStore
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost_csi.drivers.statuses import Known
from volumehost_csi.drivers.statuses import status_of as status_of_known
from volumehost_csi.metrics import CSIMetrics
from volumehost_csi.registration.attempts import RegistrationState, SocketStatus
from volumehost_csi.registration.scan import MAX_SUBDIRECTORY_ENTRIES
from volumehost_csi_kit.fake import FakeDriver

FAKE = "fake.example.com"


def test_csi_pm_14_prometheus_counts_sockets_that_lie_there_and_plugins_that_are_registered(root, new_drivers):
    from prometheus_client import CollectorRegistry, generate_latest

    metrics = CSIMetrics()
    exported = CollectorRegistry()
    exported.register(metrics.collector())
    assert "plugin_manager_total_plugins{" not in generate_latest(exported).decode()
    with FakeDriver(f"unix://{root}/fake.sock", name=FAKE, registration_dir=f"{root}/plugins_registry"):
        new_drivers(metrics=metrics).driver(FAKE, timeout=20)
        (socket,) = os.listdir(f"{root}/plugins_registry")
        text = generate_latest(exported).decode()
    for state in ("desired_state_of_world", "actual_state_of_world"):
        line = f'plugin_manager_total_plugins{{socket_path="{root}/plugins_registry/{socket}",state="{state}"}} 1.0'
        assert line in text


def test_what_the_registration_directory_leaves_out_is_a_problem(root, new_drivers):
    """BR-24."""
    drivers = new_drivers()
    drivers.statuses()
    assert drivers.problems() == []
    drivers.close()
    data = f"{root}/plugins_registry/data"
    os.mkdir(data)
    for number in range(MAX_SUBDIRECTORY_ENTRIES + 1):
        os.mknod(f"{data}/{number}")
    drivers = new_drivers()
    drivers.statuses()
    (problem,) = drivers.problems()
    assert problem.startswith(f"the registration directory {root}/plugins_registry: ")
    assert "data" in problem


def test_csi_rapi_13_improved_that_a_registrar_could_not_be_told_is_shown_apart(places):
    socket = SocketStatus("/r/a.sock", RegistrationState.FAILED, error="no licence", notification="it exited")
    status = status_of_known(Known(places, socket=socket))
    assert status.error == "no licence"
    assert status.warnings == ("its registrar could not be told: it exited",)


def test_csi_nim_12_labels_that_a_former_topology_left_behind_are_shown(root, new_drivers, status_of):
    with EmbeddedStore(f"{root}/store.db") as store:
        host = StandaloneHost(root, node_name="node-a", api=store)
        drivers = new_drivers(on=host)
        for topology in ({"example.com/zone": "z1"}, {"example.com/region": "r1"}):
            with FakeDriver(f"unix://{root}/fake.sock", name=FAKE, topology=topology):
                status = drivers.register(FAKE, f"{root}/fake.sock")
        (warning,) = status.warnings
        assert "example.com/zone" in warning
        assert status_of(drivers, FAKE).warnings == status.warnings
        host.flush_events(10)
        (event,) = [each for each in store.list(Event).items if each.reason == "StaleTopologyLabels"]
        assert (event.involved_object.kind, event.involved_object.name, event.type) == ("Node", "node-a", "Warning")
        assert "example.com/zone" in event.message
        drivers.close()
