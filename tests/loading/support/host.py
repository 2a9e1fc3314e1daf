"""A running host: loads plugins and serves requests, one JSON object a line, on stdin and stdout."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from typing import Any

from volumehost import MounterArgs, Spec
from volumehost.api.objects import FlexVolumeSource, ObjectMeta, Pod, Volume
from volumehost.hosts.node_host import NodeHost
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.prober import EntryPointProber


class Host:
    """One node host with its plugin manager; each public method is a request."""

    def __init__(self, root_dir: str) -> None:
        self.manager = VolumePluginManager()
        self.host = NodeHost(root_dir, node_name="test", plugin_manager=self.manager)
        self.manager.init_plugins((), EntryPointProber(), self.host)

    def find(self, name: str) -> dict[str, str]:
        return self._describe(self.manager.find_plugin_by_name(name))

    def find_for(self, driver: str) -> dict[str, str]:
        return self._describe(self.manager.find_plugin_by_spec(_spec("work", driver), guarded=True))

    def _describe(self, plugin: Any) -> dict[str, str]:
        return {
            "name": plugin.name,
            "version": plugin.origin.version,
            "distribution": plugin.origin.distribution,
            "code": getattr(plugin.plugin, "version", ""),
        }

    def mount(self, pod_uid: str, volume: str, driver: str) -> str:
        spec = _spec(volume, driver)
        plugin = self.manager.find_plugin_by_spec(spec, guarded=True)
        plugin.hold(f"{pod_uid}/{volume}")
        mounter = plugin.new_mounter(spec, Pod(metadata=ObjectMeta(name="p", namespace="default", uid=pod_uid)))
        mounter.set_up(MounterArgs())
        return mounter.get_path()

    def unmount(self, pod_uid: str, volume: str, plugin: str) -> str:
        loaded = self.manager.find_plugin_by_name(plugin)
        loaded.new_unmounter(volume, pod_uid).tear_down()
        loaded.release(f"{pod_uid}/{volume}")
        return loaded.origin.version

    def plugins(self) -> list[dict[str, Any]]:
        fields = ("name", "state", "detail", "distribution", "version", "installed_version", "users")
        return [{field: getattr(each, field) for field in fields} for each in self.manager.plugins()]

    def errors(self) -> list[str]:
        return [f"{type(error).__name__}: {error}" for error in self.manager.errors()]

    def modules(self, prefix: str) -> list[str]:
        return sorted(name for name in sys.modules if name.partition(".")[0] == prefix)

    def run(self, code: str) -> Any:
        """Do something to the process from inside."""
        scope: dict[str, Any] = {"host": self, "threading": threading}
        exec(code, scope)
        return scope.get("result")


def _spec(volume: str, driver: str) -> Spec:
    source = FlexVolumeSource(driver=driver, options={"size": "4Mi"})
    return Spec.from_volume(Volume(name=volume, flex_volume=source))


def main() -> None:
    host = Host(sys.argv[1])
    print(json.dumps({"ok": "ready"}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(host, request.pop("do"))(**request)}
        except BaseException as error:
            traceback.print_exc()
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


main()
