"""The recycler's template and deadline: RECYCLE-01 to -03, UTIL-25."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from volumehost import VolumeConfig
from volumehost.api.convert import to_object
from volumehost.api.objects import Pod, PodSpec
from volumehost.errors import SpecError
from volumehost.sdk import recycler_pod_manifest, recycler_timeout, validate_recycler_pod_template


@pytest.mark.parametrize(("size", "seconds"), [(500_000_000, 50), (2 << 30, 60), (150 << 30, 4500), (0, 50)])
def test_the_deadline_is_a_maximum_not_a_sum(size, seconds):
    config = VolumeConfig(recycler_minimum_timeout=50, recycler_timeout_increment=30)
    assert recycler_timeout(config, size) == seconds


def test_the_template_is_a_pod_with_one_volume_without_a_source():
    pod = to_object(Pod, recycler_pod_manifest())
    validate_recycler_pod_template(pod)
    assert pod.metadata.namespace == "default"
    assert pod.spec.restart_policy == "Never"
    assert pod.spec.active_deadline_seconds == 60
    assert len(pod.spec.volumes) == 1


def test_each_call_gives_a_copy():
    recycler_pod_manifest()["spec"]["volumes"].clear()
    assert recycler_pod_manifest()["spec"]["volumes"]


def test_a_template_without_volumes():
    with pytest.raises(SpecError, match=r"does not contain any volume\(s\)"):
        validate_recycler_pod_template(Pod(spec=PodSpec()))


def run_script(directory: Path) -> int:
    script = recycler_pod_manifest()["spec"]["containers"][0]["args"][1].replace("/scrub", str(directory))
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, timeout=60, check=False).returncode


def test_the_script_scrubs_everything_but_the_directory(tmp_path):
    volume = tmp_path / "volume"
    (volume / "a" / ".b").mkdir(parents=True)
    (volume / ".hidden").touch()
    (volume / "..odd").touch()
    (volume / "with space").touch()
    assert run_script(volume) == 0
    assert list(volume.iterdir()) == []


def test_the_script_fails_without_a_directory(tmp_path):
    assert run_script(tmp_path / "missing") == 1


@pytest.mark.root
def test_the_script_fails_when_something_is_left(tmp_path):
    from volumehost.mount.mounter import LinuxMounter

    (tmp_path / "volume" / "mounted").mkdir(parents=True)
    LinuxMounter().mount("tmpfs", str(tmp_path / "volume" / "mounted"), "tmpfs", ["size=1M"])
    try:
        (tmp_path / "volume" / "mounted" / "kept").touch()
        assert run_script(tmp_path / "volume") == 1
        assert (tmp_path / "volume" / "mounted" / "kept").exists()
    finally:
        LinuxMounter().unmount(str(tmp_path / "volume" / "mounted"))
