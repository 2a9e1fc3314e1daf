"""The host on an API server: lists against the ``kubernetes`` client's, requests that are made, and how fast it acts.

The server is the fake one of ``volumehost.testing``, in this process; what is measured is in processes of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from bench.cluster_node import NODE, USER, ClusterNode
from bench.csi import tmpfs
from bench.measuring import Figure, environment
from volumehost.api.kubernetes import KubernetesClient, connect
from volumehost.api.objects import Pod
from volumehost.testing.api_server import ApiServer, Rule

PODS = 5_000
LIST_ROUNDS = 5
MOUNTS = 20
EVENTS = 25
REFUSED_SECONDS = 60.0

_MEASURE = """
import json, sys, time

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

def measure(read):
    # The connection is there, and what is imported with the first object: that is not what is asked for.
    read(1)
    before, start = resident(), time.process_time()
    kept = read(None)
    seconds = time.process_time() - start
    assert len(kept) == int(sys.argv[2]), len(kept)
    print(json.dumps([seconds, resident() - before]))
"""
_OURS = """
from volumehost.api.kubernetes import KubernetesClient, connect
from volumehost.api.objects import Node, Pod
client = connect(sys.argv[1])
measure(lambda count: client.list(Pod if count is None else Node).items)
"""
_TYPED = """
from kubernetes import client, config
config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
measure(lambda count: core.list_pod_for_all_namespaces(limit=count).items)
"""


def figures() -> Iterator[Figure]:
    """The rows, in the order of what they cost."""
    yield from _lists()
    with tmpfs() as base, ApiServer(history=100_000) as server, ClusterNode(server, base) as node:
        yield _event_to_action(node, base)
        yield _requests_per_pod(node)
        yield _requests_while_refused(node)


# --- lists ------------------------------------------------------------------------------------------------------------


def _lists() -> Iterator[Figure]:
    ours: list[tuple[float, float]] = []
    typed: list[tuple[float, float]] = []
    with ApiServer() as server, tempfile.TemporaryDirectory() as directory:
        server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        for number in range(PODS):
            server.objects.put(_ordinary_pod(number))
        config = server.kubeconfig(f"{directory}/kubeconfig")
        for _ in range(LIST_ROUNDS):
            ours.append(_measured(_OURS, config))
            typed.append(_measured(_TYPED, config))
    seconds, bytes_kept = (statistics.median(column) for column in zip(*ours, strict=True))
    typed_seconds, typed_bytes = (statistics.median(column) for column in zip(*typed, strict=True))
    anchor = "the kubernetes client's typed list"
    yield Figure(f"CPU to list and decode {PODS:,} pods", seconds, typed_seconds, anchor, 0.25, 0.1)
    mib = 1 << 20
    yield Figure("memory for the same, MiB", bytes_kept / mib, typed_bytes / mib, anchor, 0.3, 0.15, unit="")


def _measured(program: str, config: str) -> tuple[float, float]:
    command = [sys.executable, "-c", _MEASURE + program, config, str(PODS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment())
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, resident = json.loads(done.stdout)
    return seconds, resident


def _ordinary_pod(number: int) -> dict[str, Any]:
    """As a controller makes it and a kubelet reports on it: about three kilobytes."""
    container = {
        "name": "app",
        "image": "registry.example.com/team/app:1.2.3",
        "args": ["--listen=:8080", f"--shard={number}"],
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(6)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "config", "mountPath": "/etc/app", "readOnly": True},
        ],
    }
    conditions = [
        {"type": each, "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z"}
        for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    running = {"name": "app", "ready": True, "restartCount": 0, "image": "app", "imageID": "sha256:" + 64 * "0"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": f"uid-{number}", "controller": True}
    tolerated = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{number}",
            "namespace": f"team-{number % 50}",
            "labels": {"app": "app", "pod-template-hash": f"{number:x}", "team": f"team-{number % 50}"},
            "annotations": {"checksum/config": f"{number:064x}"},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": f"worker-{number % 100}",
            "containers": [container],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}},
                {"name": "config", "configMap": {"name": "app"}},
            ],
            "tolerations": [tolerated],
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1", "containerStatuses": [running]},
    }


# --- the agent --------------------------------------------------------------------------------------------------------


def _event_to_action(node: ClusterNode, base: str) -> Figure:
    """From the pod's being there to its directory: beyond the moment at which a bare watch has delivered it."""
    late: list[float] = []
    with connect(node.server.kubeconfig(f"{base}/watcher")) as client:
        for number in range(EVENTS):
            watcher = _BareWatch(client, f"quick-{number}")
            watching = _watches(node.server)
            watcher.start()
            while _watches(node.server) == watching:
                time.sleep(0.001)
            uid = node.start_pod(watcher.pod, {"emptyDir": {"medium": "Memory"}})
            acted = node.wait_for_path(f"pods/{uid}")
            watcher.join()
            late.append(acted - watcher.delivered)
    name = "event to first action, beyond the bare watch"
    return Figure(name, max(0.0, statistics.median(late)), 0.050, "50 ms", 1.0, 0.1)


class _BareWatch(threading.Thread):
    """Waits for one pod to be told; ``delivered`` is when it was."""

    def __init__(self, client: KubernetesClient, pod: str) -> None:
        super().__init__()
        self.pod = pod
        self.delivered = 0.0
        self._client = client
        self._version = client.list(Pod).resource_version

    def run(self) -> None:
        for event in self._client.watch(Pod, resource_version=self._version, timeout=30):
            if event.object.metadata.name == self.pod:
                self.delivered = time.perf_counter()
                return


def _watches(server: ApiServer) -> int:
    return server.requests.count(verb="watch", resource="pods", user="admin")


def _requests_per_pod(node: ClusterNode) -> Figure:
    for number in range(MOUNTS + 1):
        node.attached_volume(f"claim-{number}")
    _mounted(node, MOUNTS)  # warm: what is asked for once is not counted
    before = node.server.requests.count(user=USER)
    for number in range(MOUNTS):
        _mounted(node, number)
    made = node.server.requests.count(user=USER) - before
    return Figure("requests per pod mounted, one attached CSI volume", made / MOUNTS, 1.0, "1 write", 3.0, 1.0, unit="")


def _mounted(node: ClusterNode, number: int) -> None:
    uid = node.start_pod(f"pod-{number}", {"persistentVolumeClaim": {"claimName": f"claim-{number}"}})
    node.wait_for_mount(uid, "kubernetes.io~csi", f"claim-{number}")


def _requests_while_refused(node: ClusterNode) -> Figure:
    node.server.faults.add(Rule(user=USER, code=503, times=None))
    node.server.close_watches()
    before, start = node.server.requests.count(user=USER), time.monotonic()
    threading.Event().wait(REFUSED_SECONDS)
    made, seconds = node.server.requests.count(user=USER) - before, time.monotonic() - start
    name = "requests a second while the API server refuses everything"
    return Figure(name, made / seconds, 1.0, "1 a second", 1.0, 0.2, unit="")
