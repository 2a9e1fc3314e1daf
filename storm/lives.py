"""Lives of volumes in which one call goes wrong: a claim, pods that use it, and what happens to both meanwhile.

A life is a story: a generator that acts and yields what it waits for. Hundreds are told at the same time, by one thread
that looks at everything once and then asks each of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storm.faults import GROWS, SETS_UP, TAKES_DOWN, Fault
from storm.wishes import Pod, Volume, claim_spec
from volumehost.errors import VolumeHostError

if TYPE_CHECKING:
    from storm.calls import Asked
    from storm.driver_world import DriverWorld, View

#: What becomes of the pod while the call goes wrong.
STAYS, BEFORE, DURING, AFTER, AGAIN = "stays", "goes before", "goes during", "goes after", "goes, another comes"


def fates_of(call: str) -> tuple[str, ...]:
    """Those that make a difference. A volume is taken down because its pod goes: there it is the next pod's fate."""
    if call == "DeleteVolume":
        return (BEFORE,)
    return (BEFORE, DURING, AFTER, AGAIN) if call in TAKES_DOWN else (STAYS, BEFORE, DURING, AFTER, AGAIN)


@dataclass(frozen=True)
class Wait:
    """What a story waits for."""

    what: str
    condition: Callable[[View], bool]


@dataclass
class Life:
    """One volume. ``call`` goes wrong as ``fault`` says, and the pod has the ``fate``."""

    world: DriverWorld
    number: int
    driver: str
    call: str
    fault: Fault
    fate: str
    mode: str = "Filesystem"
    waits_for: Wait | None = None
    ended: bool = False
    problems: list[str] = field(default_factory=list)
    #: What the driver is asked to call the volume, and what it then calls it.
    volume_name: str = ""
    handle: str = ""
    began: float = 0.0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Of the claim and the first pod."""
        return f"life-{self.number}"

    def __str__(self) -> str:
        return f"{self.name} ({self.call} {self.fault.name}, pod {self.fate}, {self.mode})"

    # --- what it does -----------------------------------------------------------------------------------------------

    def story(self) -> Iterator[Wait]:
        """The whole life."""
        self._make_claim()
        if self.call in SETS_UP:
            yield from self._setting_up()
        elif self.call in GROWS:
            yield from self._growing()
        else:
            yield from self._taking_down()
        if self.fate in (STAYS, AGAIN):
            pod = self.name if self.fate == STAYS else f"{self.name}-again"
            yield self._mounted(pod)
            self.end_pod(pod)
        yield self._pods_gone()
        self.world.objects.delete_claim(self.name)
        yield Wait(
            "the volume is gone", lambda view: self.name not in view.claims and self.volume_name not in view.volumes
        )

    def _setting_up(self) -> Iterator[Wait]:
        self.break_call(1 if self.fate == STAYS else 3)
        self.want_pod(self.name)
        if self.fate == BEFORE:
            self.end_pod(self.name)
            return
        yield self._called(ended=self.fate == AFTER)
        yield from self._fate()

    def _growing(self) -> Iterator[Wait]:
        self.want_pod(self.name)
        yield self._mounted(self.name)
        self.break_call(1 if self.fate == STAYS else 3)
        self.world.objects.grow_claim(self.name, "32Mi")
        if self.fate == BEFORE:
            self.end_pod(self.name)
            return
        yield self._called(ended=self.fate == AFTER)
        yield from self._fate()

    def _taking_down(self) -> Iterator[Wait]:
        """The pod goes in any case; here it is the fate of the next one."""
        self.want_pod(self.name)
        yield self._mounted(self.name)
        self.break_call(2)
        self.end_pod(self.name)
        if self.call == "DeleteVolume":
            yield self._pods_gone()
            self.world.objects.delete_claim(self.name)
        elif self.fate != BEFORE:
            yield self._called(ended=self.fate == AFTER)
            self.want_pod(f"{self.name}-again")
            if self.fate != AGAIN:
                self.end_pod(f"{self.name}-again")

    def _fate(self) -> Iterator[Wait]:
        if self.fate == STAYS:
            return
        self.end_pod(self.name)
        if self.fate == AGAIN:
            self.want_pod(f"{self.name}-again")
        yield from ()

    # --- what it is made of -----------------------------------------------------------------------------------------

    def _make_claim(self) -> None:
        spec = {**claim_spec("fake"), "storageClassName": self.driver.partition(".")[0], "volumeMode": self.mode}
        metadata = {"name": self.name, "namespace": "default"}
        made = self.world.objects.store.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        )
        self.volume_name = f"pvc-{made.metadata.uid}"
        self.handle = f"vol-{hashlib.sha256(self.volume_name.encode()).hexdigest()[:16]}"

    def want_pod(self, name: str) -> None:
        """A pod that uses the claim."""
        kind = "fake-block" if self.mode == "Block" else "fake"
        self.world.objects.create(Pod(name, (Volume("data", kind, self.name),)).manifest(""))

    def end_pod(self, name: str) -> None:
        """By the word that its workload is over."""
        self.world.objects.end_pod(name)

    def break_call(self, times: int) -> None:
        """From now on the call goes wrong so often; a driver dies once."""
        subject = self.volume_name if self.call == "CreateVolume" else self.handle
        self.world.script(self, self.fault.of(self.call, subject, 1 if self.fault.dies else times))

    # --- what it waits for ------------------------------------------------------------------------------------------

    def _called(self, *, ended: bool) -> Wait:
        def condition(view: View) -> bool:
            return any(call.name == self.call and (call.code or not ended) for call in self.calls(view))

        return Wait(f"{self.call} has {'failed' if ended else 'begun'}", condition)

    def _mounted(self, pod: str) -> Wait:
        def condition(view: View) -> bool:
            found = view.pods.get(pod)
            return found is not None and view.target(found.metadata.uid, self.volume_name, self.mode) in view.mounts

        return Wait(f"pod {pod} is mounted", condition)

    def _pods_gone(self) -> Wait:
        names = (self.name, f"{self.name}-again")
        return Wait("the pods are gone", lambda view: not any(name in view.pods for name in names))

    def calls(self, view: View) -> list[Asked]:
        """About this volume, in the order of their beginning."""
        log = view.logs[self.driver]
        return [*log.by_subject.get(self.volume_name, ()), *log.by_subject.get(self.handle, ())]

    def step(self, story: Iterator[Wait], view: View) -> None:
        """Go on with the story, if what it waits for has come true."""
        if self.waits_for is not None and not self.waits_for.condition(view):
            return
        try:
            self.waits_for = next(story)
        except StopIteration:
            self.ended = True
        except VolumeHostError as error:
            self.problems.append(f"{self}: {error}")
            self.ended = True
