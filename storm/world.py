"""One root directory with an agent, drivers, pods that come and go, and what their containers write."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from storm.expected import Expected, Source, expected
from storm.ledger import Ledger
from storm.objects import Objects
from storm.place import Place
from storm.wishes import FAKE, Pod, Volume, claim, driver_objects, host_path
from volumehost.agent.client import AgentManager
from volumehost.node.status.records import PodStatus
from volumehost.testing.agents import AgentProcess
from volumehost_csi_kit.fake import FakeDriverProcess

TOP = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
_PROGRAM = ("-m", "storm.dying")

#: Deadlines of the CSI plugin in storms, in seconds.
TIMES = {"rpc_timeout": 5, "create_timeout": 5, "attach_timeout": 5, "start_timeout": 10}


def environment() -> dict[str, str]:
    """For programs that a storm starts: byte code is cached, as where it is installed."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": TOP, "PYTHONSAFEPATH": "1"}


def run_command(root: str, *arguments: str, timeout: float = 60.0) -> str:
    """Run ``volumehost`` on a root directory to its end; what it printed.

    :raises RuntimeError: it failed.
    """
    command = [sys.executable, "-m", "volumehost", *arguments, "--root-dir", root]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"volumehost {' '.join(arguments)} failed ({done.returncode}): {done.stderr}")
    return done.stdout


class World:
    """Everything that there is in one storm. A context manager; nothing outlives it.

    ``pods`` and ``claims`` (name to kind) are what is wanted now.
    """

    def __init__(self, seed: int, *, times: Mapping[str, float] = TIMES) -> None:
        self.random = random.Random(seed)
        self.place = Place()
        self.ledger = Ledger(seed)
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, str] = {}
        #: Names of pods whose subpaths somebody asked for.
        self.prepared: set[str] = set()
        self.story: list[str] = []
        self.times = dict(times)
        self._began = time.monotonic()
        self._objects: Objects | None = None
        self.agent = AgentProcess(
            self.place.root,
            "--static-pods",
            self.place.manifests,
            program=_PROGRAM,
            log_file=f"{self.place.logs}/agent",
        )
        self.fake = FakeDriverProcess(
            f"unix://{self.place.sockets}/fake.sock",
            f"{self.place.base}/fake",
            name=FAKE,
            mounts="bind",
            block="loop",
        )

    def __enter__(self) -> Self:
        """Start drivers and agent, and make what every pod needs."""
        try:
            self.place.configure(**self.times)
            os.mkdir(f"{self.place.host_data}/shared")
            self.fake.start()
            self.start_agent()
            self.agent.wait_ready()
            run_command(self.place.root, "drivers", "register", FAKE, self.fake.endpoint)
            self.objects.create(*driver_objects())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything, whatever state it is in."""
        self.let_go_of_store()
        self.agent.kill()
        self.fake.kill()
        self.place.close()

    @property
    def objects(self) -> Objects:
        """The store, opened when it is there."""
        if self._objects is None:
            self._objects = Objects(self.place.root)
        return self._objects

    def let_go_of_store(self) -> None:
        """Close the store; it is opened again when it is used."""
        if self._objects is not None:
            self._objects.close()
            self._objects = None

    def tell(self, text: str) -> None:
        """Remember what happens, for who has to find out why it ended badly."""
        self.story.append(f"{time.monotonic() - self._began:8.3f} {text}")

    # --- processes --------------------------------------------------------------------------------------------------

    def start_agent(self, variables: Mapping[str, str] | None = None) -> None:
        """Start the agent; does not wait until it is ready."""
        self.agent.environment = {"PYTHONPATH": TOP, **(variables or {})}
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        self.agent.start()

    def kill_agent(self) -> None:
        """``kill -9``."""
        self.agent.kill()

    def start_command(self, *arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start ``volumehost`` on the root directory, to be killed."""
        with open(f"{self.place.logs}/commands", "ab") as log:
            return subprocess.Popen(
                [sys.executable, *_PROGRAM, *arguments, "--root-dir", self.place.root],
                env={**environment(), **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def driver_processes(self, which: str) -> list[int]:
        """Processes of the supervised driver: ``keeper`` or ``driver``."""
        found = self.place.processes()
        keepers = [pid for pid, command in found.items() if "keeper.py" in command]
        if which == "keeper":
            return keepers
        return [pid for pid, command in found.items() if "volumehost_loop_driver" in command and pid not in keepers]

    def kill_driver(self, which: str) -> None:
        """Kill the fake driver, which is started again, or the loop driver or its keeper, which the agent sees to."""
        if which == "fake":
            self.fake.kill()
            self.fake.start()
            return
        for pid in self.driver_processes(which):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- wishes -----------------------------------------------------------------------------------------------------

    def want(self, pod: Pod) -> None:
        """The pod is wanted from now on, with its claims."""
        for volume in pod.volumes:
            if volume.claim and volume.claim not in self.claims:
                self.claims[volume.claim] = volume.kind
                self.objects.create(claim(volume.claim, volume.kind))
        self.pods[pod.name] = pod
        manifest = pod.manifest(self.place.host_data)
        if pod.static:
            self._write_manifest(pod.name, manifest)
        else:
            self.objects.create(manifest)

    def end(self, name: str) -> None:
        """The pod is wanted no more; what it alone had is gone with it."""
        pod = self.pods.pop(name)
        self.prepared.discard(name)
        if pod.static:
            os.unlink(self._manifest_file(name))
        else:
            self.objects.end_pod(name)
        for volume in pod.volumes:
            if not volume.claim and volume.kind not in ("host", "created"):
                self.ledger.forget(self.storage(pod, volume))

    def forget_claim(self, name: str) -> None:
        """The claim is wanted no more, nor what is on its volume."""
        del self.claims[name]
        self.ledger.forget(f"claim {name}")
        self.objects.delete_claim(name)

    def users(self, name: str) -> list[Pod]:
        """The pods that use a claim."""
        return [pod for pod in self.pods.values() if any(volume.claim == name for volume in pod.volumes)]

    def _manifest_file(self, name: str) -> str:
        return f"{self.place.manifests}/{name}.json"

    def _write_manifest(self, name: str, manifest: Mapping[str, object]) -> None:
        temporary = f"{self.place.base}/{name}.new"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        shutil.move(temporary, self._manifest_file(name))

    def prepare_subpaths(self, pod: Pod) -> None:
        """Ask for what the pod's containers are given, as whoever starts them does: subpaths are bound with that."""
        with AgentManager(self.place.root, lambda: self.objects.store) as manager:
            manager.container_mounts(self.objects.pods()[pod.stored_name])
        self.prepared.add(pod.name)

    def status(self) -> list[PodStatus]:
        """What the agent tells of all pods.

        :raises VolumeHostError: it tells nothing.
        """
        with AgentManager(self.place.root, lambda: self.objects.store) as manager:
            return manager.status()

    # --- what must be there -----------------------------------------------------------------------------------------

    def learn_uids(self) -> list[str]:
        """Take over which uids the pods got; the names of those that nobody has taken in yet."""
        there = self.objects.pods()
        unknown = []
        for pod in self.pods.values():
            found = there.get(pod.stored_name)
            if found is None or found.metadata.deletion_timestamp:
                unknown.append(pod.stored_name)
            else:
                pod.uid = found.metadata.uid
        return unknown

    def expected(self) -> Expected:
        """For the pods that are wanted, as far as their claims are bound."""
        pods = [pod for pod in self.pods.values() if pod.uid]
        return expected(self.place.root, self.place.host_data, pods, self.sources(pods), self.prepared)

    def sources(self, pods: Sequence[Pod]) -> dict[tuple[str, str], Source]:
        """The CSI volumes of these pods."""
        return self.objects.sources(pods)

    # --- users' data ------------------------------------------------------------------------------------------------

    def storage(self, pod: Pod, volume: Volume) -> str:
        """The key of a volume's storage in the ledger: it outlives the pod, or does not."""
        if volume.claim:
            return f"claim {volume.claim}"
        if volume.kind in ("host", "created"):
            return f"host {host_path(volume, self.place.host_data)}"
        return f"pod {pod.uid} {volume.name}"

    def write(self, pods: Sequence[Pod]) -> None:
        """Every container of these pods, all of whose volumes are there, writes one more file into each volume."""
        paths = self.expected().paths
        for pod in pods:
            for volume in pod.volumes:
                self.ledger.write(self.storage(pod, volume), paths[pod.name, volume.name])

    def data_problems(self, pods: Sequence[Pod]) -> list[str]:
        """What is not as these pods' containers wrote it."""
        paths = self.expected().paths
        found: list[str] = []
        for pod in pods:
            for volume in pod.volumes:
                key = self.storage(pod, volume)
                if self.ledger.holds(key):
                    found += self.ledger.problems(key, paths[pod.name, volume.name])
        return found
