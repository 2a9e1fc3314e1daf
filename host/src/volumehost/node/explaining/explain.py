"""Why the volumes of a pod are not mounted, or not gone: from the manager at work, or from its records.

For ``VolumeManager.explain``, ``volumehost explain``, the agent's service, and the errors of waits. Touches no mount.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, ObjectNotFoundError, StoreError
from volumehost.node.explaining.explanation import PodExplanation, VolumeExplanation
from volumehost.node.explaining.facts import argument_of, explanation_of
from volumehost.node.journal.format import text_of
from volumehost.node.status.records import CLUSTER_WORDS

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.node.assembly import NodeParts
    from volumehost.node.journal.format import JournalContents
    from volumehost.node.status.recorded import NodeStatus
    from volumehost.node.status.records import PodStatus

__all__ = ["PodExplanation", "VolumeExplanation", "explain_live", "explain_recorded"]


def explain_live(parts: NodeParts, pod: Pod | PodStatus) -> PodExplanation:
    """What the manager at work knows of the pod.

    :param pod: the pod as the API has it, or, of a pod that is in no API any more, its status.
    """
    from volumehost.node.explaining.live import LiveFacts
    from volumehost.node.status.records import PodStatus

    facts = LiveFacts(parts)
    if isinstance(pod, PodStatus):
        status, known = parts.status.of_leftover(pod.uid), None
    else:
        status, known = parts.status.of_pod(pod), pod
    ended = parts.populator.has_ended(status.uid)
    volumes = [explanation_of(facts.of_volume(each, known, status.uid)) for each in status.volumes]
    volumes += [explanation_of(each) for each in facts.devices_of(status.uid)]
    record = parts.services.journal.entry("", status.uid) or {}
    problem, in_cluster = text_of(record, "problem"), parts.in_cluster
    told = of_pod(status, known, volumes, ended=ended, problem=problem, live=True, in_cluster=in_cluster)
    return _with_node(told, known, parts.host.get_node_name())


def with_object(parts: NodeParts, api: ApiClient, pod: Pod | PodStatus) -> Pod | PodStatus:
    """The pod that a status is of, from which more is known; the status where there is no such pod any more."""
    from volumehost.node.status.records import PodStatus

    if not isinstance(pod, PodStatus):
        return pod
    record = parts.populator.record(pod.uid)
    if record is not None:
        return record.pod
    try:
        found = _find_pod(api, pod)
    except ApiError:
        found = None
    return found if found is not None else pod


def explain_recorded(
    root_dir: str | os.PathLike[str], store: ApiClient | None, namespace: str, name: str, *, node_name: str = ""
) -> PodExplanation:
    """What journal, store and mount table tell of the pod; takes no lock and changes nothing.

    :param store: the API; by default the embedded store in the root directory, if there is one.
    :param name: the pod's name, or its uid when only the disk knows it.
    :param node_name: the name of this node; the one of the root directory by default.
    :raises ObjectNotFoundError: neither the API nor the disk knows the pod.
    :raises RootDirectoryError: the journal cannot be read.
    """
    from volumehost.hosts.layout import Layout
    from volumehost.hosts.node_name import node_name_of
    from volumehost.hosts.root_dir import resolve_root_dir
    from volumehost.node.journal.journal import read_journal
    from volumehost.node.status.recorded import read_status

    layout = Layout(resolve_root_dir(os.fspath(root_dir)))
    with contextlib.ExitStack() as stack:
        if store is None:
            store = _open_store(layout.store_file(), stack)
        found = read_status(root_dir, api=store)
        status = find_status(found.pods, namespace, name)
        node_name = node_name or node_name_of(layout.root_dir)
        return _of_record(found, status, read_journal(layout.journal_file()), store, node_name)


def _open_store(path: str, stack: contextlib.ExitStack) -> ApiClient | None:
    """The store for reading; None where there is none, and where it cannot be read: what else is known is told."""
    from volumehost.api.read_only_store import ReadOnlyStore

    if not os.path.lexists(path):
        return None
    try:
        return stack.enter_context(ReadOnlyStore(path))
    except StoreError:
        return None


def find_status(pods: Iterable[PodStatus], namespace: str, name: str) -> PodStatus:
    """The pod of that name, or of that uid.

    :raises ObjectNotFoundError: there is none.
    """
    for each in pods:
        if (each.namespace, each.name) == (namespace, name) or each.uid == name:
            return each
    raise ObjectNotFoundError(
        f"there is no pod {namespace}/{name}",
        subject=name,
        hint="'volumehost status' lists what there is; -n names another namespace",
    )


def _of_record(
    found: NodeStatus, status: PodStatus, journal: JournalContents, store: ApiClient | None, node_name: str
) -> PodExplanation:
    from volumehost.node.explaining.recorded import RecordedFacts

    facts = RecordedFacts(journal, store, node_name)
    pod = _find_pod(store, status)
    volumes = [explanation_of(facts.of_volume(each, pod, status.uid)) for each in status.volumes]
    volumes += [explanation_of(each) for each in facts.devices_of(status.uid)]
    record = journal.entries.get(("", status.uid), {})
    ended = bool(record.get("ended"))
    told = of_pod(status, pod, volumes, ended=ended, problem=text_of(record, "problem"), live=False)
    if pod is not None and _is_elsewhere(pod, node_name):
        return _with_node(told, pod, node_name)
    return _with_worker(told, found)


def _is_elsewhere(pod: Pod, node: str) -> bool:
    return pod.spec.node_name not in {"", node}


def _with_node(told: PodExplanation, pod: Pod | None, node: str) -> PodExplanation:
    """For which node the pod is, when that is another one: whoever works here does not mount it."""
    import msgspec

    if pod is None or told.ready or not _is_elsewhere(pod, node):
        return told
    waits_for = f"node {pod.spec.node_name}, which the pod is for; this is {node}"
    return msgspec.structs.replace(told, waits_for=(waits_for, *told.waits_for))


def _with_worker(told: PodExplanation, found: NodeStatus) -> PodExplanation:
    """Who works on the root directory: without anybody nothing goes on."""
    import msgspec

    notes, waits_for, advice = [*found.notes, *told.notes], list(told.waits_for), list(told.advice)
    if found.manager_pid is not None:
        who = f"process {found.manager_pid}" if found.manager_pid else "a process of another container"
        notes.append(f"{who} works on this root directory; this is what it has recorded")
    elif not told.ready or told.state == "unmounting":
        verb = "unmount" if told.state == "unmounting" else "mount"
        waits_for.insert(0, f"somebody who works on it: nobody works on this root directory, {found.root_dir}")
        advice.insert(0, f"run 'volumehost {verb} {argument_of(told.label)}', or the agent: 'volumehost agent'")
    return msgspec.structs.replace(told, notes=tuple(notes), waits_for=tuple(waits_for), advice=tuple(advice))


def of_pod(
    status: PodStatus,
    pod: Pod | None,
    volumes: list[VolumeExplanation],
    *,
    ended: bool,
    problem: str,
    live: bool,
    in_cluster: bool = False,
) -> PodExplanation:
    """The explanation of a pod from those of its volumes; ``pod`` is None when nothing is to be told of the object."""
    waits_for, advice = [], []
    going = ended or status.state == "unmounting"
    if pod is not None and pod.metadata.deletion_timestamp is not None and not ended:
        waits_for.append("the word that its workload has ended: it is marked for deletion, its volumes stay until then")
        if in_cluster:
            advice.append(f"it is told by {CLUSTER_WORDS}")
        else:
            argument = argument_of(f"{status.namespace}/{status.name}")
            advice.append(f"'volumehost unmount {argument}' says that it has ended")
    if ended and not any(volume.sequence for volume in volumes):
        waits_for.append(f"its directory to be removed: {problem}" if problem else "its directory to be removed")
    notes = (status.note,) if status.note else ()
    return PodExplanation(
        namespace=status.namespace,
        name=status.name,
        uid=status.uid,
        state=status.state,
        ready=status.ready and not going,
        summary=_summary(volumes, going=ended),
        live=live,
        volumes=tuple(volumes),
        waits_for=tuple(waits_for),
        advice=tuple(advice),
        notes=notes,
    )


def _summary(volumes: list[VolumeExplanation], *, going: bool) -> str:
    used = [volume for volume in volumes if volume.state != "unused"]
    left = [volume for volume in used if volume.sequence]
    if not used:
        return "no container uses a volume"
    verb = "is" if len(left) == 1 else "are"
    if going and left:
        return f"{len(left)} volume{'' if len(left) == 1 else 's'} {verb} still on the node"
    if left:
        return f"{len(left)} of {len(used)} volume{'' if len(used) == 1 else 's'} {verb} not mounted"
    return "all volumes are unmounted" if going else "all volumes are mounted"


def _find_pod(store: ApiClient | None, status: PodStatus) -> Pod | None:
    if store is None or not status.name:
        return None
    from volumehost.node.populating.pod_objects import find_pod

    pod = find_pod(store, status.name, status.namespace)
    return pod if pod is not None and pod.metadata.uid == status.uid else None
