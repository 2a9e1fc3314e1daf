"""Files from the keys of ConfigMaps and Secrets: PAYLOAD-01, -02, -07, -08, -20 to -23."""

from __future__ import annotations

import os

import pytest

from volumehost import MounterArgs
from volumehost.errors import ObjectNotFoundError, PayloadError, SpecError

pytestmark = pytest.mark.root

CONFIG_MAP = {"name": "settings", "configMap": {"name": "app"}}
SECRET = {"name": "login", "secret": {"secretName": "db"}}


def config_map(**source):
    return {"name": "settings", "configMap": {"name": "app", **source}}


def secret(**source):
    return {"name": "login", "secret": {"secretName": "db", **source}}


def test_payload20_every_key_becomes_a_file(world):
    world.config_map("app", {"color": "blue", "app.conf": "é = 1\n"}, binary_data={"logo": b"\xff\x00"})
    path = world.mount(CONFIG_MAP)
    assert world.files(path) == {"color": b"blue", "app.conf": "é = 1\n".encode(), "logo": b"\xff\x00"}
    assert {world.mode(f"{path}/{name}") for name in world.files(path)} == {0o644}
    assert world.mounts(path) == []


def test_a_secret_is_in_memory_alone_and_gone_with_its_pod(world):
    world.secret("db", {"password": b"hunter2", "key": bytes(range(256))})
    path = world.mount(SECRET)
    assert world.files(path) == {"password": b"hunter2", "key": bytes(range(256))}
    (mount,) = world.mounts(path)
    assert mount.fs_type == "tmpfs"
    world.unmount(path)
    assert world.left() == []
    world.unmount(path)  # once more is fine (VOL-06)


def test_wrap04_the_data_is_the_volumes_and_the_marker_the_wrapped_ones(world):
    world.secret("db", {"password": b"x"})
    path = world.mount(SECRET)
    pods = f"{world.host.root_dir}/pods/{path.split('/')[-4]}"
    assert path == f"{pods}/volumes/kubernetes.io~secret/login"
    assert os.path.exists(f"{pods}/plugins/kubernetes.io~empty-dir/wrapped_login/ready")


def test_payload21_items_name_files_and_modes_and_the_rest_is_left_out(world):
    world.config_map("app", {"a": "1", "b": "2", "c": "3"})
    items = [{"key": "a", "path": "deep/er/a.txt", "mode": 0o400}, {"key": "b", "path": "b"}]
    path = world.mount(config_map(items=items, defaultMode=0o440))
    assert world.files(path) == {"deep/er/a.txt": b"1", "b": b"2"}
    assert (world.mode(f"{path}/deep/er/a.txt"), world.mode(f"{path}/b")) == (0o400, 0o440)


def test_payload22_missing_keys(world):
    world.config_map("app", {"a": "1"})
    world.secret("db", {"a": b"1"})
    items = [{"key": "nope", "path": "x"}, {"key": "a", "path": "a"}]
    with pytest.raises(SpecError, match="configmap references non-existent config key: nope"):
        world.mount(config_map(items=items))
    with pytest.raises(SpecError, match="references non-existent secret key: nope"):
        world.mount(secret(items=items))
    assert world.left() == []
    assert world.files(world.mount(config_map(items=items, optional=True))) == {"a": b"1"}
    assert world.files(world.mount(secret(items=items, optional=True))) == {"a": b"1"}


@pytest.mark.parametrize(("volume", "message"), [(CONFIG_MAP, 'configmap "app"'), (SECRET, 'secret "db"')])
def test_payload08_a_missing_object_leaves_no_directory(world, volume, message):
    with pytest.raises(ObjectNotFoundError, match=f"{message} not found .*create it in namespace {world.namespace}"):
        world.mount(volume)
    assert world.left() == []


@pytest.mark.parametrize("volume", [config_map(optional=True), secret(optional=True)])
def test_payload08_an_optional_one_is_an_empty_directory_and_filled_later(world, volume):
    path = world.mount(volume)
    assert world.files(path) == {}
    world.config_map("app", {"color": "blue"})
    world.secret("db", {"color": b"blue"})
    world.mount(volume, args=MounterArgs(is_remount=True))
    assert world.files(path) == {"color": b"blue"}


def test_payload08_another_failure_counts_optional_or_not(world):
    world.host.get_config_map_func = lambda: _refuse
    with pytest.raises(PermissionError, match="forbidden"):
        world.mount(config_map(optional=True))
    assert world.left() == []


def _refuse(namespace, name):
    raise PermissionError("forbidden")


def test_payload07_without_a_mode_nothing_is_made(world):
    pod = world.pod(CONFIG_MAP)
    pod.spec.volumes[0].config_map.default_mode = None
    with pytest.raises(SpecError, match="no defaultMode used, not even the default value for it"):
        world.mounter(pod)


@pytest.mark.parametrize(
    "path", ["..", "../up", "..data", "..x/y", "/etc/passwd", "a/../../b", "", "x" * 256, "nul\0", "a\0/b"]
)
@pytest.mark.parametrize("volume", [config_map, secret])
def test_payload23_hostile_paths_leave_no_volume(world, volume, path):
    world.config_map("app", {"a": "1"})
    world.secret("db", {"a": b"1"})
    with pytest.raises(PayloadError, match="checking the file"):
        world.mount(volume(items=[{"key": "a", "path": path}]))
    assert world.left() == []


def test_files_that_collide_are_refused(world):
    world.config_map("app", {"a": "1", "b": "2"})
    with pytest.raises(PayloadError, match="is a file"):
        world.mount(config_map(items=[{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]))
    with pytest.raises(PayloadError, match="names the same file"):
        world.mount(config_map(items=[{"key": "a", "path": "x"}, {"key": "b", "path": "./x"}]))
    assert world.left() == []


@pytest.mark.parametrize("key", ["..", "..data", "a/b", "..2026_01_01_00_00_00.x"])
def test_hostile_keys_of_an_object_that_no_store_would_take(world, key):
    """Only ``a/b`` is a path at all, and stays inside."""
    world.host.get_config_map_func = lambda: lambda namespace, name: _ConfigMap({key: "1"})
    if key == "a/b":
        assert world.files(world.mount(CONFIG_MAP)) == {"a/b": b"1"}
        return
    with pytest.raises(PayloadError):
        world.mount(CONFIG_MAP)
    assert world.left() == []


class _ConfigMap:
    def __init__(self, data):
        self.data, self.binary_data = data, {}


def test_a_mebibyte_of_binary_data_in_a_thousand_keys(world):
    data = {f"key-{number:04}": os.urandom(1000) for number in range(1000)}
    world.config_map("app", binary_data=data)
    world.secret("db", {"all": b"".join(data.values())})
    assert world.files(world.mount(CONFIG_MAP)) == data
    assert world.files(world.mount(SECRET)) == {"all": b"".join(data.values())}


def test_an_empty_object_is_an_empty_directory(world):
    world.config_map("app")
    assert world.files(world.mount(CONFIG_MAP)) == {}
