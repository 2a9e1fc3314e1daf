"""Status read from the root directory without its lock: journal, API store and mount table."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from volumehost.errors import VolumeHostError
from volumehost.hosts.layout import Layout
from volumehost.hosts.lock import lock_holder
from volumehost.hosts.root_dir import resolve_root_dir
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.journal.format import (
    FAILED,
    LOST,
    MOUNTED,
    MOUNTING,
    UNMOUNTED,
    UNMOUNTING,
    JournalContents,
    text_of,
    texts_of,
)
from volumehost.node.journal.journal import read_boot_id, read_journal
from volumehost.node.populating.pods import UsedVolumes, used_volumes, workload_has_ended
from volumehost.node.status.records import PodStatus, VolumeStatus, pod_state, waits_for_word

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What a root directory holds. ``manager_pid``: the process that works on it, None when nobody does.

    ``notes``: what should be known before the rest is believed (a damaged journal, an unreadable store).
    """

    root_dir: str
    pods: tuple[PodStatus, ...]
    manager_pid: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What a recorded state is held against: the kernel's mounts, the present boot, and whether a manager works.

    ``unrecorded``: the uids of pods that the journal does not know, and whose directories hold volumes all the same.
    """

    mounted: frozenset[str]
    same_boot: bool
    at_work: bool
    now: float
    unrecorded: frozenset[str] = frozenset()

    def volume(self, name: str, record: Record) -> VolumeStatus:
        """The status of one volume from its record."""
        is_mount = record.get("is_mount")
        path = text_of(record, "path")
        mounted = (text_of(record, "mount") or path) in self.mounted if is_mount else None
        state = self._state(record, mounted)
        running = state in ("mounting", "unmounting")
        attempts, retry_at = record.get("attempts", 0), record.get("retry_at")
        waiting = state == "failed" and self.at_work and isinstance(retry_at, (int, float))
        started = record.get("at")
        return VolumeStatus(
            volume=name,
            state=state,
            plugin=text_of(record, "plugin"),
            distribution=text_of(record, "dist"),
            version=text_of(record, "ver"),
            path=path,
            mounted=mounted,
            unique_name=text_of(record, "v"),
            operation=text_of(record, "op" if running else "failed_op") if running or record.get("err") else "",
            step=text_of(record, "step") if running else "",
            age=max(0.0, self.now - started) if running and isinstance(started, (int, float)) else None,
            attempts=attempts if isinstance(attempts, int) else 0,
            error=text_of(record, "err"),
            failed_step=text_of(record, "failed_step") if record.get("err") else "",
            retry_in=max(0.0, retry_at - self.now) if waiting and retry_at is not None else None,
            progress=text_of(record, "progress") if running else "",
            where=text_of(record, "where") if running else "",
        )

    def _state(self, record: Record, mounted: bool | None) -> str:
        state = record.get("state")
        if state == LOST or (not self.same_boot and state == MOUNTED):
            return "lost"
        if state == MOUNTED:
            return "lost" if mounted is False else "mounted"
        if state in (MOUNTING, UNMOUNTING) and self.at_work:
            return str(state)
        if state == FAILED or record.get("err"):
            return "failed"
        return "uncertain"


def read_status(root_dir: str | os.PathLike[str], *, api: ApiClient | None = None) -> NodeStatus:
    """Everything that is known of the root directory; changes nothing, and waits for nobody.

    :param api: the API; by default the embedded store in the root directory, if there is one.
    :raises RootDirectoryError: the path is not canonical, or the journal cannot be read.
    """
    root = resolve_root_dir(os.fspath(root_dir))
    layout = Layout(root)
    journal = read_journal(layout.journal_file())
    notes = list(journal.notes) if journal.exists else []
    pods: list[Pod] = []
    try:
        pods = _pods(layout, api)
    except VolumeHostError as error:
        notes.append(f"the pods cannot be read: {error}")
    pid = lock_holder(root)
    witnesses = Witnesses(
        mounted=frozenset(mount.path for mount in read_mount_table()),
        same_boot=not journal.boot_id or journal.boot_id == read_boot_id(),
        at_work=pid is not None,
        now=time.time(),
        unrecorded=_unrecorded(layout, journal, pods) if pid is None else frozenset(),
    )
    found = recorded_status(journal, pods, witnesses)
    return NodeStatus(root, tuple(found), pid, tuple(notes))


def _unrecorded(layout: Layout, journal: JournalContents, pods: list[Pod]) -> frozenset[str]:
    """Of which pods a damaged or lost journal tells nothing, and the directories something (BR-57)."""
    known = {uid for _, uid in journal.entries}
    return frozenset(
        pod.metadata.uid
        for pod in pods
        if pod.metadata.uid not in known and _has_volumes(layout.pod_volumes_dir(pod.metadata.uid))
    )


def _has_volumes(directory: str) -> bool:
    """By names alone: what is mounted there need not answer."""
    with contextlib.suppress(OSError):
        return any(os.listdir(f"{directory}/{plugin}") for plugin in os.listdir(directory))
    return False


def recorded_status(journal: JournalContents, pods: list[Pod], witnesses: Witnesses) -> list[PodStatus]:
    """One record for each pod in the API, and for each that only the journal knows."""
    by_pod: dict[str, list[Record]] = {}
    of_pods: dict[str, Record] = {}
    for (volume, uid), record in journal.entries.items():
        if volume and uid:
            by_pod.setdefault(uid, []).append(record)
        elif uid:
            of_pods[uid] = record
    found = []
    for pod in pods:
        uid = pod.metadata.uid
        left = devices_left(journal, uid)
        status = _of_pod(pod, by_pod.pop(uid, []), of_pods.get(uid, {}), witnesses, has_devices=bool(left))
        found.append(replace(status, note=status.note or "; ".join(_device_line(*each) for each in left.items())))
    for uid, records in by_pod.items():
        volumes = tuple(witnesses.volume(text_of(record, "inner"), record) for record in records)
        state = pod_state(volumes, ending=bool(of_pods.get(uid, {}).get("ended")))
        names = text_of(records[0], "ns"), text_of(records[0], "pod")
        found.append(PodStatus(*names, uid, state, volumes, note="the pod is not in the API"))
    return sorted(found, key=lambda status: (status.namespace, status.name, status.uid))


def devices_left(journal: JournalContents, uid: str) -> dict[str, Record]:
    """Volumes that the pod used and has ended with, that no pod uses now, and that are not off the node (BR-48)."""
    entries = journal.entries
    found: dict[str, Record] = {}
    if entries.get(("", uid), {}).get("ended"):
        for name in texts_of(entries.get(("", uid), {}), "volumes"):
            record = entries.get((name, ""), {})
            there = record.get("att") or record.get("dev") not in (None, UNMOUNTED, FAILED)
            if there and not any(volume == name and user for volume, user in entries):
                found[name] = record
    return found


def _device_line(name: str, record: Record) -> str:
    error = text_of(record, "err")
    return f"volume {name} is still on the node{f', last error: {error}' if error else ''}"


def _of_pod(pod: Pod, records: list[Record], of_pod: Record, witnesses: Witnesses, *, has_devices: bool) -> PodStatus:
    used = used_volumes(pod)
    problems = of_pod.get("problems", {})
    by_name: dict[str, Record] = {}
    for record in records:
        for name in record.get("outer") or [text_of(record, "inner")]:
            by_name[str(name)] = record
    volumes = []
    for volume in pod.spec.volumes:
        known = by_name.pop(volume.name, None)
        if known is not None:
            volumes.append(witnesses.volume(volume.name, known))
        elif volume.name not in used:
            volumes.append(VolumeStatus(volume.name, "unused"))
        elif volume.name in problems:
            volumes.append(VolumeStatus(volume.name, "pending", error=str(problems[volume.name])))
        elif pod.metadata.uid in witnesses.unrecorded:
            volumes.append(VolumeStatus(volume.name, "uncertain"))
        else:
            volumes.append(VolumeStatus(volume.name, "not-mounted"))
    volumes += [witnesses.volume(name, record) for name, record in by_name.items()]
    if used.selinux:
        volumes = _with_selinux(volumes, used, records)
    ending = has_devices or (bool(records) and (bool(of_pod.get("ended")) or workload_has_ended(pod)))
    state = pod_state(tuple(volumes), ending=ending)
    note = waits_for_word(pod, in_use=bool(records) and not ending)
    return PodStatus(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, state, tuple(volumes), note)


def _with_selinux(volumes: list[VolumeStatus], used: UsedVolumes, records: list[Record]) -> list[VolumeStatus]:
    from volumehost.mount.selinux import SELinux
    from volumehost.node.workloads.selinux_words import mounted_with, with_selinux

    labels = {text_of(record, "v"): text_of(record, "sel") for record in records}

    def told(volume: VolumeStatus) -> VolumeStatus:
        return replace(volume, selinux=mounted_with(labels.get(volume.unique_name, "")))

    return with_selinux(volumes, used, told, enabled=SELinux().enabled())


def _pods(layout: Layout, api: ApiClient | None) -> list[Pod]:
    from volumehost.api.objects import Pod

    if api is not None:
        return api.list(Pod).items
    if not os.path.exists(layout.store_file()):
        return []
    from volumehost.api.store import EmbeddedStore

    store = EmbeddedStore(layout.store_file())
    try:
        return store.list(Pod).items
    finally:
        store.close()
