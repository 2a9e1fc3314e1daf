"""VolumeManager: takes pods, mounts their volumes, and says what to mount where in their containers.

The one entry to the node for the command line, the agent and embedding programs.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from volumehost.errors import (
    ApiError,
    FailedPreconditionError,
    ObjectNotFoundError,
    VolumeHostError,
    VolumesFailedError,
    WaitTimeoutError,
)
from volumehost.node.assembly import NodeParts, Settings, start
from volumehost.node.orphans import OrphanedPod, orphaned_pods, remove_orphans, remove_pod_directory
from volumehost.node.pod_objects import DEFAULT_NAMESPACE, apply_pod, delete_pod, find_pod, release_pod

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.host_services import MountInterface
    from volumehost.hosts.node_host import NodeHost
    from volumehost.loader.events import DynamicPluginProber
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.node.containers import ContainerMounts
    from volumehost.node.executor import OperationMetrics
    from volumehost.node.operations import StepObserver
    from volumehost.node.populator import PodRecord
    from volumehost.node.status import PodStatus, VolumeStatus

logger = logging.getLogger(__name__)

#: Longest wait for a pod's volumes, in seconds (CONST-02).
POD_TIMEOUT = 123.0

#: How long leaving a manager waits for operations that run, in seconds.
EXIT_GRACE = 10.0


class VolumeManager:
    """The volumes of one node, under one root directory. A context manager: entering takes the root directory.

    ::

        with VolumeManager("/var/lib/volumehost") as manager:
            manager.mount_pod(pod)
            for container in manager.container_mounts(pod):
                ...

    Leaving it leaves mounts alone; a later manager finds them. While one manager works on a root directory, another
    cannot (RootDirectoryLockedError). Safe for threads.

    :param root_dir: where state and volumes are; created when it is not there.
    :param node_name: name of the node; the machine's by default.
    :param plugins: volume plugins (classes, instances, modules) besides those that are found.
    :param prober: how plugins are found; by the entry points of installed distributions by default.
    :param plugin_manager: a manager whose plugins are loaded, instead of ``plugins`` and ``prober``.
    :param api: the API; by default the embedded store in the root directory.
    :param mounter: stands in for the kernel's mounts.
    :param adopt: tear down volumes of which only a directory tells and that no pod wants; for a node's agent.
    :param observer: is told of every step of every operation.
    :param metrics: counts finished operations.
    """

    def __init__(
        self,
        root_dir: str | os.PathLike[str],
        *,
        node_name: str | None = None,
        plugins: Sequence[object] = (),
        prober: DynamicPluginProber | None = None,
        plugin_manager: VolumePluginManager | None = None,
        api: ApiClient | None = None,
        mounter: MountInterface | None = None,
        adopt: bool = False,
        observer: StepObserver | None = None,
        metrics: OperationMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        boot_id: str | None = None,
    ) -> None:
        self._settings = Settings(
            root_dir=os.fspath(root_dir),
            node_name=node_name,
            plugins=plugins,
            prober=prober,
            plugin_manager=plugin_manager,
            api=api,
            mounter=mounter,
            adopt=adopt,
            observer=observer,
            metrics=metrics,
            clock=clock,
            boot_id=boot_id,
        )
        self._at_work: NodeParts | None = None
        self._privileged = False

    # --- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Take the root directory, find out what is mounted, and go on where a former manager stopped.

        :raises RootDirectoryError: it cannot be used.
        :raises RootDirectoryLockedError: another manager works on it.
        """
        self._at_work = parts = start(self._settings)
        if parts.services.actual.pods() or parts.found.ended_pods:
            self._learn_pods()
            self._finish_ended_pods()
        else:
            parts.populator.set_known(())
        parts.reconciler.run()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go of the root directory; mounts stay."""
        if self._at_work is not None:
            parts, self._at_work = self._at_work, None
            parts.close(EXIT_GRACE)

    @property
    def host(self) -> NodeHost:
        """The host that plugins see."""
        return self._parts.host

    @property
    def plugins(self) -> VolumePluginManager:
        """The loaded plugins."""
        return self._parts.services.plugins

    @property
    def root_dir(self) -> str:
        """The root directory, links resolved (BR-69)."""
        return self._parts.host.layout.root_dir

    # --- pods -----------------------------------------------------------------------------------------------------

    def mount_pod(self, pod: object, *, timeout: float = POD_TIMEOUT, attempts: int | None = None) -> PodStatus:
        """Put the pod into the API, mount every volume that a container uses, and wait until that is done.

        :param pod: a Pod, a mapping in wire form, JSON text, or a model of the ``kubernetes`` client.
        :param timeout: seconds to wait.
        :param attempts: see :meth:`wait_for_pod`.
        :raises InvalidObjectError: the manifest is wrong; nothing was done.
        :raises VolumesFailedError: a volume cannot be mounted; the others are.
        :raises WaitTimeoutError: not all were mounted in time; they are tried further while the manager is at work.
        """
        self._check_privileges()
        stored = apply_pod(self._api(), pod)
        self.sync_pod(stored)
        return self.wait_for_pod(stored, timeout=timeout, attempts=attempts)

    def sync_pod(self, pod: Pod) -> None:
        """Begin to mount the volumes of a pod that is in the API, or refresh those that want that (POP-16).

        Returns at once; :meth:`wait_for_pod` waits.
        """
        parts = self._parts
        uid = pod.metadata.uid
        if parts.populator.has_ended(uid):
            raise FailedPreconditionError(
                "it is being unmounted", action=f"mounting pod {pod.metadata.namespace}/{pod.metadata.name}",
                subject=pod.metadata.name, hint="wait until it is gone, then mount it again",
            )  # fmt: skip
        record = parts.populator.add(pod)
        self._look_after(record, uid)
        parts.services.actual.mark_remount_required(uid, self._wants_remount)
        self._notice_lost_mounts(uid)
        parts.reconciler.run()

    def wait_for_pod(self, pod: Pod, *, timeout: float = POD_TIMEOUT, attempts: int | None = None) -> PodStatus:
        """Wait until every used volume of the pod is mounted.

        :param attempts: give up once each volume that is not mounted has failed this often; by default it is tried
            until the timeout. What cannot be tried at all (no plugin, a claim that is not bound) fails at once, when
            the other volumes are settled.
        :raises VolumesFailedError: given up; ``details`` has one line for each volume.
        :raises WaitTimeoutError: the time is over; ``details`` likewise (BR-83).
        """
        uid = pod.metadata.uid
        waits = self._parts.waits
        settled = waits.wait(uid, lambda: self._is_ready(uid) or self._is_hopeless(uid, attempts), timeout)
        status = self.pod_status(pod)
        if self._is_ready(uid):
            return status
        details = [volume.explain() for volume in status.volumes if not volume.ready and volume.state != "unused"]
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        missing = [volume.volume for volume in status.volumes if not volume.ready and volume.state != "unused"]
        text = f"unmounted volumes=[{' '.join(sorted(missing))}]"
        if settled:
            raise VolumesFailedError(text, details=details, action=f"mounting pod {name}", subject=name)
        raise WaitTimeoutError(
            f"{text} after {timeout:g} s", details=details, action=f"waiting for the volumes of pod {name}",
            subject=name, hint="they are tried again the next time",
        )  # fmt: skip

    def unmount_pod(self, name: str, namespace: str = DEFAULT_NAMESPACE, *, timeout: float = POD_TIMEOUT) -> None:
        """Delete the pod, unmount all its volumes, remove its directory; the word that its workload has ended.

        :raises ObjectNotFoundError: neither the API nor the disk knows the pod.
        :raises WaitTimeoutError: something is still mounted; ``details`` says what and why.
        :raises StillMountedError: something is mounted below the pod's directory that is none of its volumes.
        :raises RemovalError: files are left in a volume's directory; they were kept (BR-70).
        """
        self._check_privileges()
        pod = find_pod(self._api(), name, namespace)
        uids = [pod.metadata.uid] if pod is not None else self._leftovers(name, namespace)
        if not uids:
            raise ObjectNotFoundError(
                "there is no such pod", action=f"unmounting pod {namespace}/{name}", subject=f"{namespace}/{name}",
                hint="volumehost status lists what is mounted",
            )  # fmt: skip
        for uid in uids:
            self._end_pod(uid, name, namespace)
        if pod is not None:
            delete_pod(self._api(), pod)
        self._parts.reconciler.run()
        deadline = self._settings.clock() + timeout
        for uid in uids:
            self._wait_for_unmount(uid, f"{namespace}/{name}", max(0.0, deadline - self._settings.clock()), timeout)
            self._finish_pod(uid, name, namespace)

    def unmount_all(self, *, timeout: float = POD_TIMEOUT) -> list[str]:
        """Unmount every pod that has volumes here; returns ``namespace/name`` of each.

        One that fails does not stop the others.

        :raises WaitTimeoutError: some could not be unmounted in time; ``details`` says which and why.
        """
        self._check_privileges()
        deadline = self._settings.clock() + timeout
        pods = self._mounted_pods()
        done, problems = [], []
        for uid, (namespace, name) in pods.items():
            self._end_pod(uid, name, namespace)
        for pod in self._pods_in_api():
            if pod.metadata.uid in pods:
                delete_pod(self._api(), pod)
        self._parts.reconciler.run()
        for uid, (namespace, name) in pods.items():
            label = f"{namespace}/{name}" if name else uid
            try:
                self._wait_for_unmount(uid, label, max(0.0, deadline - self._settings.clock()), timeout)
                self._finish_pod(uid, name, namespace)
            except VolumeHostError as error:  # one pod's trouble must not keep the others (BR-18)
                problems.append(str(error))
            else:
                done.append(label)
        if problems:
            raise WaitTimeoutError(
                f"{len(problems)} of {len(pods)} pods could not be unmounted", details=problems,
                action="unmounting all pods",
            )  # fmt: skip
        return done

    # --- questions ------------------------------------------------------------------------------------------------

    def status(self) -> list[PodStatus]:
        """Every pod in the API and every pod that something is mounted for."""
        parts = self._parts
        pods = self._pods_in_api()
        found = [parts.status.of_pod(pod) for pod in pods]
        known = {pod.metadata.uid for pod in pods}
        found += [parts.status.of_leftover(uid) for uid in parts.services.actual.pods() if uid not in known]
        return sorted(found, key=lambda status: (status.namespace, status.name, status.uid))

    def pod_status(self, pod: Pod) -> PodStatus:
        """One pod, as it was handed to the manager."""
        return self._parts.status.of_pod(pod)

    def container_mounts(self, pod: Pod | PodStatus) -> list[ContainerMounts]:
        """For each container of a mounted pod, what to mount where.

        :param pod: what :meth:`mount_pod` returned, or the pod as the API has it.
        :raises FailedPreconditionError: the pod, or a volume that it needs, is not mounted.
        """
        from volumehost.node.containers import container_mounts
        from volumehost.node.status import PodStatus

        if isinstance(pod, PodStatus):
            record = self._parts.populator.record(pod.uid)
            if record is None:
                raise FailedPreconditionError(
                    "it is not mounted", action=f"preparing the mounts of pod {pod.namespace}/{pod.name}",
                    subject=pod.name, hint="mount the pod first",
                )  # fmt: skip
            pod = record.pod
        self._notice_lost_mounts(pod.metadata.uid)
        return container_mounts(self._parts.services, pod)

    def orphans(self) -> list[OrphanedPod]:
        """Pod directories of no known pod, and what keeps each (ORPHAN-01)."""
        parts = self._parts
        known = {pod.metadata.uid for pod in self._pods_in_api()} | {
            uid for uid in parts.services.actual.pods() if not self._only_directories(uid)
        }
        return orphaned_pods(parts.host.layout, known, parts.host.get_mounter().list_mounts())

    def clean_orphans(self, *, dry_run: bool = True) -> list[OrphanedPod]:
        """Unmount and remove what :meth:`orphans` finds; by default only tell. Never deletes data (BR-84)."""
        found = self.orphans()
        return found if dry_run else remove_orphans(found, self._parts.host.layout, self._parts.host.get_mounter())

    # --- inside ---------------------------------------------------------------------------------------------------

    @property
    def _parts(self) -> NodeParts:
        if self._at_work is None:
            raise FailedPreconditionError(
                "the manager is not at work", action="using a VolumeManager", hint="use it in a with statement"
            )
        return self._at_work

    def _api(self) -> ApiClient:
        api = self._parts.host.get_kube_client()
        if api is None:
            raise FailedPreconditionError("the manager has no API", action="using a VolumeManager")
        return api

    def _check_privileges(self) -> None:
        if not self._privileged:
            from volumehost.mount.privileges import check_mount_privileges

            check_mount_privileges()
            self._privileged = True

    def _pods_in_api(self) -> list[Pod]:
        from volumehost.api.objects import Pod

        return self._api().list(Pod).items

    def _learn_pods(self) -> None:
        """Ask the API which pods there are; until it answers nothing is unmounted (BR-15)."""
        parts = self._parts
        try:
            parts.populator.set_known(self._pods_in_api())
        except ApiError as error:
            logger.warning("pods are not known yet, nothing is unmounted: %s", error)
            parts.timers.call_later(1.0, self._learn_again)

    def _learn_again(self) -> None:
        if self._at_work is not None:
            self._learn_pods()
            if self._parts.populator.complete:
                self._parts.reconciler.resync()

    def _look_after(self, record: PodRecord, uid: str, delay: float = 0.5) -> None:
        """Volumes that cannot be resolved yet are tried again, ever more rarely."""
        if record.errors:
            self._parts.timers.call_later(delay, lambda: self._resolve_again(record, uid, delay))

    def _resolve_again(self, record: PodRecord, uid: str, delay: float) -> None:
        parts = self._at_work
        if parts is None or parts.populator.record(uid) is not record:
            return
        again = parts.populator.add(record.pod)
        self._look_after(again, uid, min(2 * delay, 30.0))
        parts.reconciler.run()
        parts.waits.notify(uid)

    def _is_ready(self, uid: str) -> bool:
        parts = self._parts
        record = parts.populator.record(uid)
        if record is None or record.errors:
            return False
        from volumehost.node.states import Need

        return all(
            parts.services.actual.check(name, uid).need in (Need.NOTHING, Need.RESIZE)
            for name in parts.services.desired.volumes_of_pod(uid)
        )

    def _is_hopeless(self, uid: str, attempts: int | None) -> bool:
        """Whether all that is not mounted either cannot be tried or has failed often enough."""
        record = self._parts.populator.record(uid)
        if record is None or (attempts is None and not record.errors):
            return False
        wanted = 1 if attempts is None else attempts
        status = self._parts.status.of_pod(record.pod)
        waiting = [volume for volume in status.volumes if not volume.ready and volume.state != "unused"]
        return bool(waiting) and all(_has_failed(volume, record, wanted) for volume in waiting)

    def _wants_remount(self, mount: object) -> bool:
        spec, plugin_name = getattr(mount, "spec", None), getattr(mount, "plugin_name", "")
        if spec is None:
            return False
        try:
            return self.plugins.find_plugin_by_name(plugin_name).requires_remount(spec)
        except VolumeHostError:
            return False

    def _notice_lost_mounts(self, uid: str) -> None:
        """What was a mount point and no longer is has to be set up again (BR-58)."""
        parts = self._parts
        mounter = parts.host.get_mounter()
        for mount in parts.services.actual.mounts_of_pod(uid):
            if not mount.is_mount:
                continue
            try:
                there = mounter.is_mount_point(mount.path)
            except FileNotFoundError:
                there = False
            except (OSError, VolumeHostError):
                there = False
            if not there:
                logger.warning("volume %s of pod %s is no longer mounted at %s", mount.volume, uid, mount.path)
                parts.services.actual.mark_uncertain(mount.volume, uid)

    # --- ends -----------------------------------------------------------------------------------------------------

    def _end_pod(self, uid: str, name: str, namespace: str) -> None:
        """Record the word that the workload has ended, then act on it: it must survive a crash."""
        journal = self._parts.services.journal
        journal.note({"p": uid, "ended": True, "ns": namespace, "pod": name})
        self._parts.populator.end(uid)
        self._parts.reconciler.look_at_pod(uid)

    def _wait_for_unmount(self, uid: str, label: str, seconds: float, timeout: float) -> None:
        parts = self._parts
        if parts.waits.wait(uid, lambda: self._is_gone(uid), seconds):
            return
        left = parts.status.of_leftover(uid).volumes
        raise WaitTimeoutError(
            f"mounted volumes=[{' '.join(sorted(volume.volume for volume in left))}] after {timeout:g} s",
            details=[volume.explain() for volume in left],
            action=f"waiting until the volumes of pod {label} are unmounted",
            subject=label,
            hint="they are tried again the next time",
        )

    def _is_gone(self, uid: str) -> bool:
        return not self._parts.services.actual.has_mounts(uid)

    def _finish_pod(self, uid: str, name: str, namespace: str) -> None:
        """Nothing of the pod is mounted: remove its directory, then its object, then the record of its end."""
        parts = self._parts
        remove_pod_directory(parts.host.layout, uid)
        if name:
            release_pod(self._api(), name, namespace, uid)
        self._forget_failures(uid)
        parts.services.journal.note({"p": uid, "gone": True})
        parts.populator.forget(uid)

    def _forget_failures(self, uid: str) -> None:
        journal = self._parts.services.journal
        for volume, pod_uid in journal.entries():
            if pod_uid == uid and volume:
                journal.note({"v": volume, "p": uid, "gone": True})

    def _finish_ended_pods(self) -> None:
        """Pods whose unmount a former manager began and did not finish."""
        for (volume, uid), record in self._parts.services.journal.entries().items():
            if not volume and record.get("ended") and self._is_gone(uid):
                try:
                    self._finish_pod(uid, str(record.get("pod", "")), str(record.get("ns", "")))
                except VolumeHostError as error:
                    logger.warning("pod %s is not gone yet: %s", uid, error)

    def _leftovers(self, name: str, namespace: str) -> list[str]:
        """UIDs of pods of that name (or uid) that only the disk knows."""
        actual = self._parts.services.actual
        return [
            uid
            for uid in actual.pods()
            if uid == name
            or any((mount.pod_namespace, mount.pod_name) == (namespace, name) for mount in actual.mounts_of_pod(uid))
        ]

    def _mounted_pods(self) -> dict[str, tuple[str, str]]:
        """UID to (namespace, name) of every pod that has volumes here, or that was to have some."""
        from volumehost.node.pod_objects import FINALIZER

        actual = self._parts.services.actual
        found = {}
        for uid in actual.pods():
            mounts = [mount for mount in actual.mounts_of_pod(uid) if mount.pod_name]
            found[uid] = (mounts[0].pod_namespace, mounts[0].pod_name) if mounts else ("", "")
        for pod in self._pods_in_api():
            if FINALIZER in pod.metadata.finalizers or pod.metadata.uid in found:
                found[pod.metadata.uid] = (pod.metadata.namespace, pod.metadata.name)
        return found

    def _only_directories(self, uid: str) -> bool:
        return all(mount.from_directory for mount in self._parts.services.actual.mounts_of_pod(uid))


def _has_failed(volume: VolumeStatus, record: PodRecord, attempts: int) -> bool:
    if volume.volume in record.errors:
        return True
    return volume.attempts >= attempts
