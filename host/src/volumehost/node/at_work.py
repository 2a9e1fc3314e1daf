"""What a volume manager is between entering and leaving, and how that begins; its one caller is the manager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, FailedPreconditionError
from volumehost.node.assembly import NodeParts, Settings, start
from volumehost.node.ending import PodEnding
from volumehost.node.mounting import PodMounting
from volumehost.node.restart.orphan_care import OrphanCare
from volumehost.node.restart.store_witness import StoreWitness
from volumehost.node.unmounting import PodUnmounting
from volumehost.node.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.node.status.records import PodStatus


@dataclass(frozen=True, slots=True)
class AtWork:
    """What there is between entering and leaving, and what needs several of its parts."""

    parts: NodeParts
    mounting: PodMounting
    unmounting: PodUnmounting
    ending: PodEnding
    orphans: OrphanCare
    witness: StoreWitness
    api: ApiClient

    def set_known_pods(self, pods: Iterable[Pod]) -> None:
        """See :meth:`VolumeManager.set_known_pods`."""
        known = {pod.metadata.uid: pod for pod in pods}
        populator = self.parts.populator
        kept = self.witness.pods_to_keep(known.keys())
        populator.set_known(known.values(), kept)
        for uid, (namespace, name) in self.unmounting.mounted_pods([]).items():
            if uid not in known and uid not in kept and not populator.may_mount(uid):
                self.unmounting.begin(uid, namespace, name)
        self.parts.reconciler.resync()

    def pod_statuses(self) -> list[PodStatus]:
        """See :meth:`VolumeManager.status`."""
        parts, pods = self.parts, self._pods_in_api()
        known = {pod.metadata.uid for pod in pods}
        pods += [record.pod for record in parts.populator.records() if record.pod.metadata.uid not in known]
        found = [parts.status.of_pod(pod) for pod in pods]
        known = {pod.metadata.uid for pod in pods}
        found += [parts.status.of_leftover(uid) for uid in parts.services.actual.pods() if uid not in known]
        return sorted(found, key=lambda status: (status.namespace, status.name, status.uid))

    def _pods_in_api(self) -> list[Pod]:
        """None while it cannot be read: they are told by what is known of them here."""
        from volumehost.api.objects import Pod

        try:
            return self.api.list(Pod).items
        except ApiError:
            return []


def begin(settings: Settings, *, told_pods: bool, exit_grace: float) -> AtWork:
    """Take the root directory, find out what is mounted, go on where a former manager stopped.

    :param told_pods: which pods there are is told by the caller; otherwise the API is asked.
    :param exit_grace: seconds to wait for what runs when it cannot begin.
    :raises RootDirectoryError: it cannot be used.
    :raises RootDirectoryLockedError: another manager works on it.
    """
    parts = start(settings)
    try:
        api = parts.host.get_kube_client()
        if api is None:
            raise FailedPreconditionError("the manager has no API", action="entering a VolumeManager")
        unmounting = PodUnmounting(parts, api)
        ending = PodEnding(parts, api, unmounting, settings.clock)
        orphans, witness = OrphanCare(parts, api, settings.clock), StoreWitness(parts, api)
        at_work = AtWork(parts, PodMounting(parts), unmounting, ending, orphans, witness, api)
        upkeep = Upkeep(parts, api, at_work.mounting, witness)
        parts.claims.changed = at_work.mounting.resolve
        parts.contents.changed = at_work.mounting.refresh
        if parts.services.actual.pods() or parts.found.ended_pods:
            if not told_pods:
                upkeep.learn_pods()
            unmounting.finish_what_was_begun()
        elif not told_pods:
            witness.pods_to_keep(())
            parts.populator.set_known(())
        parts.reconciler.resync()
        upkeep.begin()
        if parts.services.attachments is not None:
            from volumehost.node.cluster.limits import AttachLimits

            parts.services.attachments.start(parts.services)
            AttachLimits(parts).begin()
        if settings.adopt:
            upkeep.begin_control()
            upkeep.begin_housekeeping(orphans)
    except BaseException:
        parts.close(exit_grace)
        raise
    return at_work
