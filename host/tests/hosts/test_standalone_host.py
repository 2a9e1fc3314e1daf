"""The host of a machine without a cluster is node and controller at once."""

from volumehost import AttachDetachVolumeHost, KubeletVolumeHost, VolumeHost
from volumehost.api.objects import CSINode, CSINodeDriver, CSINodeSpec, ObjectMeta
from volumehost.api.store import EmbeddedStore
from volumehost.hosts.node_host import NodeHost
from volumehost.hosts.standalone_host import StandaloneHost


def test_it_implements_all_four_protocols(tmp_path):
    host = StandaloneHost(str(tmp_path))
    assert isinstance(host, (VolumeHost, KubeletVolumeHost))
    assert isinstance(host, AttachDetachVolumeHost)
    assert host.is_attach_detach_controller()


def test_the_host_of_a_cluster_node_is_no_controller(tmp_path):
    """CSI-ATT-01: attaching is refused there."""
    assert not isinstance(NodeHost(str(tmp_path)), AttachDetachVolumeHost)


def test_its_listers_read_the_store(tmp_path):
    store = EmbeddedStore(f"{tmp_path}/store.sqlite3")
    try:
        driver = CSINodeDriver(name="csi.example.com", node_id="n-1")
        store.create(CSINode(metadata=ObjectMeta(name="n1"), spec=CSINodeSpec(drivers=[driver])))
        host = StandaloneHost(str(tmp_path), api=store)
        assert host.csi_node_lister().get("n1").spec.drivers[0].node_id == "n-1"
        assert list(host.volume_attachment_lister().list()) == []
    finally:
        store.close()


def test_installed_entry_points_are_found_without_importing_them(tmp_path, monkeypatch):
    info = tmp_path / "acme_driver-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-driver\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[volumehost.csi_drivers]\ncsi.example.com = acme_driver:main [keep-alive]\n"
    )
    (info / "RECORD").write_text("acme_driver-1.2.dist-info/METADATA,,\nacme_driver-1.2.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    host = StandaloneHost(str(tmp_path))
    found = [each for each in host.get_installed_entry_points("volumehost.csi_drivers") if each.name.startswith("csi.")]
    assert [(each.distribution, each.version, each.value) for each in found] == [
        ("acme-driver", "1.2", "acme_driver:main [keep-alive]")
    ]
    assert found[0].location == str(tmp_path)
    monkeypatch.setenv("VOLUMEHOST_PLUGINS_DISABLE", "acme-driver")
    names = {each.name for each in StandaloneHost(str(tmp_path)).get_installed_entry_points("volumehost.csi_drivers")}
    assert "csi.example.com" not in names
