"""Tells a pod's owner by an event why volumes of it cannot even be tried (VM-03 to -08)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.node.populating.pods import used_volumes
from volumehost.node.state.states import Need

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from volumehost.node.operations.common import Services
    from volumehost.node.populating.populator import PodRecord


def tell_unable(services: Services, record: PodRecord, problems: Mapping[str, str]) -> None:
    """Warning FailedMount. What is only in progress, and what operations tell of themselves, is not told here.

    :param problems: outer volume name to why it could not be processed; nothing is told when there is none.
    """
    recorder = services.recorder()
    if recorder is None or not problems:
        return
    causes = "; ".join(sorted(set(problems.values())))
    lists = _lists(services, record, problems)
    recorder.event(
        record.pod, "Warning", "FailedMount", f"Unable to attach or mount volumes: {lists}: {causes}"
    )  # fmt: skip


def _lists(services: Services, record: PodRecord, problems: Iterable[str]) -> str:
    """What is not mounted, not attached, and could not be processed, in the words of VM-06."""
    uid = record.uid
    uses = {name: use for use in services.desired.uses_of_pod(uid) for name in use.outer_names}
    unmounted = [
        name for name in _used(record)
        if name not in uses or services.actual.state_of(uses[name].volume, uid) is not Need.NOTHING
    ]  # fmt: skip
    unattached = [
        name for name, use in uses.items()
        if use.attachable and services.actual.check(use.volume, uid, attachable=True) is Need.ATTACH
    ]  # fmt: skip
    return (
        f"unmounted volumes={_shown(unmounted)}, unattached volumes={_shown(unattached)}, "
        f"failed to process volumes={_shown(problems)}"
    )


def _used(record: PodRecord) -> frozenset[str]:
    used = used_volumes(record.pod)
    return used.mounts | used.devices


def _shown(names: Iterable[str]) -> str:
    return f"[{' '.join(sorted(names))}]"
