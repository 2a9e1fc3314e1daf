"""Run by test_killed.py: dies at every change that a set-up, a refresh or a teardown makes, one after the other.

``python killed_everywhere.py DIRECTORY configmap|secret`` prints for each of the three how often it died, and what was
not right afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from volumehost import MounterArgs, Spec
from volumehost.api.objects import (
    ConfigMap,
    ConfigMapVolumeSource,
    KeyToPath,
    ObjectMeta,
    Pod,
    Secret,
    SecretVolumeSource,
    Volume,
)
from volumehost.loader.manager import VolumePluginManager
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_emptydir.plugin import EmptyDirPlugin
from volumehost_projected.plugins import ConfigMapPlugin, SecretPlugin

ITEMS = [KeyToPath(key=key, path=path) for key, path in (("a", "a"), ("b", "deep/b"))]
CHANGES = {"os.mkdir", "os.symlink", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.link"}


class DyingMounter(LinuxMounter):
    """Tells before and after each mount and unmount that something changes."""

    changing: Callable[[], None] = staticmethod(lambda: None)

    def mount(self, *args, **options):
        self.changing()
        super().mount(*args, **options)
        self.changing()

    def unmount(self, *args, **options):
        self.changing()
        super().unmount(*args, **options)
        self.changing()


class Life:
    def __init__(self, directory: str, kind: str) -> None:
        self.mounter = DyingMounter()
        self.host = PluginTestHost(directory, mounter=self.mounter, allocatable={"memory": 1 << 30})
        manager = self.host.plugin_manager = VolumePluginManager()
        manager.init_plugins([EmptyDirPlugin, ConfigMapPlugin, SecretPlugin], None, self.host)
        self.content = "1"
        self.host.get_config_map_func = lambda: lambda *_: ConfigMap(data=dict.fromkeys("ab", self.content))
        self.host.get_secret_func = lambda: lambda *_: Secret(data=dict.fromkeys("ab", self.content.encode()))
        source = {
            "configmap": {"config_map": ConfigMapVolumeSource(name="x", items=ITEMS, default_mode=0o644)},
            "secret": {"secret": SecretVolumeSource(secret_name="x", items=ITEMS, default_mode=0o644)},
        }[kind]
        self.spec = Spec.from_volume(Volume(name="v", **source))
        self.pod = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u-1"))
        self.plugin = manager.find_plugin_by_spec(self.spec)
        self.path = self.plugin.new_mounter(self.spec, self.pod).get_path()

    def set_up(self, content: str, **args) -> None:
        self.content = content
        self.plugin.new_mounter(self.spec, self.pod).set_up(MounterArgs(fs_group=5000, **args))

    def tear_down(self) -> None:
        self.plugin.new_unmounter("v", "u-1").tear_down()

    def seen(self) -> set[str]:
        """What who opens the volume once reads."""
        found = set()
        for name in ("a", "deep/b"):
            with open(f"{self.path}/..data/{name}") as file:
                found.add(file.read())
        return found

    def remains(self) -> list[str]:
        """Names in the volume that should not be there."""
        return sorted(set(os.listdir(self.path)) - {"..data", os.readlink(f"{self.path}/..data"), "a", "deep"})

    def left(self) -> list[str]:
        """All that there is of the volume."""
        mounts = [mount.path for mount in self.mounter.list_mounts() if mount.path == self.path]
        pod = f"{self.host.root_dir}/pods/u-1"
        wrapped = f"{pod}/plugins/kubernetes.io~empty-dir/wrapped_v"
        return mounts + [path for path in (self.path, wrapped) if os.path.lexists(path)]

    def died(self, step: Callable[[], None], stop_at: int) -> bool:
        """Whether a process that does the step came as far as its n-th change, and died there."""
        child = os.fork()
        if child == 0:
            self._die_at(stop_at)
            step()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)

    def _die_at(self, stop_at: int) -> None:
        count = 0

        def changing() -> None:
            nonlocal count
            count += 1
            if count == stop_at:
                os.kill(os.getpid(), signal.SIGKILL)

        def watch(event: str, args: tuple) -> None:
            creates = event == "open" and len(args) > 2 and isinstance(args[2], int) and args[2] & os.O_CREAT
            if event in CHANGES or creates:
                changing()

        self.mounter.changing = changing
        sys.addaudithook(watch)


def everywhere(life: Life, prepare, step, check) -> int:
    """Dies at the first change, then at the second ...; returns how many there are."""
    stop_at = 0
    while True:
        stop_at += 1
        prepare()
        if not life.died(step, stop_at):
            life.tear_down()
            return stop_at - 1
        check(stop_at)


def main(directory: str, kind: str) -> None:
    life = Life(directory, kind)

    def expect(what: str, found: object, wanted: object) -> None:
        if found != wanted:
            print(f"WRONG {what}: {found!r}, not {wanted!r}")

    def gone(what: str) -> None:
        life.tear_down()
        expect(f"{what}, then torn down", life.left(), [])

    def after_mount(stop_at: int) -> None:
        if stop_at % 2:
            gone(f"mount {stop_at}")
        life.set_up("1")
        expect(f"mount {stop_at}", (life.seen(), life.remains()), ({"1"}, []))
        gone(f"mount {stop_at}")

    def after_refresh(stop_at: int) -> None:
        seen = life.seen()
        expect(f"refresh {stop_at}, readers", len(seen), 1)
        life.set_up("2", reconstructed_volume=True)
        expect(f"refresh {stop_at}", (life.seen(), life.remains()), ({"2"}, []))
        gone(f"refresh {stop_at}")

    print(kind, "mount", everywhere(life, lambda: None, lambda: life.set_up("1"), after_mount))
    refresh = (lambda: life.set_up("1"), lambda: life.set_up("2", is_remount=True), after_refresh)
    print(kind, "refresh", everywhere(life, *refresh))
    unmount = (lambda: life.set_up("1"), life.tear_down, lambda stop_at: gone(f"unmount {stop_at}"))
    print(kind, "unmount", everywhere(life, *unmount))


if __name__ == "__main__":
    main(*sys.argv[1:])
