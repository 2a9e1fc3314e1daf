"""Compares a world with what was wished: desired equals actual, and nothing is left over anywhere."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

from storm.expected import Expected
from storm.place import until
from storm.world import World
from volumehost.errors import VolumeHostError

#: What may lie directly below the root directory, for good or while processes run.
_TOP = re.compile(
    r"agent\.(sock|lock)|config\.toml|drivers|manager\.lock|plugins|plugins_registry|pod-resources|pods|reserve|tokens\.key"
    r"|node-name"
    r"|store\.sqlite3(-wal|-shm)?|store\.identity|volumes\.journal(\.damaged-\d+)?"
)
_DRIVER = re.compile(r"data|exit\.json|facts\.json|log(\.\d)?|process\.json|registered\.json|start\.lock|users\.lock")


#: Seconds until everything has come to rest after a start, at most.
REST_SECONDS = 40.0


class BrokenPromiseError(Exception):
    """The world is not as it must be; ``args`` says how."""


def rest(world: World, seconds: float = REST_SECONDS) -> None:
    """Wait until all is as wanted.

    :raises BrokenPromiseError: it is not in time; says what is not.
    """
    try:
        until(lambda: not problems(world), "all is as wanted", seconds)
    except TimeoutError:
        found = problems(world)
        if found:
            raise BrokenPromiseError(*(f"{each} (after {seconds:g} s)" for each in found)) from None


def problems(world: World) -> list[str]:
    """What is not as it must be, when everything has come to rest; [] when all is well."""
    unknown = world.learn_uids()
    if unknown:
        return [f"pod {name} is not in the store" for name in unknown]
    wanted = world.expected()
    return [
        *_objects(world, wanted),
        *_mounts(world, wanted),
        *_entries(world, wanted),
        *_loop_devices(world),
        *_drivers(world, wanted),
        *_processes(world),
        *_told(world),
    ]


def _objects(world: World, wanted: Expected) -> Iterator[str]:
    """The store holds what is wanted, and what the controllers made of it."""
    objects = world.objects
    names = {pod.stored_name for pod in world.pods.values()}
    for name, pod in objects.pods().items():
        if name not in names:
            yield f"pod {name} is still in the store, finalizers {pod.metadata.finalizers}"
    claims = set(world.claims) | {
        f"{pod.stored_name}-{volume.name}"
        for pod in world.pods.values()
        for volume in pod.volumes
        if volume.kind == "generic"
    }
    found = objects.claims()
    yield from (f"claim {name} is still in the store" for name in found if name not in claims)
    bound = {claim.spec.volume_name for claim in found.values() if claim.spec.volume_name}
    volumes = set(objects.volumes())
    yield from (
        f"claim {name} is not bound" for name in claims if name not in found or not found[name].spec.volume_name
    )
    yield from (f"PersistentVolume {name} is nobody's" for name in volumes - bound)
    attached = Counter(objects.attached_volumes())
    yield from (f"attachment of {name}, which no pod uses" for name in attached if name not in wanted.attached)
    yield from (f"{name} is used and not attached" for name in wanted.attached if name not in attached)
    yield from (f"{name} is attached {count} times" for name, count in attached.items() if count > 1)


def _mounts(world: World, wanted: Expected) -> Iterator[str]:
    """Each mount is there once, and no other."""
    found = Counter(mount.path for mount in world.place.mounts())
    yield from (f"mount at {path}, which nobody wants" for path in found if path not in wanted.mounts)
    yield from (f"nothing is mounted at {path}" for path in sorted(wanted.mounts) if path not in found)
    yield from (f"{count} mounts at {path}" for path, count in found.items() if count > 1)


def _entries(world: World, wanted: Expected) -> Iterator[str]:
    """Each directory and file is there, and no other."""
    root = world.place.root
    yield from (f"{root}/{name} is of no use" for name in os.listdir(root) if not _TOP.fullmatch(name))
    for driver in _names(f"{root}/drivers"):
        for name in _names(f"{root}/drivers/{driver}"):
            if not _DRIVER.fullmatch(name):
                yield f"{root}/drivers/{driver}/{name} is of no use"
    keep = (
        f"{root}/plugins/kubernetes.io/csi/volumeDevices/staging",
        f"{root}/plugins/kubernetes.io/csi/volumeDevices",
    )
    roots = [f"{root}/pods", f"{root}/plugins/kubernetes.io"]
    found = {path for start in roots for path in _tree(start, wanted.mounts)}
    for path in sorted(found - wanted.entries):
        if path not in keep and not _may_stay(path.removeprefix(f"{root}/plugins/kubernetes.io/csi/")):
            yield f"{path} is of no use"
    yield from (f"{path} is missing" for path in sorted(wanted.entries) if not os.path.lexists(path))


def _may_stay(path: str) -> bool:
    """Directories of a driver or of a kind, which the next volume uses again."""
    return path.count("/") == 0 or path in ("volumeDevices/staging", "volumeDevices/publish")


def _tree(path: str, mounts: set[str]) -> Iterator[str]:
    """What is below, not below mounts and not over links."""
    for name in _names(path):
        each = f"{path}/{name}"
        yield each
        if each not in mounts and "kubernetes.io~empty-dir/" not in each.partition("/volumes/")[2]:
            yield from _tree(each, mounts)


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _loop_devices(world: World) -> Iterator[str]:
    """One for each volume with a filesystem or a device of its own on this node, one to lock each pod's device."""
    devices = [volume for pod in world.pods.values() for volume in pod.volumes if volume.is_block]
    shared = {volume.claim for pod in world.pods.values() for volume in pod.volumes if volume.kind == "loop"}
    blocks = {volume.claim for volume in devices}
    alone = [v for pod in world.pods.values() for v in pod.volumes if v.kind in ("inline", "generic")]
    wanted = len(shared) + len(blocks) + len(alone) + len(devices)
    found = world.place.loop_devices()
    if len(found) != wanted:
        listed = ", ".join(f"{loop.device} {loop.backing_file or loop.label}" for loop in found)
        yield f"{len(found)} loop devices, not {wanted}: {listed}"


def _drivers(world: World, wanted: Expected) -> Iterator[str]:
    """The fake driver's books say the same, and no driver keeps a volume of nobody."""
    volumes = world.fake.state()["volumes"]
    claimed = sum(kind.startswith("fake") for kind in world.claims.values())
    if len(volumes) != claimed:
        yield f"the fake driver has {len(volumes)} volumes, not {claimed}: {sorted(volumes)}"
    for handle, volume in volumes.items():
        published, staged = wanted.published.get(handle, set()), wanted.staged.get(handle, set())
        if set(volume["published"]) != published:
            yield f"volume {handle} is published at {sorted(volume['published'])}, not at {sorted(published)}"
        if {volume["staged"]} - {""} != staged:
            yield f"volume {handle} is staged at {volume['staged']!r}, not at {sorted(staged)}"
        if bool(volume["published_nodes"]) != bool(published):
            nodes = sorted(volume["published_nodes"])
            yield f"volume {handle} is attached to {nodes}, and used at {sorted(published)}"
    images = [name for name in _names(f"{world.place.root}/drivers/loop.csi.volumehost/data/volumes") if "img" in name]
    mine = [kind for kind in world.claims.values() if kind.startswith("loop")]
    mine += [v.kind for pod in world.pods.values() for v in pod.volumes if v.kind in ("inline", "generic")]
    if len(images) != len(mine):
        yield f"the loop driver has {len(images)} images, not {len(mine)}"


def _told(world: World) -> Iterator[str]:
    """The agent says the same."""
    try:
        told = {status.name: status for status in world.status()}
    except VolumeHostError as error:
        yield f"the agent tells nothing: {error}"
        return
    wanted = {pod.stored_name for pod in world.pods.values()}
    yield from (f"the agent tells of pod {name}: {told[name].state}" for name in told if name not in wanted)
    for name in wanted:
        status = told.get(name)
        if status is None or not status.ready:
            yield f"the agent tells of pod {name}: {[v.explain() for v in status.volumes] if status else 'nothing'}"


def _processes(world: World) -> Iterator[str]:
    """At most one process of the supervised driver with its keeper, the agent, and the storm's own driver."""
    known = {world.agent.pid, world.fake.pid}
    for which in ("keeper", "driver"):
        pids = world.driver_processes(which)
        known |= set(pids)
        if len(pids) > 1:
            yield f"{len(pids)} {which} processes: {pids}"
    yield from (
        f"process {pid}: {command[:160]}" for pid, command in world.place.processes().items() if pid not in known
    )
