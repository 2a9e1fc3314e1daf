"""UTIL-22, -22a, -22b."""

from __future__ import annotations

import os

import pytest

from volumehost.api.objects import Container, EphemeralContainer, Pod, PodSpec, VolumeMount
from volumehost.errors import SpecError, VolumeHostError
from volumehost.sdk import make_nested_mount_points, nested_mount_points


def container(*mounts: tuple[str, str], kind=Container):
    return kind(name="c", volume_mounts=[VolumeMount(name=name, mount_path=path) for name, path in mounts])


def pod(*containers, **spec) -> Pod:
    return Pod(spec=PodSpec(containers=list(containers), **spec))


def test_siblings_that_sort_between_do_not_hide_the_outer_one():
    """UTIL-22b."""
    mounts = [("v", "/mnt")]
    mounts += [("x", f"/mnt/{name}") for name in ("nested", "nested-vol", "nested.vol", "nested/double", "nested2")]
    found = nested_mount_points("v", pod(container(*mounts)))
    assert found == ["nested", "nested-vol", "nested.vol", "nested2"]


def test_only_what_lies_strictly_below_in_the_same_container():
    one = container(("v", "/mnt/v"), ("x", "/mnt/v"), ("y", "/mnt/vx"), ("z", "/mnt"), ("w", "/mnt/v/w/deep"))
    other = container(("a", "/mnt/v/elsewhere"))
    assert nested_mount_points("v", pod(one, other)) == ["w/deep"]


def test_all_kinds_of_containers_count():
    found = nested_mount_points(
        "v",
        pod(
            container(("v", "/a"), ("x", "/a/regular")),
            init_containers=[container(("v", "/b"), ("x", "/b/init"))],
            ephemeral_containers=[container(("v", "/c"), ("x", "/c/ephemeral"), kind=EphemeralContainer)],
        ),
    )
    assert found == ["ephemeral", "init", "regular"]


def test_paths_are_cleaned_and_the_root_contains_everything():
    assert nested_mount_points("v", pod(container(("v", "/a//b/"), ("x", "/a/./b/c/")))) == ["c"]
    assert nested_mount_points("v", pod(container(("v", "/"), ("x", "/c")))) == ["c"]


def test_a_path_that_leads_out_of_the_container():
    with pytest.raises(SpecError, match=r"invalid container mount point \.\./x"):
        nested_mount_points("v", pod(container(("v", "../x"))))


def test_they_are_created(directory):
    make_nested_mount_points("v", pod(container(("v", "/m"), ("x", "/m/a/b"), ("y", "/m/c"))), directory)
    make_nested_mount_points("v", pod(container(("v", "/m"), ("x", "/m/a/b"), ("y", "/m/c"))), directory)
    assert os.path.isdir(f"{directory}/a/b")
    assert os.path.isdir(f"{directory}/c")


@pytest.mark.parametrize("target", ["..data/a", "/nonexistent", "real"])
def test_links_are_left_alone(directory, target):
    """UTIL-22b, improved: they lead into a payload, or out of the volume."""
    os.mkdir(f"{directory}/real")
    os.symlink(target, f"{directory}/a")
    make_nested_mount_points("v", pod(container(("v", "/m"), ("x", "/m/a/b"))), directory)
    assert os.listdir(f"{directory}/real") == []
    assert os.path.islink(f"{directory}/a")


def test_a_file_in_the_way(directory):
    open(f"{directory}/a", "w").close()
    with pytest.raises(VolumeHostError, match="unable to create nested volume mountpoints"):
        make_nested_mount_points("v", pod(container(("v", "/m"), ("x", "/m/a/b"))), directory)
