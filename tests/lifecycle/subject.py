"""The driver under test, and the program that uses it as a user would: a process for each command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = str(Path(sys.executable).with_name("volumehost"))
MIB = 1 << 20


HOST = """
import signal, sys
from volumehost import VolumeManager
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with VolumeManager(sys.argv[1]) as manager:
    manager.drivers.start()
    manager.drivers.driver(sys.argv[2], timeout=60)
    while True:
        signal.pause()
"""


@dataclass(frozen=True)
class Subject:
    """A CSI driver: its name, what it can do, and where it serves ("" for one that is installed here).

    ``namespace`` is the mount namespace that it mounts in, "" for that of the tests.
    """

    name: str
    plugin: frozenset[str]
    controller: frozenset[str]
    node: frozenset[str]
    endpoint: str = ""
    namespace: str = ""
    inline: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether it is the loop driver, which the host starts."""
        return not self.endpoint

    def needs(self, service: str, capability: str) -> str:
        """Why a test cannot run, "" when it can."""
        return "" if capability in getattr(self, service) else f"{self.name} has no {capability}"


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Machine:
    """One root directory, and the commands on it."""

    root: Path
    work: Path
    subject: Subject
    environment: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def try_(self, *arguments: str, stdin: str | None = None, timeout: float = 100) -> Done:
        """Run ``volumehost`` and return how it ended."""
        done = subprocess.run(
            self._there(PROGRAM, *arguments),
            input=stdin.encode() if stdin is not None else None,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=dict(self.environment),
            cwd=self.work,
            timeout=timeout,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return Done(done.returncode, out, err)

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 100) -> Done:
        """Run ``volumehost``, which has to work."""
        done = self.try_(*arguments, stdin=stdin, timeout=timeout)
        assert done.code == 0, f"volumehost {' '.join(arguments)}\n{done.out}\n{done.err}"
        return done

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start ``volumehost`` and return at once; the fixture ends it."""
        return self._start(PROGRAM, *arguments)

    def host(self, driver: str) -> subprocess.Popen[bytes]:
        """A host that needs the driver, and stays; the fixture ends it."""
        return self._start(sys.executable, "-c", HOST, str(self.root), driver)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self._there(*command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(self.environment),
            cwd=self.work,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what was started and still runs."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(30)

    def apply(self, *objects: Mapping[str, Any]) -> Done:
        """Put objects into the API."""
        return self("apply", "-f", "-", stdin=_list_of(objects))

    def mount(self, pod: Mapping[str, Any], *options: str) -> dict[str, dict[str, Any]]:
        """Mount a pod; volume name to what is told of it."""
        done = self("mount", "-f", "-", "-o", "json", "--timeout", "60s", *options, stdin=json.dumps(pod))
        return {volume["volume"]: volume for volume in done.json()["pods"][0]["volumes"]}

    def unmount(self, name: str) -> None:
        """Take a pod's volumes away."""
        self("unmount", name, "--timeout", "60s")

    def get(self, kind: str, name: str = "") -> Any:
        """An object as the API has it, or all of a kind."""
        done = self("get", kind, *([name] if name else []), "-o", "json")
        return done.json() if name else done.json()["items"]

    def shell(self, script: str, *arguments: str) -> str:
        """Run a shell script where the mounts are; its output."""
        done = subprocess.run(
            self._there("sh", "-euc", script, "sh", *arguments),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def mounts(self) -> list[str]:
        """Mount points below the root directory."""
        table = self.shell("cat /proc/self/mountinfo")
        paths = [line.split()[4] for line in table.splitlines()]
        return [path for path in paths if path.startswith(f"{self.root}/")]

    def drivers_running(self, *, ready: bool = False) -> list[int]:
        """Process ids of this root directory's supervised drivers; only of those that serve already, for ``ready``."""
        found = self("drivers", "list", "-o", "json").json()["drivers"]
        return [each["pid"] for each in found if each["pid"] and (each["state"] == "ready" or not ready)]

    def left_behind(self) -> list[str]:
        """What must not be there when every pod and claim is gone."""
        left = [f"mount {path}" for path in self.mounts()]
        left += [f"pod directory {name}" for name in os.listdir(self.root / "pods")]
        left += [f"attachment {each['metadata']['name']}" for each in self.get("volumeattachments")]
        left += [f"volume {each['metadata']['name']}" for each in self.get("pv")]
        left += [f"claim {each['metadata']['name']}" for each in self.get("pvc")]
        left += [f"loop device {line}" for line in self.shell("losetup -a").splitlines() if str(self.root) in line]
        staging = self.root / "plugins" / "kubernetes.io" / "csi"
        if staging.is_dir():
            left += [
                f"directory {path.relative_to(self.root)}"
                for path in staging.rglob("*")
                if path.name in {"globalmount", "vol_data.json"} or path.parent.name in {"staging", "publish"}
            ]
        return left

    def _there(self, *command: str) -> list[str]:
        """The command, started where the driver mounts."""
        namespace = self.subject.namespace
        enter = ["nsenter", f"--mount={namespace}", f"--wd={self.work}", "--"] if namespace else []
        return [*enter, *command]


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """Wait until it is true; returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds:g} s until {what}"
        time.sleep(0.02)


def storage_class(subject: Subject, name: str = "disk", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": subject.name,
        "allowVolumeExpansion": True,
        **fields,
    }


def csi_driver(subject: Subject, **spec: Any) -> dict[str, Any]:
    """What the host has to know of a driver that brings no object of its own."""
    attaches = "PUBLISH_UNPUBLISH_VOLUME" in subject.controller
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": subject.name},
        "spec": {"attachRequired": attaches, **spec},
    }


def claim(name: str, size: str = "64Mi", *, mode: str = "Filesystem", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disk",
            "volumeMode": mode,
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


def pod(name: str, *, claims: Sequence[str] = (), blocks: Sequence[str] = (), **volumes: Mapping[str, Any]) -> Any:
    """A pod with a volume for each claim, of the claim's name, and others as given."""
    of_claims = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in (*claims, *blocks)]
    container = {
        "name": "main",
        "image": "busybox",
        "volumeMounts": [{"name": each, "mountPath": f"/{each}"} for each in (*claims, *volumes)],
        "volumeDevices": [{"name": each, "devicePath": f"/dev/{each}"} for each in blocks],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "volumes": [*of_claims, *({"name": each, **source} for each, source in volumes.items())],
        },
    }


def _list_of(objects: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
