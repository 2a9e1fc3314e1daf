"""Five hundred pods with two thousand volumes through the agent: how long, how much, and that nothing is left."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from storm.crew import Options
from storm.objects import Objects
from storm.place import Place, until
from storm.report import Findings
from storm.world import TOP, run_command
from volumehost.agent.client import AgentManager
from volumehost.mount.mountinfo import MOUNT_TABLE, read_consistently, split_table
from volumehost.testing.agents import AgentProcess
from volumehost_csi_kit.fake import FakeDriverProcess

DRIVER = "null.csi.example.com"
PODS = 500
#: Of each pod: two claims of a driver that only bind mounts, an emptyDir in memory, one on disk.
VOLUMES = 4
#: Every tenth pod is a static one.
_STATIC = 10
#: So long it is left alone, and with only a few pods.
_IDLE_SECONDS, _SHORTLY = 10.0, 2.0
_PATIENCE = 300.0


@dataclass
class Usage:
    """What a process takes: ``cpu`` in seconds since it began, memory in bytes."""

    cpu: float
    rss: int
    pss: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        """Now."""
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file if line[0] in "RP" and ":" in line}
        ticks = os.sysconf("SC_CLK_TCK")
        return cls((int(fields[11]) + int(fields[12])) / ticks, sizes["Rss"], sizes["Pss"], int(fields[17]))


class Scale:
    """One root directory with a great many pods."""

    def __init__(self, place: Place, findings: Findings, pods: int) -> None:
        self._place = place
        self._findings = findings
        self._pods = pods
        self._agent = AgentProcess(
            place.root,
            "--static-pods",
            place.manifests,
            log_file=f"{place.logs}/agent",
            environment={"PYTHONPATH": TOP},
            verbosity=0,
        )
        self._wanted = 3 * pods  # two published, one in memory

    def run(self, endpoint: str) -> None:
        """All of it, in order."""
        findings, agent = self._findings, self._agent
        agent.start()
        agent.wait_ready()
        empty = Usage.of(agent.pid)
        run_command(self._place.root, "drivers", "register", DRIVER, endpoint)
        objects = Objects(self._place.root)
        try:
            began = time.monotonic()
            self._make_objects(objects)
            until(lambda: self._bound(objects) == 2 * self._pods, "all claims are bound", _PATIENCE, every=0.5)
            findings.figure(
                f"write {self._pods * 2} claims and volumes, until the agent has bound them", _seconds(began)
            )
            began = time.monotonic()
            for pod in self._manifests():
                self._want(objects, pod)
            findings.figure(f"wish for {self._pods} pods with {self._pods * VOLUMES} volumes", _seconds(began))
            until(lambda: self._mounted() == self._wanted and self._told() == self._pods, "all is mounted", _PATIENCE)
            took = time.monotonic() - began
            findings.figure("until all are mounted, from the first wish", f"{took:.1f} s")
            findings.figure("  for each volume", f"{1000 * took / (self._pods * VOLUMES):.1f} ms")
            self._look(empty)
            self._restart()
            self._take_away(objects)
        finally:
            objects.close()
            agent.kill()

    # --- steps ------------------------------------------------------------------------------------------------------

    def _look(self, empty: Usage) -> None:
        """What it takes to have all that mounted."""
        findings, agent = self._findings, self._agent
        before = Usage.of(agent.pid)
        seconds = _IDLE_SECONDS if self._pods >= PODS else _SHORTLY
        time.sleep(seconds)
        after = Usage.of(agent.pid)
        findings.figure(f"CPU over {seconds:g} s at rest", f"{(after.cpu - before.cpu) / seconds:.2%} of a core")
        findings.figure("CPU until then", f"{after.cpu - empty.cpu:.1f} s")
        for name, usage in (("nothing mounted", empty), ("all mounted", after)):
            sizes = f"{usage.rss / 1e6:.1f} MB, {usage.pss / 1e6:.1f} MB"
            findings.figure(f"memory with {name}: RSS, PSS", f"{sizes}; {usage.threads} threads")
        more = (after.rss - empty.rss) / (self._pods * VOLUMES)
        findings.figure("  for each volume", f"{more / 1e3:.1f} kB")

    def _restart(self) -> None:
        """Killed, it is ready again, and knows all its volumes."""
        agent = self._agent
        agent.kill()
        before = self._place.mount_ids()
        began = time.monotonic()
        agent.start()
        agent.wait_ready()
        ready = time.monotonic() - began
        until(lambda: self._told() == self._pods, "all are told to be mounted again", _PATIENCE)
        told = time.monotonic() - began
        self._findings.figure("killed, until it is ready again", f"{ready:.1f} s")
        self._findings.figure("killed, until all are told to be mounted", f"{told:.1f} s")
        if self._place.mount_ids() != before:
            self._findings.broken.append("a restart changed mounts that were there")

    def _take_away(self, objects: Objects) -> None:
        began = time.monotonic()
        for pod in self._manifests():
            name = pod["metadata"]["name"]
            if int(name.rpartition("-")[2]) % _STATIC:
                objects.end_pod(name)
            else:
                os.unlink(f"{self._place.manifests}/{name}.json")
        until(lambda: self._mounted() == 0 and not os.listdir(f"{self._place.root}/pods"), "nothing is left", _PATIENCE)
        until(lambda: not objects.pods(), "no pod is in the store", _PATIENCE)
        took = time.monotonic() - began
        self._findings.figure("until all are unmounted, to the last directory", f"{took:.1f} s")
        self._findings.figure("  for each volume", f"{1000 * took / (self._pods * VOLUMES):.1f} ms")
        left = [mount.path for mount in self._place.mounts()]
        self._findings.broken += [f"left: {path}" for path in left]
        memory = Usage.of(self._agent.pid)
        self._findings.figure("memory after that: RSS, PSS", f"{memory.rss / 1e6:.1f} MB, {memory.pss / 1e6:.1f} MB")

    # --- what there is ----------------------------------------------------------------------------------------------

    def _mounted(self) -> int:
        prefix = f"{self._place.root}/"
        return sum(path.startswith(prefix) for _, _, path in split_table(read_consistently(MOUNT_TABLE)))

    def _bound(self, objects: Objects) -> int:
        return sum(claim.status.phase == "Bound" for claim in objects.claims().values())

    def _told(self) -> int:
        """Pods that the agent tells to be mounted."""
        with AgentManager(self._place.root, _no_api) as manager:
            return sum(status.ready for status in manager.status())

    # --- what is wished ---------------------------------------------------------------------------------------------

    def _manifests(self) -> Iterator[dict[str, Any]]:
        for number in range(self._pods):
            claims = [f"claim-{number}-{index}" for index in range(2)]
            sources: list[dict[str, Any]] = [
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                {"name": "scratch", "emptyDir": {}},
                *({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims),
            ]
            mounts = [{"name": source["name"], "mountPath": f"/{source['name']}"} for source in sources]
            container = {"name": "main", "image": "none", "volumeMounts": mounts}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"pod-{number}", "namespace": "default"},
                "spec": {"containers": [container], "volumes": sources},
            }

    def _want(self, objects: Objects, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if int(name.rpartition("-")[2]) % _STATIC:
            objects.store.create(pod)
            return
        with open(f"{self._place.base}/{name}", "w", encoding="utf-8") as file:
            json.dump(pod, file)
        os.rename(f"{self._place.base}/{name}", f"{self._place.manifests}/{name}.json")

    def _make_objects(self, objects: Objects) -> None:
        """The driver's object, and claims for volumes that are there already."""
        spec = {"attachRequired": False, "volumeLifecycleModes": ["Persistent"]}
        driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}
        objects.create(driver)
        for number in range(self._pods):
            for index in range(2):
                self._bound_claim(objects, f"claim-{number}-{index}")

    def _bound_claim(self, objects: Objects, name: str) -> None:
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        store = objects.store
        claim: Any = store.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {**common, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
            }
        )
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": claim.metadata.uid}
        store.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    **common,
                    "capacity": {"storage": "1Gi"},
                    "persistentVolumeReclaimPolicy": "Retain",
                    "csi": {"driver": DRIVER, "volumeHandle": name},
                    "claimRef": reference,
                },
            }
        )


def _no_api() -> Any:
    raise RuntimeError("only the agent is asked")


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def run(options: Options) -> Findings:
    """Once."""
    pods = options.rounds or PODS
    findings = Findings(f"Scale: {pods} pods, {pods * VOLUMES} volumes", options.seed)
    began = time.monotonic()
    with Place() as place:
        place.configure(rpc_timeout=60)
        endpoint = f"unix://{place.sockets}/null.sock"
        with FakeDriverProcess(endpoint, f"{place.base}/driver", null=True, name=DRIVER):
            try:
                Scale(place, findings, pods).run(endpoint)
            except TimeoutError as error:
                findings.broken.append(str(error))
    findings.figure("seconds", f"{time.monotonic() - began:.0f}")
    return findings
