"""The directory layout (LAYOUT-01 to -05, -09, -10) and hostile names."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import UnsafePathError
from volumehost.hosts.layout import Layout, escaped

LAYOUT = Layout("/r")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (LAYOUT.pods_dir(), "/r/pods"),
        (LAYOUT.plugins_dir(), "/r/plugins"),
        (LAYOUT.plugins_registry_dir(), "/r/plugins_registry"),
        (LAYOUT.pod_resources_dir(), "/r/pod-resources"),
        (LAYOUT.plugin_dir("kubernetes.io/local-volume"), "/r/plugins/kubernetes.io/local-volume"),
        (LAYOUT.volume_device_plugin_dir("kubernetes.io/csi"), "/r/plugins/kubernetes.io/csi/volumeDevices"),
        (LAYOUT.pod_dir("u1"), "/r/pods/u1"),
        (LAYOUT.pod_volumes_dir("u1"), "/r/pods/u1/volumes"),
        (LAYOUT.pod_volume_dir("u1", "kubernetes.io/empty-dir", "v"), "/r/pods/u1/volumes/kubernetes.io~empty-dir/v"),
        (LAYOUT.pod_volume_devices_dir("u1"), "/r/pods/u1/volumeDevices"),
        (LAYOUT.pod_volume_device_dir("u1", "kubernetes.io/csi"), "/r/pods/u1/volumeDevices/kubernetes.io~csi"),
        (LAYOUT.pod_plugins_dir("u1"), "/r/pods/u1/plugins"),
        (LAYOUT.pod_plugin_dir("u1", "example.com/nfs"), "/r/pods/u1/plugins/example.com~nfs"),
        (LAYOUT.pod_subpaths_dir("u1"), "/r/pods/u1/volume-subpaths"),
        (LAYOUT.pod_containers_dir("u1"), "/r/pods/u1/containers"),
    ],
)
def test_layout01_exact_paths(found, expected):
    assert found == expected


def test_layout03_an_escaped_name_stays_as_it_is():
    once = LAYOUT.pod_volume_dir("u", "kubernetes.io~empty-dir", "v")
    assert once == LAYOUT.pod_volume_dir("u", "kubernetes.io/empty-dir", "v")


def test_layout04_getters_create_nothing(tmp_path):
    layout = Layout(str(tmp_path / "root"))
    layout.pod_volume_dir("u", "a/b", "v")
    layout.plugin_dir("a/b")
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "/", "a\0b", "x" * 256, "é" * 128, "\ud800" * 100])
def test_hostile_volume_names_and_pod_uids_are_refused(bad):
    with pytest.raises(UnsafePathError):
        LAYOUT.pod_volume_dir("u", "a/b", bad)
    with pytest.raises(UnsafePathError):
        LAYOUT.pod_dir(bad)


@pytest.mark.parametrize("bad", ["", ".", "..", "a/..", "../a", "a//b", "/a", "a/", "x" * 300])
def test_hostile_plugin_names_are_refused(bad):
    with pytest.raises(UnsafePathError):
        LAYOUT.plugin_dir(bad)


def test_the_error_names_what_is_wrong_and_does_not_repeat_300_characters():
    with pytest.raises(UnsafePathError) as caught:
        LAYOUT.pod_volume_dir("u", "a/b", "x" * 300)
    text = str(caught.value)
    assert "volume name" in text
    assert "300 bytes" in text
    assert "x" * 100 not in text


def test_a_name_of_255_bytes_is_accepted():
    assert LAYOUT.pod_dir("x" * 255).endswith("x" * 255)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_no_name_leads_out_of_its_directory(uid, plugin, volume):
    try:
        path = LAYOUT.pod_volume_dir(uid, plugin, volume)
    except UnsafePathError:
        return
    base, found = os.path.split(path)
    assert found == volume
    assert os.path.normpath(path) == path
    assert os.path.dirname(base) == f"/r/pods/{uid}/volumes"
    assert all(len(os.fsencode(part)) <= 255 for part in path.split("/"))


def test_layout05_escape():
    assert escaped("example.com/nfs") == "example.com~nfs"
