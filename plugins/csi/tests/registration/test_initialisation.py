"""The CSINode is made in the background, and the node is not ready until then (CSI-NIM-01, -02, CSI-SOLO-06)."""

from __future__ import annotations

import threading

from volumehost.errors import StoreError
from volumehost.hosts.node_host import NodeHost
from volumehost_csi.registration import initialisation
from volumehost_csi.registration.initialisation import CSINodeInitialisation
from volumehost_csi.registration.node_info import NodeInfoManager


class Failing(NodeInfoManager):
    """Fails until it is told otherwise."""

    def __init__(self, host: NodeHost) -> None:
        super().__init__(host, register_node=True)
        self.works = threading.Event()
        self.tries = 0

    def initialize(self) -> None:
        self.tries += 1
        if not self.works.is_set():
            raise StoreError("the API does not answer")
        super().initialize()


def test_the_node_is_not_ready_until_its_csi_node_is_there(host, api_node, wait_until) -> None:
    """CSI-NIM-01."""
    wait_until(lambda: host.kubelet_error is None, "ready")
    assert api_node.csi_node().spec.drivers == []


def test_it_goes_on_trying_and_never_ends_the_process(host, wait_until, monkeypatch) -> None:
    """CSI-NIM-02 improved: more attempts than upstream makes before it gives up."""
    monkeypatch.setattr(initialisation, "UNREACHABLE_PAUSE", 0.005)
    node_info = Failing(host)
    starting = CSINodeInitialisation(host, node_info)
    starting.start()
    starting.start()
    assert "CSINode" in str(host.kubelet_error)
    wait_until(lambda: node_info.tries > 8, "many attempts")
    assert "the API does not answer" in str(host.kubelet_error)
    node_info.works.set()
    wait_until(lambda: host.kubelet_error is None, "ready")
    starting.stop()


def test_it_can_be_stopped_while_it_waits(new_threads, host, wait_until) -> None:
    node_info = Failing(host)
    starting = CSINodeInitialisation(host, node_info)
    starting.start()
    wait_until(lambda: node_info.tries, "an attempt")
    starting.stop(30)
    assert not new_threads("volumehost-csinode")
    assert host.kubelet_error is not None


def test_without_an_api_nothing_is_waited_for(bare_host, node) -> None:
    """CSI-SOLO-06."""
    assert bare_host.kubelet_error is None
