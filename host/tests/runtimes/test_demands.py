"""What mounts ask of a runtime: their order, recursive read-only, propagation; and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import ContainerRuntimeError
from volumehost.node.workloads.containers import ContainerDevice, ContainerMount, ContainerMounts
from volumehost.runtimes.demands import Runtime, in_order, is_recursive, propagation_option

ABLE = Runtime("able", recursive_read_only=True, root=True)
UNABLE = Runtime("unable", recursive_read_only=False, root=False)

PATHS = st.lists(st.sampled_from("abc"), max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(PATHS, unique=True))
def test_what_lies_in_another_comes_after_it(paths):
    found = in_order(ContainerMounts("app", "regular", tuple(ContainerMount("v", "/h", path) for path in paths)), ABLE)
    assert sorted(item.container_path for item in found) == sorted(paths)
    for position, item in enumerate(found):
        inside = item.container_path.rstrip("/") + "/"
        assert not any(before.container_path.startswith(inside) for before in found[:position])


def test_the_order_of_the_manifest_stays_where_it_does_not_matter(container, mount):
    paths = ["/b", "/a/x", "/a", "/c"]
    assert [item.container_path for item in in_order(container(*map(mount, paths)), ABLE)] == ["/b", "/a", "/c", "/a/x"]


def test_devices_are_in_the_order_too(container, mount):
    device = ContainerDevice("d", "/dev/loop0", "/dev/xvda")
    found = in_order(container(mount("/dev/x/y"), mount("/dev"), device), ABLE)
    assert [item.container_path for item in found] == ["/dev", "/dev/xvda", "/dev/x/y"]


def test_two_at_one_place_are_refused(container, mount):
    device = ContainerDevice("d", "/dev/loop0", "/v")
    with pytest.raises(ContainerRuntimeError, match="volumes v and d would be at the same place") as caught:
        in_order(container(mount("/v"), device), ABLE)
    assert str(caught.value).startswith("exporting volume d at /v of container app: ")


def test_the_place_of_the_root(container, mount):
    assert [item.container_path for item in in_order(container(mount("/v"), mount("/")), ABLE)] == ["/", "/v"]
    with pytest.raises(ContainerRuntimeError, match="unable cannot mount a volume in place of the container's root"):
        in_order(container(mount("/v"), mount("/")), UNABLE)


@pytest.mark.parametrize(
    ("mode", "read_only", "able", "unable"),
    [
        ("", True, False, False),
        ("Disabled", True, False, False),
        ("IfPossible", True, True, False),
        ("Enabled", True, True, None),
        ("Enabled", False, False, False),
    ],
)
def test_recursive_read_only(container, mount, mode, read_only, able, unable):
    item = mount(read_only=read_only, recursive_read_only=mode)
    assert is_recursive(container(item), item, ABLE) is able
    if unable is None:
        with pytest.raises(ContainerRuntimeError, match="unable cannot make a mount read-only with all") as caught:
            is_recursive(container(item), item, UNABLE)
        assert "IfPossible" in caught.value.hint
    else:
        assert is_recursive(container(item), item, UNABLE) is unable


@pytest.mark.parametrize(
    ("propagation", "host", "option"),
    [
        ("None", "", "rprivate"),
        ("HostToContainer", "shared", "rslave"),
        ("HostToContainer", "slave", "rslave"),
        ("HostToContainer", "private", None),
        ("Bidirectional", "shared", "rshared"),
        ("Bidirectional", "slave", None),
        ("Bidirectional", "private", None),
        ("Bidirectional", "", None),
    ],
)
def test_propagation(container, mount, propagation, host, option):
    item = mount(propagation=propagation, host_propagation=host)
    if option is not None:
        assert propagation_option(container(item), item) == option
        return
    with pytest.raises(ContainerRuntimeError, match=f"mountPropagation {propagation} needs a host mount") as caught:
        propagation_option(container(item), item)
    assert f"the one that holds /host/v is {host or 'not known'}" in caught.value.reason
    assert "make-rshared" in caught.value.hint
