"""One look at a root directory: everything that the witnesses say, before any of it is judged."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.hosts.layout import Layout
from volumehost.inspection.device_directories import DeviceEntry, read_devices
from volumehost.inspection.loops import LoopUse, loops_below
from volumehost.inspection.mounts import MountIndex
from volumehost.inspection.namespaces import OtherNamespaces, look_at_other_namespaces
from volumehost.inspection.pod_directories import PodEntry, read_pods
from volumehost.inspection.pod_sources import counted, read_static_pods, read_store
from volumehost.inspection.pods import JOURNAL, KnownPods, PodName
from volumehost.inspection.probes import ANSWER_SECONDS, Answer, probe
from volumehost.inspection.records import DriverRecords, read_driver_records, read_journal_quietly
from volumehost.inspection.report import RootKind
from volumehost.inspection.root import who_works_on
from volumehost.inspection.root_files import RootFiles, read_root_files
from volumehost.inspection.tree import BASES, EntryKind, Tree
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.journal.format import JournalContents, text_of
from volumehost.node.journal.journal import read_boot_id
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen. ``journal`` is None in a kubelet's directory. ``now`` is in seconds since the epoch."""

    root: str
    kind: RootKind
    boot_id: str
    at_work: str
    index: MountIndex
    pods: list[PodEntry]
    devices: list[DeviceEntry]
    journal: JournalContents | None
    known: KnownPods
    drivers: DriverRecords
    files: RootFiles
    answers: dict[str, Answer]
    loops: list[LoopUse]
    others: OtherNamespaces
    problems: list[tuple[str, str]]
    now: float
    bases: list[str] = field(default_factory=list)
    #: Of those, what is no directory: (path, what it is).
    odd_bases: list[tuple[str, EntryKind]] = field(default_factory=list)

    @property
    def layout(self) -> Layout:
        """Where everything is."""
        return Layout(self.root)


def take_survey(
    root: str,
    kind: RootKind,
    *,
    known: Callable[[], KnownPods] = KnownPods,
    static_pods: tuple[str, bool] | None = None,
    answer_seconds: float = ANSWER_SECONDS,
) -> Survey:
    """Look at everything once.

    The order matters where somebody works meanwhile: a directory is read before the pods, which are there before their
    directories are.

    :param known: what is known of pods from elsewhere; entered into a fresh one each time.
    :param static_pods: directory of static manifests, and whether somebody named it.
    :param answer_seconds: how long a mount may take to answer.
    :raises OSError: the root directory cannot be opened.
    :raises MountError: the mount table cannot be read.
    """
    layout, now = Layout(root), time.time()
    at_work = who_works_on(root, kind)
    with Tree(root) as tree:
        pods, devices = read_pods(tree), read_devices(tree)
        drivers, files = read_driver_records(tree), read_root_files(tree, now)
        kinds = [(tree.path(base), tree.look(base).kind) for base in BASES]
        problems = list(tree.problems)
    journal = read_journal_quietly(layout) if kind is RootKind.OWN else None
    index = MountIndex(root, read_mount_table())
    pods_known = known()
    if kind is RootKind.OWN:
        read_store(pods_known, layout)
    if journal is not None:
        _name_by_journal(pods_known, journal)
    if static_pods is not None:
        read_static_pods(pods_known, static_pods[0], given=static_pods[1])
    others = look_at_other_namespaces(index)
    return Survey(
        root=root,
        kind=kind,
        boot_id=read_boot_id(),
        at_work=at_work,
        index=index,
        pods=pods,
        devices=devices,
        journal=journal,
        known=pods_known,
        drivers=drivers,
        files=files,
        answers=probe((path for path in index.paths() if path != root), seconds=answer_seconds),
        loops=loops_below(root, [*index.table, *(each.mount for each in others.mounts)], _locks(devices)),
        others=others,
        problems=problems,
        now=now,
        bases=[path for path, _ in kinds],
        odd_bases=[(path, what) for path, what in kinds if what not in (EntryKind.DIRECTORY, EntryKind.MISSING)],
    )


def _locks(devices: list[DeviceEntry]) -> list[str]:
    """Where devices are mapped, each of which a loop device locks."""
    return [f"{device.mount_path}/{uid}" for device in devices if device.mode == BLOCK_MODE for uid in device.pods]


def _name_by_journal(known: KnownPods, journal: JournalContents) -> None:
    count = set()
    for (_, uid), record in journal.entries.items():
        name = text_of(record, "pod")
        if uid:
            count.add(uid)
        if uid and name:
            known.names.setdefault(uid, PodName(text_of(record, "ns"), name, JOURNAL))
    if journal.exists and not journal.newer_version:
        known.sources.append(f"{JOURNAL} ({counted(len(count))})")
