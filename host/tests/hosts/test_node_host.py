"""NodeHost: directories, objects, the node's facts, and that making one is cheap (HOST, KHOST rules)."""

import subprocess
import sys

import pytest

from volumehost.api.objects import (
    AttachedVolume,
    ConfigMap,
    CSIDriver,
    Node,
    NodeStatus,
    ObjectMeta,
    Secret,
    TokenRequest,
)
from volumehost.errors import (
    NotAvailableOnHostError,
    ObjectNotFoundError,
    StoreError,
    UnsafePathError,
    WaitTimeoutError,
)
from volumehost.hosts.node_host import NodeHost
from volumehost.volume_host import AttachDetachVolumeHost, KubeletVolumeHost, VolumeHost


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_khost04_it_is_the_host_of_a_node(tmp_path):
    host = NodeHost(str(tmp_path))
    assert isinstance(host, VolumeHost)
    assert isinstance(host, KubeletVolumeHost)
    assert not isinstance(host, AttachDetachVolumeHost)


def test_host01_directory_getters(tmp_path):
    host = NodeHost("/r")
    assert host.get_pods_dir() == "/r/pods"
    assert host.get_plugin_dir("kubernetes.io/csi") == "/r/plugins/kubernetes.io/csi"
    assert host.get_volume_device_plugin_dir("a.b/c") == "/r/plugins/a.b/c/volumeDevices"
    assert host.get_pod_volume_dir("u", "a.b/c", "v") == "/r/pods/u/volumes/a.b~c/v"
    assert host.get_pod_plugin_dir("u", "a.b/c") == "/r/pods/u/plugins/a.b~c"
    assert host.get_pod_volume_device_dir("u", "a.b/c") == "/r/pods/u/volumeDevices/a.b~c"
    with pytest.raises(UnsafePathError):
        host.get_pod_volume_dir("u", "a.b/c", "..")


def test_making_one_loads_nothing_heavy_and_creates_nothing(tmp_path):
    program = (
        "import sys; from volumehost.hosts.node_host import NodeHost; NodeHost(sys.argv[1]);"
        "heavy = {'msgspec', 'yaml', 'sqlite3', 'importlib.metadata', 'tomllib', 'rich', 'ctypes'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "root")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "root").exists()


def test_host02_the_api_is_opened_once_when_it_is_first_asked_for(store):
    opened = []

    def open_store():
        opened.append(1)
        return store

    host = NodeHost("/r", api=open_store)
    assert not opened
    assert host.get_kube_client() is store
    assert host.get_kube_client() is store
    assert len(opened) == 1
    assert NodeHost("/r").get_kube_client() is None
    assert NodeHost("/r", api=store).get_kube_client() is store


def test_host03_secrets_and_config_maps(store):
    store.create(Secret(metadata=ObjectMeta(name="s", namespace="ns"), data={"k": "dg=="}))
    store.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="ns"), data={"k": "v"}))
    host = NodeHost("/r", api=store)
    assert host.get_secret_func()("ns", "s").metadata.name == "s"
    assert host.get_config_map_func()("ns", "c").data == {"k": "v"}
    with pytest.raises(ObjectNotFoundError):
        host.get_secret_func()("other", "s")


def test_host03_without_an_api_the_functions_fail_in_the_known_words():
    host = NodeHost("/r")
    for function in (host.get_secret_func(), host.get_config_map_func()):
        with pytest.raises(NotAvailableOnHostError, match="not supported due to running kubelet in standalone mode"):
            function("ns", "n")


def test_host04_the_host_of_a_cluster_node_signs_no_tokens(store):
    host = NodeHost("/r", api=store)
    with pytest.raises(NotAvailableOnHostError, match="token"):
        host.get_service_account_token_func()("ns", "sa", TokenRequest())
    host.delete_service_account_token_func()("uid")
    with pytest.raises(NotAvailableOnHostError, match="certificates"):
        host.get_pod_certificate_credential_bundle("ns", "p", "u", "v", 0)


def test_host05_allocatable_comes_from_the_node_object(store):
    host = NodeHost("/r", api=store, node_name="n1")
    node = store.create(Node(metadata=ObjectMeta(name="n1")))
    node.status = NodeStatus(allocatable={"memory": "2Gi", "cpu": "1500m"})
    store.replace_status(node)
    assert host.get_node_allocatable() == {"memory": 2 << 30, "cpu": 1500}


def test_host05_and_from_the_machine_where_there_is_no_node_object(store):
    assert NodeHost("/r", api=store).get_node_allocatable()["memory"] > 16 << 20
    assert NodeHost("/r").get_node_allocatable()["cpu"] >= 1000


def test_host05_the_node_works_while_the_api_does_not():
    def broken():
        raise StoreError("no answer")

    host = NodeHost("/r", api=broken)
    assert host.get_node_allocatable()["memory"] > 0
    assert host.get_node_labels()["kubernetes.io/os"] == "linux"


def test_the_node_object_is_remembered_for_a_moment_only(store):
    clock = Clock()
    host = NodeHost("/r", api=store, node_name="n1", clock=clock)
    assert host.get_node_labels()["kubernetes.io/hostname"] == "n1"
    store.create(Node(metadata=ObjectMeta(name="n1", labels={"zone": "a"})))
    assert "zone" not in host.get_node_labels()
    clock.now += 10
    assert host.get_node_labels() == {"zone": "a"}


def test_host07_attached_volumes(store):
    assert NodeHost("/r", api=store).get_attached_volumes_from_node_status() == {}
    node = store.create(Node(metadata=ObjectMeta(name="n1")))
    node.status.volumes_attached = [AttachedVolume(name="a.b/c/vol", device_path="/dev/x")]
    store.replace_status(node)
    host = NodeHost("/r", api=store, node_name="n1")
    assert host.get_attached_volumes_from_node_status() == {"a.b/c/vol": "/dev/x"}


def test_khost01_csi_drivers(store):
    host = NodeHost("/r", api=store)
    store.create(CSIDriver(metadata=ObjectMeta(name="d.example.com")))
    assert host.csi_driver_lister().get("d.example.com").metadata.name == "d.example.com"
    assert [driver.metadata.name for driver in host.csi_driver_lister().list()] == ["d.example.com"]
    assert host.csi_drivers_synced()
    host.wait_for_cache_sync()


def test_khost03_without_an_api_there_is_nothing_to_wait_for():
    host = NodeHost("/r")
    assert not host.csi_drivers_synced()
    with pytest.raises(WaitTimeoutError):
        host.wait_for_cache_sync()
    with pytest.raises(NotAvailableOnHostError):
        host.csi_driver_lister()


def test_khost01_the_error_of_the_node_stays_until_it_is_cleared():
    host = NodeHost("/r")
    error = ValueError("no driver")
    host.set_kubelet_error(error)
    assert host.kubelet_error is error
    host.set_kubelet_error(None)
    assert host.kubelet_error is None


def test_services_are_the_real_ones(tmp_path):
    host = NodeHost(str(tmp_path))
    assert host.get_mounter() is host.get_mounter()
    assert host.get_host_util().path_exists(str(tmp_path))
    assert host.get_subpather()
    assert not host.get_volume_config("a.b/c").provisioning_enabled
    assert NodeHost("/r").get_event_recorder() is None
