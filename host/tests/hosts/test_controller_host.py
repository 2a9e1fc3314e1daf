"""ControllerHost: has the API and no node; says so with a typed error (ADHOST-01, -02)."""

import inspect

import pytest

from volumehost.api.objects import CSIDriver, CSINode, ObjectMeta, TokenRequest
from volumehost.errors import NotAvailableOnHostError
from volumehost.hosts.config import HostConfig
from volumehost.hosts.controller_host import ControllerHost
from volumehost.volume_host import AttachDetachVolumeHost, CSIDriverVolumeHost, KubeletVolumeHost, VolumeHost

#: Methods that need no node.
SERVED = {
    "csi_driver_lister",
    "csi_node_lister",
    "get_attached_volumes_from_node_status",
    "get_event_recorder",
    "get_kube_client",
    "get_node_allocatable",
    "get_volume_config",
    "is_attach_detach_controller",
    "volume_attachment_lister",
}
#: Methods that return a function, which then refuses.
DEFERRED = {
    "get_secret_func": ("ns", "n"),
    "get_config_map_func": ("ns", "n"),
    "get_service_account_token_func": ("ns", "n", TokenRequest()),
    "delete_service_account_token_func": ("u",),
}


@pytest.fixture
def host(store, tmp_path):
    return ControllerHost(store, config=HostConfig.for_root_dir(str(tmp_path), {}))


def _methods():
    return sorted(name for name, _ in inspect.getmembers(ControllerHost, inspect.isfunction) if name[0] != "_")


def test_it_is_the_host_of_a_controller(host):
    assert isinstance(host, VolumeHost)
    assert isinstance(host, CSIDriverVolumeHost)
    assert isinstance(host, AttachDetachVolumeHost)
    assert not isinstance(host, KubeletVolumeHost)
    assert host.is_attach_detach_controller()


@pytest.mark.parametrize("name", [name for name in _methods() if name not in SERVED and name not in DEFERRED])
def test_adhost02_what_needs_a_node_is_refused_with_a_typed_error(host, name):
    method = getattr(host, name)
    arguments = ["a.b/c" for _ in inspect.signature(method).parameters]
    with pytest.raises(NotAvailableOnHostError) as caught:
        method(*arguments)
    assert caught.value.action


@pytest.mark.parametrize("name", DEFERRED)
def test_adhost02_functions_are_given_and_refuse(host, name):
    with pytest.raises(NotAvailableOnHostError):
        getattr(host, name)()(*DEFERRED[name])


def test_adhost01_listers(host, store):
    store.create(CSIDriver(metadata=ObjectMeta(name="d.example.com")))
    store.create(CSINode(metadata=ObjectMeta(name="n1")))
    assert host.csi_driver_lister().get("d.example.com")
    assert host.csi_node_lister().get("n1")
    assert list(host.volume_attachment_lister().list()) == []


def test_the_rest(host, store):
    assert host.get_kube_client() is store
    assert host.get_event_recorder() is None
    assert host.get_node_allocatable() == {}
    assert host.get_attached_volumes_from_node_status() == {}
    assert host.get_volume_config("a.b/c").recycler_minimum_timeout == 60


def test_a_recycler_is_what_it_was_given(store, tmp_path):
    recycler = object()
    host = ControllerHost(store, config=HostConfig.for_root_dir(str(tmp_path), {}), recycler=recycler)
    assert host.get_recycler() is recycler
