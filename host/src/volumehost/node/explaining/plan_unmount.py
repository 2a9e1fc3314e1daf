"""What would be done to unmount a pod, from the records of what was mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.mount.deadline import DeadlineRunner
from volumehost.node.explaining.busy_words import busy_words
from volumehost.node.explaining.planned import PlannedStep, PodPlan, VolumePlan
from volumehost.node.explaining.recorded import RecordedFacts
from volumehost.node.explaining.sequence import MOUNTING_OPERATIONS, REMOVE, SUBPATHS, TEAR_DOWN, unmount_sequence
from volumehost.node.journal.journal import read_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.hosts.node_host import NodeHost
    from volumehost.node.explaining.facts import VolumeFacts


def plan_unmount(api: ApiClient, host: NodeHost, name: str, namespace: str) -> PodPlan:
    """See ``Planner.unmount``."""
    from volumehost.node.explaining.explain import find_status
    from volumehost.node.populating.pod_objects import find_pod
    from volumehost.node.status.recorded import read_status

    found = read_status(host.layout.root_dir, api=api)
    status = find_status(found.pods, namespace, name)
    pod = find_pod(api, status.name, status.namespace) if status.name else None
    facts = RecordedFacts(read_journal(host.layout.journal_file()), api, host.get_node_name())
    volumes = [_of_volume(facts.of_volume(each, pod, status.uid)) for each in status.volumes]
    return PodPlan(
        namespace=status.namespace,
        name=status.name or status.uid,
        action="unmount",
        works=not any(volume.problems for volume in volumes),
        volumes=tuple(volumes),
        notes=tuple(_notes(pod)),
    )


def _of_volume(facts: VolumeFacts) -> VolumePlan:
    status = facts.status
    # What was never mounted for the pod may be attached or staged for it all the same.
    unknown = not status.unique_name and status.state != "uncertain"
    absent = unknown or (status.state == "failed" and status.operation in MOUNTING_OPERATIONS)
    skipped = {REMOVE, SUBPATHS, TEAR_DOWN} if absent else {REMOVE}
    steps = [
        PlannedStep(phase.name, phase.text, next(iter(sorted({name for name, _ in phase.steps})), ""))
        for phase in unmount_sequence(facts.kind)
        if phase.name not in skipped
    ]
    if unknown or not steps:
        return VolumePlan(status.volume, "unused" if status.state == "unused" else "done", status.plugin)
    users, _ = busy_words(status.path, DeadlineRunner()) if status.mounted else ([], [])
    shared = f"pod {', '.join(facts.kind.shared_with)} has it too, so it stays on the node"
    return VolumePlan(
        volume=status.volume,
        state="blocked" if users else "to-do",
        plugin=status.plugin,
        distribution=status.distribution,
        version=status.version,
        source=facts.kind.by,
        steps=tuple(steps),
        problems=tuple(users),
        notes=(shared,) if facts.kind.shared_with else (),
    )


def _notes(pod: Pod | None) -> Iterator[str]:
    from volumehost.api.mirrors import is_mirror

    if pod is not None and is_mirror(pod):
        yield "it is a static pod: while an agent looks at its manifest, only the manifest ends it"
    yield "then its directory is removed, and its object"
    for volume in pod.spec.volumes if pod is not None else ():
        if volume.ephemeral is not None and pod is not None:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}-{volume.name}"
            yield f"claim {name} was made for the pod and goes with it"
