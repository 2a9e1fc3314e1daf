"""CSI-NAME and CSI-PATH: vectors, and names that mean harm."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import SpecError, UnsafePathError
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_csi.names import (
    BlockPaths,
    attachment_name,
    check_driver_name,
    driver_of_staging_path,
    ephemeral_handle,
    split_volume_name,
    staging_path,
    target_path,
    volume_name,
)

UID = "11111111-2222-3333-4444-555555555555"
HOSTILE_HANDLES = ["a/b", "../../etc", "..", ".", "a^b^c", "x" * 4096, "ü", "\n", " "]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    return PluginTestHost(str(tmp_path_factory.mktemp("host")))


def test_csi_name_07_vector():
    expected = "csi-91d1458d24520fdc2244843449cb4b5bb408fca0c11b04d1ff1ce67f2747eaff"
    assert attachment_name("vol-1", "hostpath.example.org", "node-a") == expected
    assert len(expected) == 68


def test_csi_name_08_nothing_separates_the_parts():
    assert attachment_name("ab", "c", "n") == attachment_name("a", "bc", "n")


def test_csi_name_09_vector():
    expected = "csi-a46bec53679aafe7e6bc42077f33be9e5c533643ed1224b3bfbf2dd627bbf53c"
    assert ephemeral_handle(UID, "scratch") == expected


def test_csi_name_10_vector(host):
    sha = "d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49"
    path = staging_path(host, "d.example.com", "vol-1")
    assert path == f"{host.root_dir}/plugins/kubernetes.io/csi/d.example.com/{sha}/globalmount"


@pytest.mark.parametrize("handle", HOSTILE_HANDLES)
def test_csi_dev_11_hostile_handles_make_safe_paths(host, handle):
    path = staging_path(host, "d.example.com", handle)
    assert os.path.normpath(path) == path
    assert len(path.removeprefix(f"{host.root_dir}/plugins/kubernetes.io/csi/d.example.com/")) == 64 + len(
        "/globalmount"
    )
    assert driver_of_staging_path(host, path) == "d.example.com"


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.-]{0,20}[A-Za-z0-9]", fullmatch=True), st.text(min_size=1))
def test_csi_name_03_05_a_volume_name_splits_into_what_it_was_made_of(driver, handle):
    assert split_volume_name(volume_name(driver, handle)) == (driver, handle)


@pytest.mark.parametrize(("name", "reason"), [("", "is empty"), ("^", "not <driver>"), ("a", "not"), ("a^", "not")])
def test_csi_name_05_unusable_volume_names(name, reason):
    with pytest.raises(SpecError, match=reason):
        split_volume_name(name)


@given(st.text(min_size=1), st.text(min_size=1))
def test_csi_name_04_two_identities_never_share_a_staging_path(host, one, other):
    paths = staging_path(host, "d", one), staging_path(host, "d", other)
    assert (paths[0] == paths[1]) == (one == other)


@pytest.mark.parametrize("name", ["a", "A.b-c", "x" * 63, "0", "hostpath.csi.example.com"])
def test_csi_name_12_driver_names(name):
    assert check_driver_name(name) == name


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "../x", "-a", "a-", "a_b", "x" * 64, "a\n", "ä", "a b"])
def test_csi_name_14_improved_driver_names_that_cannot_be_a_directory(host, name):
    with pytest.raises(SpecError, match="not the name of a CSI driver"):
        staging_path(host, name, "vol-1")


def test_csi_name_13_driver_names_differ_by_case(host):
    assert staging_path(host, "Driver", "v") != staging_path(host, "driver", "v")


def test_csi_path_01_edge_07_the_target_keeps_dots(host):
    path = target_path(host, UID, "pv.with.dots")
    assert path == f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/pv.with.dots/mount"


@pytest.mark.parametrize("name", ["..", "", ".", "x" * 300, "a\0b"])
def test_br_41_volume_names_that_lead_elsewhere_are_refused(host, name):
    with pytest.raises(UnsafePathError):
        target_path(host, UID, name)
    with pytest.raises(UnsafePathError):
        BlockPaths(host, name)


def test_csi_path_05_to_10_block_paths(host):
    root = f"{host.root_dir}/plugins/kubernetes.io/csi/volumeDevices"
    paths = BlockPaths(host, "pv-1")
    assert paths.global_map_dir == f"{root}/pv-1/dev"
    assert paths.data_dir == f"{root}/pv-1/data"
    assert paths.staging_dir == f"{root}/staging/pv-1"
    assert paths.publish_path(UID) == f"{root}/publish/pv-1/{UID}"


def test_csi_path_10_improved_slashes_are_escaped_in_all_four(host):
    paths = BlockPaths(host, "a/b")
    for path in (paths.global_map_dir, paths.data_dir, paths.staging_dir, paths.publish_dir):
        assert "a~b" in path


@pytest.mark.parametrize("name", ["staging", "publish"])
def test_csi_path_11_improved_reserved_names_are_refused_for_block_volumes(host, name):
    with pytest.raises(UnsafePathError, match="another name"):
        BlockPaths(host, name)


@pytest.mark.parametrize("uid", ["..", "", "a/b"])
def test_a_pod_uid_that_leads_elsewhere_is_refused(host, uid):
    with pytest.raises(UnsafePathError):
        BlockPaths(host, "pv-1").publish_path(uid)


@pytest.mark.parametrize(
    "path", ["/x", "plugins/kubernetes.io/csi/d/sha", "plugins/kubernetes.io/csi/d/e/f/globalmount"]
)
def test_other_paths_are_no_staging_paths(host, path):
    assert driver_of_staging_path(host, f"{host.root_dir}/{path}") == ""
