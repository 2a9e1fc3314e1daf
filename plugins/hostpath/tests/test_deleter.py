"""Deletion never leaves its base, never follows a link, never crosses a mount: HOSTPATH-42, -43, BR-62."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from volumehost import Spec, VolumeConfig
from volumehost.api.objects import HostPathVolumeSource, PersistentVolume, PersistentVolumeSpec, Volume
from volumehost.errors import (
    NotSupportedMetricsError,
    SpecError,
    StillMountedError,
    UnsafePathError,
    VolumeHostError,
)
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_hostpath.plugin import HostPathPlugin


@pytest.fixture
def delete(plugin, make_pv_spec):
    return lambda path: plugin.new_deleter(make_pv_spec(path)).delete()


@pytest.fixture
def precious(directory):
    """A directory outside of the base that must survive every test."""
    path = f"{directory}/precious"
    os.mkdir(path)
    Path(path, "data").write_text("user data")
    yield path
    assert Path(path, "data").read_text() == "user data"


def test_everything_below_goes(delete, base):
    os.makedirs(f"{base}/volume/a/b")
    Path(base, "volume", ".hidden").touch()
    Path(base, "volume", "a", "b", "file").touch()
    os.mkdir(f"{base}/other")
    delete(f"{base}/volume")
    assert os.listdir(base) == ["other"]


@pytest.mark.parametrize("path", ["{base}/volume/", "{base}//volume", "/{base}/./volume"])
def test_the_path_is_normalised(delete, base, path):
    os.mkdir(f"{base}/volume")
    delete(path.format(base=base))
    assert not os.path.exists(f"{base}/volume")


def test_gone_already_is_success(delete, base):
    delete(f"{base}/volume")
    delete(f"{base}/no/such/parent")


@pytest.mark.parametrize(
    "path",
    [
        "{base}",
        "{base}/",
        "{base}/.",
        "{base}/../precious",
        "{base}/volume/../../precious",
        "{directory}/precious",
        "{directory}/precious{base}/x",
        "{base}x/volume",
        "precious",
        "",
        "/",
    ],
)
def test_paths_outside_of_the_base_are_refused(delete, base, directory, precious, path):
    os.makedirs(f"{base}/volume")
    os.makedirs(f"{precious}{base}/x")
    os.makedirs(f"{base}x/volume")
    path = path.format(base=base, directory=directory)
    with pytest.raises(UnsafePathError, match=r"host_path deleter only supports .*/base/\.\+ but received provided"):
        delete(path)
    assert os.path.isdir(f"{base}/volume")
    assert os.path.isdir(f"{base}x/volume")


def test_the_literal_text_for_the_default_base(directory, make_pv_spec):
    plugin = HostPathPlugin()
    plugin.init(PluginTestHost(directory, volume_config=VolumeConfig(provisioning_enabled=True)))
    with pytest.raises(UnsafePathError, match=r"only supports /tmp/\.\+ but received provided /srv/tmp/x"):
        plugin.new_deleter(make_pv_spec("/srv/tmp/x")).delete()


def test_a_link_in_a_parent_that_leads_out_is_refused(delete, base, directory, precious):
    os.symlink(directory, f"{base}/out")
    with pytest.raises(UnsafePathError, match=f"whose directory is really {directory}"):
        delete(f"{base}/out/precious")


def test_a_link_in_a_parent_that_stays_inside_is_resolved(delete, base):
    os.makedirs(f"{base}/real/volume")
    os.symlink("real", f"{base}/link")
    delete(f"{base}/link/volume")
    assert os.listdir(f"{base}/real") == []


def test_a_base_that_is_a_link_itself(directory, base, make_pv_spec):
    os.symlink(base, f"{directory}/base-link")
    os.makedirs(f"{base}/volume")
    plugin = HostPathPlugin()
    config = VolumeConfig(provisioning_enabled=True, other_attributes={"base_dir": f"{directory}/base-link"})
    plugin.init(PluginTestHost(directory, volume_config=config))
    plugin.new_deleter(make_pv_spec(f"{directory}/base-link/volume")).delete()
    assert os.listdir(base) == []


def test_a_link_at_the_path_is_removed_not_followed(delete, base, precious):
    os.symlink(precious, f"{base}/volume")
    delete(f"{base}/volume")
    assert not os.path.lexists(f"{base}/volume")


def test_links_inside_are_removed_not_followed(delete, base, precious):
    os.mkdir(f"{base}/volume")
    os.symlink(precious, f"{base}/volume/link")
    delete(f"{base}/volume")
    assert os.listdir(base) == []


@pytest.mark.root
@pytest.mark.parametrize("below", ["", "sub/deep"])
def test_br62_what_is_mounted_there_is_not_emptied(delete, base, precious, below):
    target = os.path.join(base, "volume", below).rstrip("/")
    os.makedirs(target)
    LinuxMounter().mount(precious, target, options=["bind"])
    with pytest.raises(StillMountedError) as caught:
        delete(f"{base}/volume")
    assert caught.value.subject == target
    LinuxMounter().unmount(target)
    delete(f"{base}/volume")
    assert os.listdir(base) == []


def test_a_parent_that_is_swapped_for_a_link_meanwhile(delete, base, directory, precious):
    """The race that a check of the path's text loses: the parent is a directory when it is checked."""
    os.makedirs(f"{directory}/precious/volume/kept")
    os.makedirs(f"{base}/parent/volume")
    os.symlink(precious, f"{base}/swap")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for names in (("parent", "saved"), ("swap", "parent"), ("parent", "swap"), ("saved", "parent")):
                os.rename(f"{base}/{names[0]}", f"{base}/{names[1]}")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(300):
            with suppress(VolumeHostError):
                delete(f"{base}/parent/volume")
    finally:
        stop.set()
        thread.join()
    assert os.path.isdir(f"{precious}/volume/kept")


@pytest.mark.parametrize(
    "spec", [Spec(), Spec.from_volume(Volume(name="v", host_path=HostPathVolumeSource(path="/x")))]
)
def test_only_persistent_volumes_are_deleted(plugin, spec):
    with pytest.raises(SpecError, match=r"spec\.PersistentVolumeSource\.HostPath is nil"):
        plugin.new_deleter(spec)


def test_a_persistent_volume_of_another_kind(plugin):
    spec = Spec.from_persistent_volume(PersistentVolume(spec=PersistentVolumeSpec()), read_only=False)
    with pytest.raises(SpecError, match="HostPath is nil"):
        plugin.new_deleter(spec)


def test_no_metrics(plugin, make_pv_spec, base):
    with pytest.raises(NotSupportedMetricsError):
        plugin.new_deleter(make_pv_spec(f"{base}/x")).get_metrics()
