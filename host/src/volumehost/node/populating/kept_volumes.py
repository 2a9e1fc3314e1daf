"""Keeps the volume that a pod has when one of its claims leads to another meanwhile; the populator asks here (BR-51).

A claim can be deleted by force and made anew while a pod uses it. The pod goes on with what it has: to take that from
under it, and give it an empty volume, would lose what it writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError
from volumehost.node.journal.format import texts_of
from volumehost.node.state.states import MountState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from volumehost.node.operations.common import Services
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import MountedVolume


def refuse_replacements(
    services: Services, pod_uid: str, resolved: Mapping[str, VolumeUse | Exception]
) -> dict[str, Exception]:
    """For each name under which the pod has a volume, and that leads to another one now, why that is not mounted.

    :param resolved: outer volume name to what it leads to now.
    """
    uses = {name: use for name, use in resolved.items() if not isinstance(use, Exception)}
    wanted = {use.volume for use in uses.values()}
    refused: dict[str, Exception] = {}
    for mount in services.actual.mounts_of_pod(pod_uid):
        if mount.volume in wanted or not (mount.state is MountState.MOUNTED or mount.reconstructed):
            continue
        for name in _outer_names(services, mount):
            use = uses.get(name)
            if use is not None and (use.inner_name, use.plugin.name) != (mount.inner_name, mount.plugin_name):
                refused[name] = FailedPreconditionError(
                    f"it leads to another volume now, {use.inner_name}; the pod keeps {mount.inner_name}, which it may "
                    "be using",
                    action=f"preparing volume {name}",
                    subject=name,
                    hint="end the pod and start it again; then it gets the new one",
                )
    return refused


def _outer_names(services: Services, mount: MountedVolume) -> Iterable[str]:
    """The names that the pod has for what is mounted; after a restart they are on record."""
    use = services.desired.get(mount.volume, mount.pod_uid)
    if use is not None:
        return use.outer_names
    return texts_of(services.journal.entry(mount.volume, mount.pod_uid) or {}, "outer")
