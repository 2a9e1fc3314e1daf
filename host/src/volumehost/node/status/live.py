"""Status as the running manager knows it, operations and retries included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from volumehost.errors import PluginLookupError
from volumehost.node.execution.backoff import absent_driver, lacks_plugin
from volumehost.node.execution.hanging import where_it_hangs
from volumehost.node.execution.pending import OperationKey
from volumehost.node.journal.format import text_of, texts_of
from volumehost.node.populating.claims import ClaimPendingError
from volumehost.node.populating.pods import used_volumes
from volumehost.node.restart.mount_facts import is_mounted
from volumehost.node.state.states import MountState, Need
from volumehost.node.status.records import PodStatus, VolumeStatus, pod_state, waits_for_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.api.objects import Pod
    from volumehost.node.execution.pending import PendingOperation, PendingOperations
    from volumehost.node.operations.common import Services
    from volumehost.node.populating.claim_following import ClaimFollowing
    from volumehost.node.populating.populator import Populator
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import AttachedVolume, MountedVolume

_RUNNING = {
    "volume_mount": "mounting",
    "volume_unmount": "unmounting",
    "map_volume": "mounting",
    "unmap_volume": "unmounting",
    "unmap_device": "unmounting",
    "volume_attach": "mounting",
    "unmount_device": "unmounting",
    "volume_detach": "unmounting",
}


class LiveStatus:
    """Makes status records from the manager's own state. Never touches a mount: one that hangs must not hold it up."""

    def __init__(
        self, services: Services, pending: PendingOperations, populator: Populator, claims: ClaimFollowing
    ) -> None:
        self._services = services
        self._pending = pending
        self._populator = populator
        self._claims = claims
        #: What whoever tells the manager of pods knows about one, by its uid.
        self.note_of: Callable[[str], str] = lambda _uid: ""
        #: What they should know of who asks for the status of all pods.
        self.notes: Callable[[], list[str]] = list
        self.warning = ""
        #: Why pods of which nothing is mounted any more are not gone yet, by their uid.
        self.unfinished: dict[str, str] = {}

    def of_pod(self, pod: Pod) -> PodStatus:
        """The pod's volumes, in the order of its manifest, then what is left of volumes that it no longer lists."""
        uid = pod.metadata.uid
        used = used_volumes(pod)
        names = self._services.desired.names_of_pod(uid)
        record = self._populator.record(uid)
        wanted = frozenset(names.values())
        mounts = {
            name: mount
            for mount in self._services.actual.mounts_of_pod(uid)
            if mount.volume not in wanted
            for name in self._names_of(mount)
        }
        begun = self._begun(uid)
        volumes = []
        told: set[str] = set()
        for volume in pod.spec.volumes:
            name = volume.name
            unique_name = names.get(name) or begun.get(name, "")
            mount = mounts.get(name)
            error = record.errors.get(name) if record is not None else None
            if name not in used:
                volumes.append(VolumeStatus(name, "unused"))
            elif unique_name:
                told.add(unique_name)
                status = self._of_use(name, unique_name, uid)
                volumes.append(status if error is None else replace(status, error=str(error)))
            elif mount is None:
                volumes.append(self._of_unresolved(name, error, known=record is not None))
            else:
                told.add(mount.volume)
                volumes.append(self._of_kept(name, mount, error))
        volumes += [
            self._of_mount(mount)
            for mount in self._services.actual.mounts_of_pod(uid)
            if mount.volume not in told and not self._populator.has_another_name(mount.volume, uid)
        ]
        ending = self._populator.has_ended(uid)
        state = pod_state(tuple(volumes), ending=ending)
        if used.selinux:
            from volumehost.node.workloads.selinux_words import with_selinux_live

            volumes = with_selinux_live(volumes, used, self._services, uid)
        note = self._note(uid)
        if not note and ending:
            note = "; ".join(self.of_devices(self.devices_left(uid)))
        elif not note:
            in_cluster = self._services.attachments is not None
            note = waits_for_word(pod, in_use=self._services.actual.has_mounts(uid), in_cluster=in_cluster)
        return PodStatus(pod.metadata.namespace, pod.metadata.name, uid, state, tuple(volumes), note)

    def _note(self, uid: str) -> str:
        return self.unfinished.get(uid, "") or self.note_of(uid)

    def devices_left(self, uid: str) -> list[str]:
        """Volumes that the pod used and has ended with, that no pod uses now, and that are not off the node (BR-48)."""
        if not self._populator.has_ended(uid):
            return []
        names = texts_of(self._services.journal.entry("", uid) or {}, "volumes")
        actual, populator = self._services.actual, self._populator
        return [name for name in names if actual.is_left_over(name) and populator.is_device_unwanted(name)]

    def _names_of(self, mount: MountedVolume) -> list[str]:
        """The names that the pod has for what is mounted: those that were recorded, else that of the volume itself."""
        recorded = (self._services.journal.entry(mount.volume, mount.pod_uid) or {}).get("outer")
        names = recorded if isinstance(recorded, list | tuple) else ()
        return [str(name) for name in names] or [mount.inner_name]

    def _begun(self, uid: str) -> dict[str, str]:
        """The volumes that are just being mounted for a pod that does not want them any more, by the pod's names."""
        if not self._pending.works_for(uid):
            return {}
        found = {}
        for entry in self._pending.running():
            volume = entry.key.volume
            unknown = self._services.desired.get(volume, uid) is None
            if entry.pod_uid == uid and unknown and self._services.actual.get_mount(volume, uid) is None:
                names = texts_of(self._services.journal.entry(volume, uid) or {}, "outer")
                found.update(dict.fromkeys(names, volume))
        return found

    def _of_kept(self, name: str, mount: MountedVolume, error: Exception | None) -> VolumeStatus:
        """A volume that is there, and of which nobody can tell now what the pod wants instead, for the reason given."""
        status = replace(self._of_mount(mount), volume=name)
        if error is None:
            return status
        why = self._of_unresolved(name, error, known=True)
        state = "waiting" if isinstance(error, PluginLookupError) else why.state
        return replace(status, state=state, operation=why.operation, step=why.step, error=why.error)

    def _of_unresolved(self, name: str, error: Exception | None, *, known: bool) -> VolumeStatus:
        """A volume that cannot start yet; of a claim that is being provisioned, the step of that."""
        state = "pending" if known else "not-mounted"
        if not isinstance(error, ClaimPendingError):
            return VolumeStatus(name, state, error=str(error) if error else "")
        step = self._claims.step(error)
        return VolumeStatus(name, state, operation="volume_provision", step=step, error="" if step else str(error))

    def of_leftover(self, pod_uid: str) -> PodStatus:
        """A pod that is known only by what is mounted for it."""
        mounts = self._services.actual.mounts_of_pod(pod_uid)
        namespace = next((mount.pod_namespace for mount in mounts if mount.pod_namespace), "")
        name = next((mount.pod_name for mount in mounts if mount.pod_name), "")
        volumes = tuple(self._of_mount(mount) for mount in mounts) + tuple(
            self._of_use(each, volume, pod_uid) for each, volume in self._begun(pod_uid).items()
        )
        state = "unmounting" if self._populator.has_ended(pod_uid) else pod_state(volumes, ending=False)
        note = self._note(pod_uid) or "the pod is not in the API"
        return PodStatus(namespace, name, pod_uid, state, volumes, note)

    def of_devices(self, volumes: list[str]) -> list[str]:
        """For each volume that no pod uses and that is still on the node, where that stands, in one line (BR-83)."""
        found = (self._services.actual.get_volume(name) for name in volumes)
        return [self.of_device(known).explain() for known in found if known is not None]

    def of_device(self, known: AttachedVolume) -> VolumeStatus:
        """A volume of the node as a whole: what is done to its device."""
        entry = self._pending.find(OperationKey(known.name))
        what = "mounted on the node" if known.device_state.may_be_mounted else "attached to the node"
        error, attempts, retry_in = self._failure(entry)
        spec = known.spec  # read once: its record may be gone the next moment
        return VolumeStatus(
            volume=spec.name() if spec is not None else known.name,
            state=f"still {what}",
            plugin=known.plugin_name,
            unique_name=known.name,
            failed_step=entry.failed_step if entry is not None and entry.backoff.error is not None else "",
            operation=entry.name if entry is not None else "",
            step=entry.step if entry is not None else "",
            age=self._age(entry),
            attempts=attempts,
            error=error,
            retry_in=retry_in,
            progress=entry.progress if entry is not None else "",
            where=where_it_hangs(entry, self._pending, self._services.clock),
        )

    def _of_use(self, outer_name: str, unique_name: str, pod_uid: str) -> VolumeStatus:
        use = self._services.desired.get(unique_name, pod_uid)
        mount = self._services.actual.get_mount(unique_name, pod_uid)
        return self._build(outer_name, unique_name, pod_uid, use, mount)

    def _of_mount(self, mount: MountedVolume) -> VolumeStatus:
        return self._build(mount.inner_name, mount.volume, mount.pod_uid, None, mount)

    def _build(
        self, name: str, unique_name: str, pod_uid: str, use: VolumeUse | None, mount: MountedVolume | None
    ) -> VolumeStatus:
        entry = self._pending.find(OperationKey(unique_name, pod_uid))
        record = (self._services.journal.entry(unique_name, pod_uid) or {}) if use is None else {}
        if entry is None and use is None and mount is not None and mount.found and record:
            return self._as_recorded(name, record)
        plugin = use.plugin.name if use is not None else mount.plugin_name if mount is not None else ""
        origin = use.plugin.origin if use is not None else None
        error, attempts, retry_in = self._failure(entry)
        if entry is None and use is not None and mount is None and (waits := self.waits_for_controller(use)):
            error = f"waits for {waits}"
        return VolumeStatus(
            volume=name,
            state=_state(entry, mount),
            plugin=plugin,
            distribution=origin.distribution if origin is not None else str(record.get("dist", "")),
            version=origin.version if origin is not None else str(record.get("ver", "")),
            path=mount.path if mount is not None else "",
            mounted=mount.is_mount if mount is not None else None,
            unique_name=unique_name,
            operation=entry.name if entry is not None else "",
            step=entry.step if entry is not None else "",
            age=self._age(entry),
            attempts=attempts,
            error=error,
            retry_in=retry_in,
            progress=entry.progress if entry is not None else "",
            where=where_it_hangs(entry, self._pending, self._services.clock),
            failed_step=entry.failed_step if entry is not None and entry.backoff.error is not None else "",
        )

    def waits_for_controller(self, use: VolumeUse) -> str:
        """What has to happen before a volume that a controller attaches may be mounted, "" for nothing."""
        attachments = self._services.attachments
        if attachments is None or not use.attachable:
            return ""
        need = self._services.actual.check(use.volume, use.pod_uid, attachable=True)
        return attachments.waits_for(use.volume) if need is Need.ATTACH else ""

    def _as_recorded(self, name: str, record: dict[str, Any]) -> VolumeStatus:
        """A volume that this manager found and was not told to do anything about: what its maker recorded stands."""
        from volumehost.node.status.recorded import Witnesses

        path = text_of(record, "mount") or text_of(record, "path")
        witnesses = Witnesses(
            mounted=frozenset([path] if is_mounted(self._services, path) else ()),
            same_boot=True,  # what a reboot took is recorded as lost when the journal is opened
            at_work=False,
            now=self._services.wall_clock(),
        )
        status = witnesses.volume(name, record)
        try:
            self._services.plugins.find_plugin_by_name(status.plugin)
        except PluginLookupError as error:
            origin = f" of {status.distribution} {status.version}".rstrip() if status.distribution else ""
            waiting = f"waits for its volume plugin {status.plugin}{origin}: {error}"
            return replace(status, state=status.state if status.ready else "waiting", error=waiting)
        return status

    def _age(self, entry: PendingOperation | None) -> float | None:
        return self._services.clock() - entry.started_at if entry is not None and entry.running else None

    def _failure(self, entry: PendingOperation | None) -> tuple[str, int, float | None]:
        if entry is None or entry.backoff.error is None:
            return "", 0, None
        retry_in = None if entry.running else entry.backoff.retry_in(self._services.clock())
        return str(entry.backoff.error), entry.backoff.attempts, retry_in


def _state(entry: PendingOperation | None, mount: MountedVolume | None) -> str:
    running = _RUNNING.get(entry.name, "mounting") if entry is not None and entry.running else ""
    if mount is not None and mount.state is MountState.MOUNTED and running != "unmounting":
        return "mounted"  # also while it is refreshed
    if running:
        return running
    if entry is not None and entry.backoff.error is not None:
        error = entry.backoff.error
        return "waiting" if absent_driver(error) is not None or lacks_plugin(error) else "failed"
    return "uncertain" if mount is not None else "pending"
