"""Links among the parents of a volume's place: neither a restart nor what sets up or tears down follows them."""

import os

import pytest

from volumehost.errors import RemovalError, UnsafePathError
from volumehost.hosts.layout import Layout
from volumehost.node.operations import own_places
from volumehost.node.operations.own_places import (
    check_place_in_pod,
    check_place_of_device,
    check_place_to_tear_down,
)
from volumehost.node.restart.found_on_disk import volume_directories

PLUGIN = "example.com/bind"


@pytest.fixture
def layout(tmp_path):
    found = Layout(str(tmp_path / "root"))
    os.makedirs(f"{found.pod_dir('uid-1')}/volumes/example.com~bind/v")
    return found


@pytest.fixture
def elsewhere(tmp_path):
    """A directory that looks like a pod's at every level, so that a link to any of them would be believed."""
    path = tmp_path / "elsewhere"
    os.makedirs(path / "volumes" / "example.com~bind" / "v")
    (path / "volumes" / "example.com~bind" / "v" / "precious").write_text("kept")
    return path


def links(layout, elsewhere):
    """Each place at which a link may stand, and what it would lead to."""
    pods = layout.pods_dir()
    return [
        (f"{pods}/uid-2", elsewhere),
        (f"{pods}/uid-1/volumes", elsewhere / "volumes"),
        (f"{pods}/uid-1/volumes/example.com~bind", elsewhere / "volumes" / "example.com~bind"),
        (f"{pods}/uid-1/volumes/example.com~bind/v", elsewhere / "volumes" / "example.com~bind" / "v"),
    ]


def put(path, target):
    if os.path.isdir(path):
        os.rename(path, f"{path}.away")
    os.symlink(target, path)


@pytest.mark.parametrize("level", range(4))
def test_a_link_at_any_level_is_refused(layout, elsewhere, level):
    path, target = links(layout, elsewhere)[level]
    put(path, target)
    uid = "uid-2" if level == 0 else "uid-1"
    with pytest.raises(UnsafePathError, match="leads elsewhere"):
        check_place_in_pod(layout, uid, PLUGIN, "v", block=False)


@pytest.mark.parametrize("level", range(3))
def test_a_restart_does_not_look_behind_links(layout, elsewhere, level):
    """RECON-01: what is found there would be torn down, since no pod wants it."""
    path, target = links(layout, elsewhere)[level]
    put(path, target)
    found = [each.path for each in volume_directories(layout)]
    assert not [each for each in found if each.startswith(f"{path}/")]
    assert len(found) == (1 if level != 1 else 0), "what was moved aside is looked at where it may be a volume"


@pytest.mark.parametrize("name", ["volume-subpaths", "plugins"])
def test_links_on_the_way_to_what_belongs_to_a_volume_are_refused(layout, elsewhere, name):
    os.symlink(elsewhere, f"{layout.pod_dir('uid-1')}/{name}")
    with pytest.raises(UnsafePathError, match=name):
        check_place_in_pod(layout, "uid-1", PLUGIN, "v", block=False)


def test_what_is_not_there_or_a_directory_is_fine(layout):
    check_place_in_pod(layout, "uid-1", PLUGIN, "v", block=False)
    check_place_in_pod(layout, "uid-1", PLUGIN, "other", block=False)
    check_place_in_pod(layout, "uid-9", PLUGIN, "v", block=False)
    check_place_in_pod(layout, "uid-1", PLUGIN, "v", block=True)
    check_place_of_device(layout, f"{layout.root_dir}/plugins/example.com~bind/mounts/v")
    check_place_of_device(layout, "/somewhere/else")


def test_of_a_new_pod_those_who_set_it_up_together_share_a_look(layout, elsewhere, monkeypatch):
    now, looks = [100.0], []
    monkeypatch.setattr(own_places.time, "monotonic", lambda: now[0])
    look = own_places._look
    monkeypatch.setattr(own_places, "_look", lambda root, path, *how: looks.append(path) or look(root, path, *how))
    for name in ("a", "b", "c"):
        check_place_in_pod(layout, "uid-9", PLUGIN, name, block=False, together=7)
    assert looks == ["pods/uid-9"]
    os.symlink(elsewhere, f"{layout.pods_dir()}/uid-9")
    for together in (0, 8):  # a teardown; those who were started later
        with pytest.raises(UnsafePathError):
            check_place_in_pod(layout, "uid-9", PLUGIN, "d", block=False, together=together)
    now[0] += 0.011
    with pytest.raises(UnsafePathError):
        check_place_in_pod(layout, "uid-9", PLUGIN, "d", block=False, together=7)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("level", range(5))
def test_a_teardown_refuses_a_link_at_any_level(layout, elsewhere, monkeypatch, level, cached):
    """With the kernel's cache and without."""
    monkeypatch.setattr(own_places.shared_places(), "cached_lookups_are_safe", lambda: cached)
    assert not check_place_to_tear_down(layout, "uid-1", PLUGIN, "v", together=0)
    path, target = [*links(layout, elsewhere), (f"{layout.pod_dir('uid-1')}/plugins", elsewhere)][level]
    put(path, target)
    with pytest.raises(UnsafePathError, match="leads elsewhere"):
        check_place_to_tear_down(layout, "uid-2" if level == 0 else "uid-1", PLUGIN, "v", together=0)


def test_those_who_tear_a_pod_down_together_share_a_look_for_subpaths(layout, elsewhere, monkeypatch):
    """SUBPATH-35: whoever was started later, or comes a moment later, looks anew."""
    now = [100.0]
    monkeypatch.setattr(own_places.time, "monotonic", lambda: now[0])
    assert not check_place_to_tear_down(layout, "uid-1", PLUGIN, "v", together=7)
    os.makedirs(f"{layout.pod_subpaths_dir('uid-1')}/w/main")
    assert not check_place_to_tear_down(layout, "uid-1", PLUGIN, "w", together=7)
    assert check_place_to_tear_down(layout, "uid-1", PLUGIN, "w", together=8)
    assert not check_place_to_tear_down(layout, "uid-2", PLUGIN, "w", together=8)
    assert check_place_to_tear_down(layout, "uid-1", PLUGIN, "w", together=0)
    now[0] += 0.011
    assert check_place_to_tear_down(layout, "uid-1", PLUGIN, "w", together=7)
    os.rename(layout.pod_subpaths_dir("uid-1"), elsewhere / "subpaths")
    os.symlink(elsewhere / "subpaths", layout.pod_subpaths_dir("uid-1"))
    with pytest.raises(UnsafePathError, match="volume-subpaths"):
        check_place_to_tear_down(layout, "uid-1", PLUGIN, "w", together=9)


def test_a_raw_block_volume_is_a_link_itself_and_its_parents_are_not(layout, elsewhere):
    directory = layout.pod_volume_device_dir("uid-1", PLUGIN)
    os.makedirs(directory)
    os.symlink("/dev/null", f"{directory}/v")
    check_place_in_pod(layout, "uid-1", PLUGIN, "v", block=True)
    put(directory, elsewhere)
    with pytest.raises(UnsafePathError):
        check_place_in_pod(layout, "uid-1", PLUGIN, "v", block=True)


def test_a_file_on_the_way_is_told(layout):
    with open(f"{layout.pod_dir('uid-1')}/volume-subpaths", "w"):
        pass
    with pytest.raises(RemovalError, match="no directory"):
        check_place_in_pod(layout, "uid-1", PLUGIN, "v", block=False)


def test_a_device_below_a_link_is_refused(layout, elsewhere):
    os.makedirs(f"{layout.root_dir}/plugins")
    os.symlink(elsewhere, f"{layout.root_dir}/plugins/example.com")
    for path in ("volumes/globalmount", "globalmount"):
        with pytest.raises(UnsafePathError):
            check_place_of_device(layout, f"{layout.root_dir}/plugins/example.com/{path}")


# --- the whole way --------------------------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.parametrize("level", [1, 2])
def test_nothing_is_torn_down_behind_a_link_until_it_is_taken_away(
    manager, bind, nfs, make_pod, mounts, elsewhere, until, level
):
    plugin = bind()
    node = manager(plugin)
    pod = node.mount_pod(make_pod(nfs(), uid=""), timeout=20)
    path = f"{node.root_dir}/pods/{pod.uid}/{('', 'volumes', 'volumes/example.com~bind')[level]}"
    put(path, links(Layout(node.root_dir), elsewhere)[level][1])
    node.end_pod(pod.uid, pod.namespace, pod.name)
    until(lambda: any("leads elsewhere" in each.error for found in node.status() for each in found.volumes))
    assert plugin.count("tear_down") == 0
    assert (elsewhere / "volumes" / "example.com~bind" / "v" / "precious").read_text() == "kept"
    os.unlink(path)
    os.rename(f"{path}.away", path)
    until(lambda: mounts() == [], what="it is torn down when the link is gone")


@pytest.mark.root
def test_nothing_is_set_up_behind_a_link(manager, bind, nfs, make_pod, mounts, elsewhere, until, api_pod):
    plugin = bind()
    node = manager(plugin)
    pod = api_pod(node, make_pod(nfs(), uid=""))
    os.symlink(elsewhere, f"{node.root_dir}/pods/{pod.metadata.uid}")
    node.sync_pod(pod)
    until(lambda: "leads elsewhere" in node.pod_status(pod).volumes[0].error)
    assert (plugin.count("set_up"), mounts()) == (0, [])


@pytest.fixture
def api_pod():
    """Puts a pod into the API without mounting it."""
    from volumehost.node.populating.pod_objects import apply_pod

    return lambda node, pod: apply_pod(node.api, pod)
