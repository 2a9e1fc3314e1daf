"""How to make an operation take a step: what to prepare, and what then triggers it, for every step that there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from storm.actions import Actions
from storm.invariants import rest
from storm.kept import KeptMounts
from storm.place import until
from storm.steps import Step
from storm.wishes import driver_objects
from storm.world import World
from volumehost.api.objects import CSIDriver
from volumehost.mount import syscalls
from volumehost_csi_kit.fake import Rule


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Recipe:
    """``prepare`` is done while an agent works, and everything ``rests`` then, where it is given. ``trigger`` makes
    the operation due: while no agent runs, or while the one that is to die does (not so with ``before``: then it is too
    late). ``after`` puts things right again.
    """

    trigger: Callable[[], object] = _nothing
    prepare: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    before: bool = False
    rests: bool = True


class Cook:
    """Recipes for one world."""

    def __init__(self, world: World, actions: Actions, kept: KeptMounts) -> None:
        self._world = world
        self._actions = actions
        self._kept = kept

    def recipe(self, step: Step, count: int) -> Recipe:
        """For the ``count``-th time that the step is taken in one life of the agent."""
        special = {
            Step("volume_attach", "detach"): self._detach_what_needs_no_attachment,
            Step("volume_mount", "undo-lost-mount"): lambda n: self._lost_mounts("volume_mount", "/mount", n),
            Step("volume_mount", "undo-lost-device"): self._lost_devices,
            Step("volume_mount", "undo-other-device"): self._other_devices,
            Step("map_volume", "undo-lost-mount"): lambda n: self._lost_mounts("map_volume", "/publish/", n),
            Step("volume_mount", "expand"): lambda n: self._grown_before("fs", n),
            Step("map_volume", "expand"): lambda n: self._grown_before("block", n),
            Step("volume_fs_resize", "expand"): self._grown,
        }
        if step in special:
            return special[step](count)
        if step.operation in ("volume_mount", "map_volume", "volume_attach"):
            return Recipe(lambda: self._pod(step.operation, count))
        return self._ended(step.operation, count)

    def _pod(self, operation: str, count: int) -> str:
        block = operation in ("map_volume", "unmap_volume", "unmap_device")
        kinds = ("fake-block", "loop-block") if block else ("fake", "loop")
        return self._actions.new_pod(*((kinds * count)[:count])).name

    def _ended(self, operation: str, count: int) -> Recipe:
        """A pod goes: its volumes are taken from it, then from the node."""
        names: list[str] = []
        return Recipe(
            prepare=lambda: names.append(self._pod(operation, count)), trigger=lambda: self._actions.end(names[-1])
        )

    def _grown(self, count: int) -> Recipe:
        """Claims are asked to be more while a pod uses them."""
        claims: list[str] = []

        def prepare() -> None:
            pod = self._actions.new_pod(*["loop"] * count)
            claims.extend(volume.claim for volume in pod.volumes)

        def trigger() -> None:
            for name in claims:
                self._actions.grow(name)

        return Recipe(trigger, prepare)

    def _grown_before(self, what: str, count: int) -> Recipe:
        """A pod comes to claims that have grown while nobody used them; what is on them follows when it is mounted."""
        claims: list[str] = []

        def prepare() -> None:
            pod = self._actions.new_pod(*["loop" if what == "fs" else "fake-block"] * count)
            claims.extend(volume.claim for volume in pod.volumes)
            self._rest()
            self._actions.end(pod.name)
            self._rest()
            before = {name: self._capacity(name) for name in claims}
            for name in claims:
                self._actions.grow(name)
            until(lambda: all(self._capacity(name) != before[name] for name in claims), "the volumes have grown")

        return Recipe(lambda: self._actions.new_pod(claims=tuple(claims)), prepare)

    def _capacity(self, name: str) -> str:
        volume = self._world.objects.claims()[name].spec.volume_name or ""
        return self._world.objects.volumes()[volume].spec.capacity["storage"]

    def _lost_mounts(self, operation: str, which: str, count: int) -> Recipe:
        """Somebody unmounts what a pod has; the fake driver goes on counting it as published."""
        names: list[str] = []

        def trigger() -> None:
            paths = self._world.expected().mounts_of[names[0]]
            self._kept.forget(names[0])
            for path in paths:
                if path.endswith(which) or which in path.partition("/volumeDevices")[2]:
                    syscalls.umount2(path, 0)

        kind = "fake" if operation == "volume_mount" else "fake-block"
        return Recipe(trigger, lambda: names.append(self._actions.new_pod(*[kind] * count).name), before=True)

    def _lost_devices(self, count: int) -> Recipe:
        """Somebody unmounts what a pod has and what the node has for it."""
        names: list[str] = []

        def trigger() -> None:
            wanted = self._world.expected().mounts_of[names[0]]
            self._kept.forget(names[0])
            for mount in reversed(self._world.place.mounts()):
                if mount.path in wanted:
                    syscalls.umount2(mount.path, 0)

        return Recipe(trigger, lambda: names.append(self._actions.new_pod(*["fake"] * count).name), before=True)

    def _other_devices(self, count: int) -> Recipe:
        """Claims whose pod goes while the driver cannot unstage; the next one wants them with another group."""
        claims: list[str] = []

        def prepare() -> None:
            pod = self._actions.new_pod(*["fake"] * count, groups=(None,))
            claims.extend(volume.claim for volume in pod.volumes)
            self._rest()
            before = len(self._world.fake.calls("NodeUnstageVolume"))
            self._world.fake.script(Rule("NodeUnstageVolume", code="UNAVAILABLE", times=None))
            self._actions.end(pod.name)
            self._world.fake.wait_for("NodeUnstageVolume", before + count, ended=True)

        def trigger() -> None:
            self._world.fake.clear_script()
            self._actions.new_pod(claims=tuple(claims), groups=(2000,))

        return Recipe(trigger, prepare, before=True, rests=False)

    def _detach_what_needs_no_attachment(self, _count: int) -> Recipe:
        """The driver's object says from now on that nothing has to be attached, while something is being attached."""
        names: list[str] = []

        def prepare() -> None:
            self._rest()  # others that are to be attached are so
            before = len(self._world.fake.calls("ControllerPublishVolume"))
            self._world.fake.script(Rule("ControllerPublishVolume", code="UNAVAILABLE", times=None))
            names.append(self._actions.new_pod("fake").name)
            self._world.fake.wait_for("ControllerPublishVolume", before + 1, ended=True)

        def after() -> None:
            self._world.fake.clear_script()
            self._actions.end(names[-1])
            self.attaching_is_required(required=True)  # others are staged with what attaching told, and stay so
            self._rest()

        return Recipe(lambda: self.attaching_is_required(required=False), prepare, after, before=True, rests=False)

    def _rest(self) -> None:
        rest(self._world)

    def attaching_is_required(self, *, required: bool) -> None:
        """Replace the fake driver's object."""
        store = self._world.objects.store
        (driver,) = [each for each in driver_objects(attach=required) if each["kind"] == "CSIDriver"]
        store.delete(CSIDriver, driver["metadata"]["name"])
        store.create(driver)
