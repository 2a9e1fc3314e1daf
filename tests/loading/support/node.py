"""A running volume manager: takes pods, one JSON request a line, on stdin and stdout."""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from volumehost import VolumeManager


class Node:
    """The manager; each public method is a request."""

    def __init__(self, manager: VolumeManager) -> None:
        self._manager = manager

    def mount(self, pod: str, driver: str) -> str:
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod},
            "spec": {
                "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "work", "mountPath": "/work"}]}],
                "volumes": [{"name": "work", "flexVolume": {"driver": driver, "options": {"size": "4Mi"}}}],
            },
        }
        status = self._manager.mount_pod(manifest, timeout=20, attempts=1)
        return status.uid

    def unmount(self, pod: str) -> None:
        self._manager.unmount_pod(pod, timeout=20)

    def states(self) -> dict[str, list[str]]:
        return {pod.name: [volume.state for volume in pod.volumes] for pod in self._manager.status()}

    def plugins(self) -> list[dict[str, Any]]:
        fields = ("name", "state", "detail", "distribution", "version", "installed_version", "users")
        return [{field: getattr(each, field) for field in fields} for each in self._manager.plugins.plugins()]


def main() -> None:
    with VolumeManager(sys.argv[1], node_name="test") as manager:
        node = Node(manager)
        print(json.dumps({"ok": "ready"}), flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"ok": getattr(node, request.pop("do"))(**request)}
            except Exception as error:
                traceback.print_exc()
                answer = {"error": type(error).__name__, "message": str(error)}
            print(json.dumps(answer), flush=True)


main()
