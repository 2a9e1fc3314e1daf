"""One agent and several drivers that do as they are told, and the lives of many volumes at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from storm.calls import CallLog, order_problems
from storm.faults import RPC_SECONDS
from storm.lives import Life, Wait
from storm.objects import Objects
from storm.place import Place
from storm.world import TOP, run_command
from volumehost.mount.mountinfo import MOUNT_TABLE, read_consistently, split_table
from volumehost.testing.agents import AgentProcess
from volumehost_csi_kit.fake import FakeDriverProcess, Rule

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
    from volumehost.api.objects import Pod as StoredPod

#: Seconds that one life may take, and one in which the agent is killed.
PATIENCE, PATIENCE_WHEN_KILLED = 60.0, 180.0
#: So often at most is an agent killed: what is begun again and again must come to an end some time.
MOST_KILLS = 15
_TICK = 0.05


@dataclass(frozen=True)
class View:
    """One look at everything."""

    root: str
    mounts: frozenset[str]
    pods: Mapping[str, StoredPod]
    claims: Mapping[str, PersistentVolumeClaim]
    volumes: Mapping[str, PersistentVolume]
    logs: Mapping[str, CallLog]

    def target(self, uid: str, volume: str, mode: str) -> str:
        """Where a volume of a pod is mounted."""
        if mode == "Block":
            return f"{self.root}/plugins/kubernetes.io/csi/volumeDevices/publish/{volume}/{uid}"
        return f"{self.root}/pods/{uid}/volumes/kubernetes.io~csi/{volume}/mount"


class DriverWorld:
    """A context manager; nothing outlives it.

    :param drivers: names of the drivers.
    """

    def __init__(self, drivers: Sequence[str]) -> None:
        self.place = Place()
        self.drivers = {
            name: FakeDriverProcess(
                f"unix://{self.place.sockets}/{number}.sock",
                f"{self.place.base}/driver-{number}",
                name=name,
                mounts="bind",
                block="loop",
            )
            for number, name in enumerate(drivers)
        }
        self.logs = {name: CallLog(f"{driver.directory}/calls.jsonl") for name, driver in self.drivers.items()}
        self.agent = AgentProcess(self.place.root, program=("-m", "storm.dying"), log_file=f"{self.place.logs}/agent")
        self.deaths = 0
        self.kills = 0
        self._objects: Objects | None = None
        self._rules: dict[str, list[tuple[Life, Rule]]] = {name: [] for name in drivers}

    def __enter__(self) -> Self:
        try:
            self.place.configure(rpc_timeout=RPC_SECONDS, create_timeout=RPC_SECONDS, attach_timeout=5)
            for driver in self.drivers.values():
                driver.start()
            self.start_agent()
            self.agent.wait_ready()
            for name, driver in self.drivers.items():
                self._register(name, driver.endpoint)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything, whatever state it is in."""
        if self._objects is not None:
            self._objects.close()
        self.agent.kill()
        for driver in self.drivers.values():
            driver.kill()
        self.place.close()

    @property
    def objects(self) -> Objects:
        """The store."""
        if self._objects is None:
            self._objects = Objects(self.place.root)
        return self._objects

    def start_agent(self) -> None:
        """Start it; does not wait until it is ready."""
        self.agent.environment = {"PYTHONPATH": TOP}
        self.agent.start()

    def _register(self, name: str, endpoint: str) -> None:
        run_command(self.place.root, "drivers", "register", name, endpoint)
        spec = {"attachRequired": True, "volumeLifecycleModes": ["Persistent"]}
        storage = {"apiVersion": "storage.k8s.io/v1"}
        self.objects.create(
            {**storage, "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec},
            {
                **storage,
                "kind": "StorageClass",
                "metadata": {"name": name.partition(".")[0]},
                "provisioner": name,
                "allowVolumeExpansion": True,
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )

    # --- faults -----------------------------------------------------------------------------------------------------

    def script(self, life: Life, rule: Rule) -> None:
        """Have a call go wrong. A driver that has died is told anew what it has not done yet."""
        self._rules[life.driver].append((life, rule))
        if self.drivers[life.driver].pid is not None:
            self.drivers[life.driver].script(rule)

    def revive(self) -> None:
        """Start what has died, as whoever supervises drivers does."""
        for name, driver in self.drivers.items():
            if driver.pid is not None:
                continue
            driver.wait()
            self.deaths += 1
            self.logs[name].follow()
            left = [(life, rule) for life, rule in self._rules[name] if not self._has_died_of(life, rule)]
            self._rules[name] = left
            driver.start()
            driver.script(*(rule for _, rule in left))

    def _has_died_of(self, life: Life, rule: Rule) -> bool:
        calls = self.logs[life.driver].by_subject.get(rule.volume_id, ())
        return any(call.name == rule.call and not call.code for call in calls)

    def be_well(self) -> None:
        """From now on no driver does anything wrong."""
        self._rules = {name: [] for name in self.drivers}
        self.revive()
        for driver in self.drivers.values():
            driver.clear_script()
            driver.release()

    @property
    def call_count(self) -> int:
        """How many calls all drivers have had."""
        return sum(log.count for log in self.logs.values())

    # --- lives ------------------------------------------------------------------------------------------------------

    def live(self, lives: Sequence[Life], *, most: int = 80, kill_every: float = 0.0) -> None:
        """Let all lives be lived, at most so many at the same time; what goes wrong is in their ``problems``.

        :param kill_every: kill the agent after so many seconds, again and again; 0 for never.
        """
        waiting = list(reversed(lives))
        under_way: list[tuple[Life, Iterator[Wait]]] = []
        patience = PATIENCE_WHEN_KILLED if kill_every else PATIENCE
        kill_at = time.monotonic() + kill_every if kill_every else float("inf")
        while waiting or under_way:
            began = time.monotonic()
            while waiting and len(under_way) < most:
                life = waiting.pop()
                life.began = began
                under_way.append((life, life.story()))
            self.revive()
            if began > kill_at and self.kills < MOST_KILLS:
                self.agent.kill()
                self.kills += 1
                self.start_agent()
                kill_at = began + kill_every
            view = self.view()
            for life, story in under_way:
                life.step(story, view)
                life.seconds = began - life.began
                if not life.ended and began - life.began > patience:
                    what = life.waits_for.what if life.waits_for is not None else "anything"
                    life.problems.append(f"{life}: waited {patience:g} s until {what}")
                    life.ended = True
            under_way = [(life, story) for life, story in under_way if not life.ended]
            time.sleep(max(0.0, began + _TICK - time.monotonic()))

    def view(self) -> View:
        """Look at everything once."""
        for log in self.logs.values():
            log.follow()
        table = split_table(read_consistently(MOUNT_TABLE))
        return View(
            self.place.root,
            frozenset(path for _, _, path in table if path.startswith(self.place.root)),
            self.objects.pods(),
            self.objects.claims(),
            self.objects.volumes(),
            self.logs,
        )

    # --- the end ----------------------------------------------------------------------------------------------------

    def left(self) -> list[str]:
        """What must not be there when every pod and claim has gone."""
        root, objects = self.place.root, self.objects
        found = [f"mount {mount.path}" for mount in self.place.mounts()]
        found += [f"pod directory {name}" for name in os.listdir(f"{root}/pods")]
        found += [f"pod {name}" for name in objects.pods()]
        found += [f"claim {name}" for name in objects.claims()]
        found += [f"PersistentVolume {name}" for name in objects.volumes()]
        found += [f"attachment of {name}" for name in objects.attached_volumes()]
        found += [f"loop device {loop.device} of {loop.backing_file}" for loop in self.place.loop_devices()]
        for place, _, files in os.walk(f"{root}/plugins/kubernetes.io/csi"):
            if place.endswith("/globalmount") or files or "/volumeDevices/staging/" in place:
                found.append(f"directory {place} with {files}")
        for name, driver in self.drivers.items():
            found += [f"volume {each} at {name}" for each in driver.state()["volumes"].values()]
        return found

    def call_problems(self, lives: Sequence[Life], *, serial: bool = True) -> list[str]:
        """Calls that came in an order that CSI does not allow."""
        view = self.view()
        return [
            f"{life}: {problem}: {[(call.name, call.code) for call in life.calls(view)]}"
            for life in lives
            for problem in order_problems(life.calls(view), serial=serial)
        ]
