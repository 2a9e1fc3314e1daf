"""A real host over a temporary directory with a store, and a world that makes objects, pods and their volumes.

The store is one for all tests, each of which has a namespace of its own.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from volumehost import MounterArgs, Spec
from volumehost.api.convert import to_object
from volumehost.api.defaults import set_defaults
from volumehost.api.objects import ConfigMap, ObjectMeta, Pod, Secret
from volumehost.api.store import EmbeddedStore
from volumehost.host_services import MountPoint
from volumehost.hosts.tokens import LocalSigner
from volumehost.loader.manager import VolumePluginManager
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_emptydir.plugin import EmptyDirPlugin
from volumehost_projected import plugins

UID = "11111111-2222-3333-4444-555555555555"
GIB = 1 << 30
_numbers = itertools.count(1)


def mounts_below(path: str) -> list[MountPoint]:
    return [mount for mount in LinuxMounter().list_mounts() if mount.path == path or mount.path.startswith(path + "/")]


def _levels(pods: str) -> Iterator[tuple[str, str, str, str]]:
    for directory, names, files in os.walk(pods):
        parts = directory.removeprefix(pods).strip("/").split("/")
        if len(parts) == 3:
            for name in (*names, *files):
                yield parts[0], parts[1], parts[2], name


def files_of(path: str) -> dict[str, bytes]:
    """What a container sees: relative path to content."""
    found = {}
    for name in sorted(os.listdir(path)):
        if name.startswith("..") and os.path.isdir(f"{path}/{name}"):
            continue
        top = f"{path}/{name}"
        if os.path.isfile(top):
            found[name] = read(top)
        for directory, _, names in os.walk(top):
            for each in names:
                full = f"{directory}/{each}"
                found[os.path.relpath(full, path)] = read(full)
    return found


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class World:
    """A node with the plugins, objects to mount, and pods that mount them."""

    def __init__(self, host: PluginTestHost, store: EmbeddedStore, namespace: str) -> None:
        self.host = host
        self.store = store
        self.namespace = namespace
        self.plugins = VolumePluginManager()
        host.plugin_manager = self.plugins
        kinds = (plugins.ConfigMapPlugin, plugins.SecretPlugin, plugins.DownwardAPIPlugin, plugins.ProjectedPlugin)
        assert self.plugins.init_plugins([EmptyDirPlugin, *kinds], None, host) == []

    def config_map(self, name: str, data: Mapping[str, str] | None = None, **more: Any) -> None:
        """Created, or replaced."""
        self._put(ConfigMap(metadata=ObjectMeta(name=name, namespace=self.namespace), data=dict(data or {}), **more))

    def secret(self, name: str, data: Mapping[str, bytes]) -> None:
        """Created, or replaced."""
        self._put(Secret(metadata=ObjectMeta(name=name, namespace=self.namespace), data=dict(data)))

    def forget(self, config_map: str, secret: str) -> None:
        """Both are gone."""
        self.store.delete(ConfigMap, config_map, self.namespace)
        self.store.delete(Secret, secret, self.namespace)

    def _put(self, obj: ConfigMap | Secret) -> None:
        if any(each.metadata.name == obj.metadata.name for each in self.store.list(type(obj), self.namespace).items):
            self.store.delete(type(obj), obj.metadata.name, self.namespace)
        self.store.create(obj)

    def pod(self, *volumes: Mapping[str, Any], containers: Any = None, uid: str = UID, **spec: Any) -> Pod:
        """A pod as the API would store it."""
        metadata = {"name": "web", "namespace": self.namespace, "uid": uid, "labels": {"app": "web"}}
        containers = containers or [{"name": "main", "image": "web"}]
        return set_defaults(
            to_object(Pod, {"metadata": metadata, "spec": {"volumes": list(volumes), "containers": containers, **spec}})
        )

    def mounter(self, pod: Pod, index: int = 0):
        spec = Spec.from_volume(pod.spec.volumes[index])
        return self.plugins.find_plugin_by_spec(spec).new_mounter(spec, pod)

    def mount(self, *volumes: Mapping[str, Any], args: MounterArgs | None = None, **pod: Any) -> str:
        """Set up the first volume; where it lies."""
        mounter = self.mounter(self.pod(*volumes, **pod))
        mounter.set_up(args or MounterArgs())
        return mounter.get_path()

    def unmount(self, path: str) -> None:
        """Tear down what lies there."""
        *_, uid, _volumes, plugin, name = path.split("/")
        self.plugins.find_plugin_by_name(plugin.replace("~", "/")).new_unmounter(name, uid).tear_down()

    files = staticmethod(files_of)
    mode = staticmethod(lambda path: stat.S_IMODE(os.stat(path).st_mode))
    mounts = staticmethod(mounts_below)

    def left(self) -> list[str]:
        """Files and directories of volumes."""
        pods = f"{self.host.root_dir}/pods"
        plugins_of_pods = (f"{pods}/{uid}/{kind}/{plugin}/{name}" for uid, kind, plugin, name in _levels(pods))
        return sorted(plugins_of_pods)


@pytest.fixture
def directory(tmp_path) -> Iterator[str]:
    """A directory; whatever is still mounted below it at the end is unmounted."""
    path = os.path.realpath(tmp_path)
    yield path
    for mount in reversed(mounts_below(path)):
        LinuxMounter().unmount(mount.path)


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(f"{tmp_path_factory.mktemp('store')}/store.sqlite3") as store:
        yield store


@pytest.fixture
def world(directory, store) -> Iterator[World]:
    host = PluginTestHost(directory, api=store, allocatable={"memory": GIB, "cpu": 4000, "ephemeral-storage": GIB})
    host.default_token_signer = lambda: LocalSigner(host.root_dir)  # type: ignore[method-assign]
    yield World(host, store, f"test-{next(_numbers)}")
    host.close()
