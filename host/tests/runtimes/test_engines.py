"""Arguments of podman and docker: every path that a manifest can hold is said so that they read it again."""

import csv
import io
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import ContainerRuntimeError
from volumehost.node.workloads.containers import ContainerDevice, ContainerMount, ContainerMounts
from volumehost.runtimes.docker import docker_arguments
from volumehost.runtimes.podman import podman_arguments

BOTH = pytest.mark.parametrize("arguments", [podman_arguments, docker_arguments])

#: Any character but NUL and carriage return; those that mean something to somebody often.
PATHS = st.text(
    st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]) | st.sampled_from(list(",\"'= :\n\t$\\")),
    min_size=1,
    max_size=20,
).map(lambda text: f"/{text}")


def read(field):
    """A --mount value as the engines read it: one record of comma-separated values."""
    (record,) = csv.reader(io.StringIO(field, newline=""), strict=True)
    return record


@BOTH
@given(host=PATHS, path=PATHS)
def test_paths_arrive_as_they_are(arguments, host, path):
    mounts = (ContainerMount("v", host, path, read_only=True),)
    line = shlex.join(arguments(ContainerMounts("app", "regular", mounts)))
    option, field = shlex.split(line)
    assert option == "--mount"
    assert read(field)[:3] == ["type=bind", f"src={host}", f"dst={path}"]
    assert len(read(field)) == 4


@BOTH
def test_what_their_reader_would_lose_is_refused(arguments, container, mount):
    with pytest.raises(ContainerRuntimeError, match="carriage return"):
        arguments(container(mount("/a\rb")))
    with pytest.raises(ContainerRuntimeError, match="carriage return"):
        arguments(container(mount(host="/a\r\nb")))


@BOTH
def test_their_order_is_by_depth_and_two_at_one_place_are_refused(arguments, container, mount):
    made = arguments(container(mount("/a/b"), mount("/a")))
    assert [field.split("dst=")[1] for field in made[1::2]] == ["/a", "/a/b"]
    with pytest.raises(ContainerRuntimeError, match="at the same place"):
        arguments(container(mount("/a"), mount("/a")))
    with pytest.raises(ContainerRuntimeError, match="in place of the container's root"):
        arguments(container(mount("/")))


@BOTH
def test_devices_and_groups(arguments, container):
    devices = [ContainerDevice("d", "/dev/loop0", "/dev/xvda"), ContainerDevice("e", "/dev/loop1", "/dev/b", True)]
    assert arguments(container(*devices, groups=(5, 77))) == [
        *("--device", "/dev/loop0:/dev/xvda:rwm"),
        *("--device", "/dev/loop1:/dev/b:r"),
        *("--group-add", "5"),
        *("--group-add", "77"),
    ]
    with pytest.raises(ContainerRuntimeError, match="--device takes no path with a colon: /dev/a:b"):
        arguments(container(ContainerDevice("d", "/dev/loop0", "/dev/a:b")))


@BOTH
def test_nothing_is_no_arguments(arguments, container):
    assert arguments(container()) == []


@pytest.mark.parametrize(
    ("more", "podman", "docker"),
    [
        ({}, "", ""),
        ({"read_only": True}, ",ro", ",readonly"),
        ({"read_only": True, "recursive_read_only": "IfPossible"}, ",ro", ",readonly"),
        ({"read_only": True, "recursive_read_only": "Disabled"}, ",ro", ",readonly,bind-recursive=writable"),
        (
            {"read_only": True, "recursive_read_only": "Enabled"},
            None,
            ",readonly,bind-recursive=readonly,bind-propagation=rprivate",
        ),
        (
            {"propagation": "HostToContainer", "host_propagation": "slave"},
            ",bind-propagation=rslave",
            ",bind-propagation=rslave",
        ),
        (
            {"propagation": "Bidirectional", "host_propagation": "shared"},
            ",bind-propagation=rshared",
            ",bind-propagation=rshared",
        ),
        ({"propagation": "Bidirectional", "host_propagation": "private"}, None, None),
    ],
)
def test_options(container, mount, more, podman, docker):
    for arguments, expected in ((podman_arguments, podman), (docker_arguments, docker)):
        if expected is None:
            with pytest.raises(ContainerRuntimeError):
                arguments(container(mount(**more)))
        else:
            assert arguments(container(mount(**more))) == ["--mount", f"type=bind,src=/host/v,dst=/v{expected}"]


def test_relabelling_is_an_option_of_podmans_mount_and_of_dockers_volume(container, mount):
    asked = {"selinux_relabel": True, "read_only": True}
    assert podman_arguments(container(mount(**asked)))[1].endswith(",ro,relabel=shared")
    assert docker_arguments(container(mount(**asked))) == ["--volume", "/host/v:/v:ro,z"]
    shared = mount(selinux_relabel=True, propagation="HostToContainer", host_propagation="shared")
    assert docker_arguments(container(shared)) == ["--volume", "/host/v:/v:rw,z,rslave"]


def test_what_dockers_volume_cannot_say_is_refused(container, mount):
    with pytest.raises(ContainerRuntimeError, match="--volume, which relabels, takes no path with a colon"):
        docker_arguments(container(mount(host="/a:b", selinux_relabel=True)))
    both = mount(selinux_relabel=True, read_only=True, recursive_read_only="Enabled")
    with pytest.raises(ContainerRuntimeError, match="cannot relabel a mount and make it recursively read-only"):
        docker_arguments(container(both))
