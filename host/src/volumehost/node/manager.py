"""VolumeManager: takes pods, mounts their volumes, and says what to mount where in their containers.

The one entry to the node for the command line, the agent and embedding programs.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from volumehost.errors import FailedPreconditionError
from volumehost.node.assembly import Settings
from volumehost.node.at_work import AtWork, begin
from volumehost.node.populating.pod_objects import DEFAULT_NAMESPACE, apply_pod, bound_pod

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.control.plane import ControlPlane
    from volumehost.host_services import MountInterface
    from volumehost.hosts.node_host import NodeHost
    from volumehost.hosts.tokens import Signer
    from volumehost.loader.events import DynamicPluginProber
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.mount.selinux import SELinux
    from volumehost.node.assembly import NodeParts
    from volumehost.node.ending import PodEnding
    from volumehost.node.execution.operation_metrics import OperationMetrics
    from volumehost.node.explaining.explanation import PodExplanation
    from volumehost.node.mounting import PodMounting
    from volumehost.node.operations.common import StepObserver
    from volumehost.node.restart.orphan_care import OrphanCare
    from volumehost.node.restart.orphans import OrphanedPod
    from volumehost.node.status.records import PodStatus
    from volumehost.node.workloads.containers import ContainerMounts
    from volumehost.storage_driver import StorageDrivers

#: Longest wait for a pod's volumes, in seconds (CONST-02).
POD_TIMEOUT = 123.0

#: How long leaving a manager waits for operations that run, in seconds.
EXIT_GRACE = 10.0


class VolumeManager:
    """The volumes of one node, under one root directory. A context manager: entering takes the root directory.

    ::

        with VolumeManager("/var/lib/volumehost") as manager:
            status = manager.mount_pod(pod)
            for container in manager.container_mounts(status):
                ...

    Leaving it leaves mounts alone; a later manager finds them. While one manager works on a root directory, another
    cannot (RootDirectoryLockedError). Safe for threads.

    :param root_dir: where state and volumes are; created when it is not there.
    :param node_name: name of the node; by default the one used before in the root directory, at first the machine's.
    :param plugins: volume plugins (classes, instances, modules) besides those that are found.
    :param prober: how plugins are found; by the entry points of installed distributions by default.
    :param plugin_manager: loads the plugins; a default one when not given. It must be new.
    :param api: the API; by default the embedded store in the root directory.
    :param mounter: stands in for the kernel's mounts.
    :param selinux: stands in for the machine's SELinux.
    :param token_signer: answers ``(namespace, service account, TokenRequest)`` with the request and its status, for
        drivers that want tokens of a pod's service account. By default tokens are signed with a key of the root
        directory where there is no cluster; in a cluster there are none without it.
    :param adopt: tear down volumes of which only a directory tells and that no pod wants; for a node's agent.
    :param told_pods: do not ask the API which pods there are: the caller has sources of its own, and tells by
        :meth:`set_known_pods` once all of them have told theirs. Until then nothing that seems unwanted is unmounted.
    :param share_root: put the root directory on a shared mount, so that mounts reach containers that run already; for
        a node's agent. The mount stays.
    :param controllers: bind and provision claims, attach and grow volumes in this process, as a cluster's control plane
        would. By default that is so with the embedded store. It begins when a pod needs it; for a node's agent
        (``adopt``) at once.
    :param cluster: the API is a cluster's, whose control plane does all that; volumes are reported in node status as
        in use, and mounted when they are attached. Pods get no finalizer.
    :param observer: is told of every step of every operation.
    :param metrics: counts finished operations.
    :param exit_grace: seconds that leaving waits for operations that run. While one still hangs after that, the root
        directory stays locked until the process ends.
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
        selinux: SELinux | None = None,
        token_signer: Signer | None = None,
        adopt: bool = False,
        told_pods: bool = False,
        share_root: bool = False,
        controllers: bool | None = None,
        cluster: bool = False,
        observer: StepObserver | None = None,
        metrics: OperationMetrics | None = None,
        exit_grace: float = EXIT_GRACE,
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
            selinux=selinux,
            token_signer=token_signer,
            adopt=adopt,
            share_root=share_root,
            controllers=controllers,
            cluster=cluster,
            observer=observer,
            metrics=metrics,
            clock=clock,
            boot_id=boot_id,
        )
        self._exit_grace = exit_grace
        self._told_pods = told_pods
        self._at_work: AtWork | None = None
        self._privileged = False

    # --- life -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Take the root directory, find out what is mounted, and go on where a former manager stopped.

        :raises RootDirectoryError: it cannot be used.
        :raises RootDirectoryLockedError: another manager works on it.
        :raises StoreError: the embedded store cannot be used.
        """
        if self._at_work is not None:
            raise FailedPreconditionError("the manager is at work already", action="entering a VolumeManager")
        self._at_work = begin(self._settings, told_pods=self._told_pods, exit_grace=self._exit_grace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go of the root directory; mounts stay."""
        if self._at_work is not None:
            parts, self._at_work = self._at_work.parts, None
            parts.close(self._exit_grace)

    @property
    def host(self) -> NodeHost:
        """The host that plugins see."""
        return self._now.parts.host

    @property
    def plugins(self) -> VolumePluginManager:
        """The loaded plugins."""
        return self._now.parts.services.plugins

    @property
    def api(self) -> ApiClient:
        """The API."""
        return self._now.api

    @property
    def control(self) -> ControlPlane:
        """The control plane of this manager, at work from now on.

        :raises FailedPreconditionError: it has none, since controllers elsewhere do its work.
        """
        control = self._now.parts.services.control
        self._now.parts.claims.begin()
        if control.plane is None:
            raise FailedPreconditionError(
                "controllers elsewhere do this", action="using the control plane", hint="make it with controllers=True"
            )
        return control.plane

    @property
    def drivers(self) -> StorageDrivers:
        """The storage drivers of all loaded plugins."""
        return self._now.parts.services.control.drivers

    @property
    def parts(self) -> NodeParts:
        """The parts of the manager at work, for the rooms above that tell of them: metrics, agent."""
        return self._now.parts

    @property
    def root_dir(self) -> str:
        """The root directory, links resolved (BR-69)."""
        return self._now.parts.host.layout.root_dir

    @property
    def stays_at_work(self) -> bool:
        """It ends with the caller's block, as far as a command is concerned."""
        return False

    # --- pods -------------------------------------------------------------------------------------------------------

    def mount_pod(self, pod: object, *, timeout: float = POD_TIMEOUT, attempts: int | None = None) -> PodStatus:
        """Put the pod into the API, mount every volume that a container uses, and wait until that is done.

        In a cluster the pod must be there, bound to this node.

        Other pods are left as they are.

        :param pod: a Pod, a mapping in wire form, JSON text, or a model of the ``kubernetes`` client.
        :param timeout: seconds to wait.
        :param attempts: see :meth:`wait_for_pod`.
        :raises InvalidObjectError: the manifest is wrong; nothing was done.
        :raises MissingPrivilegeError: this process cannot mount; nothing was done.
        :raises VolumesFailedError: a volume cannot be mounted; the others are.
        :raises WaitTimeoutError: not all were mounted in time; they are tried further while the manager is at work.
        """
        self._check_privileges()
        api = self._now.api
        stored = bound_pod(api, pod, self.host.get_node_name()) if self._settings.cluster else apply_pod(api, pod)
        self._now.mounting.begin(stored, at_once=True)
        return self._now.mounting.wait(stored, timeout, attempts)

    def sync_pod(self, pod: Pod, *, at_once: bool = True) -> None:
        """Begin to mount the volumes of a pod that is in the API, or refresh those that want that (POP-16).

        Returns at once; :meth:`wait_for_pod` waits.

        :param at_once: try now what failed and waits for its next attempt; its failures no longer count (BR-53).
        """
        self._check_privileges()
        self._now.mounting.begin(copy.deepcopy(pod), at_once=at_once)  # the caller may change its own (POP-28)

    def wait_for_pod(self, pod: Pod, *, timeout: float = POD_TIMEOUT, attempts: int | None = None) -> PodStatus:
        """Wait until every used volume of the pod is mounted.

        :param attempts: give up once each volume that is not mounted has failed this often; by default it is tried
            until the timeout. What cannot be tried at all (no plugin, a claim that is not bound) fails at once, when
            the other volumes are settled.
        :raises VolumesFailedError: given up; ``details`` has one line for each volume.
        :raises WaitTimeoutError: the time is over; ``details`` likewise (BR-83).
        """
        return self._now.mounting.wait(pod, timeout, attempts)

    def set_known_pods(self, pods: Iterable[Pod]) -> None:
        """All sources of a manager made with ``told_pods`` have told their pods: these are all there are (POP-02).

        What belongs to none of them is unmounted from now on: pods of which something is mounted, and that nobody
        told, have ended. Pods that come later need no mention here.
        """
        self._now.set_known_pods(pods)

    def end_pod(self, uid: str, namespace: str, name: str) -> None:
        """The workload of the pod has ended (BR-51): unmount its volumes, then remove its directory and our finalizer.

        Returns at once; what takes longer goes on, also in a later manager. May be repeated.
        """
        self._now.unmounting.begin(uid, namespace, name)

    def may_be_in_use(self, uid: str) -> bool:
        """Whether something of the pod is mounted or may be; what a reboot took is not."""
        return self._now.unmounting.may_be_in_use(uid)

    def unmount_pod(self, name: str, namespace: str = DEFAULT_NAMESPACE, *, timeout: float = POD_TIMEOUT) -> None:
        """Delete the pod, unmount all its volumes, remove its directory; the word that its workload has ended.

        Volumes that no other pod uses are unmounted from the node and detached too. Claims and their volumes stay, but
        for those that were made for the pod.

        :param name: its name, or its uid when only the disk knows it.
        :raises ObjectNotFoundError: neither the API nor the disk knows the pod.
        :raises FailedPreconditionError: something else keeps it: it is a static pod of the agent that runs.
        :raises WaitTimeoutError: something is still mounted; ``details`` says what and why.
        :raises StillMountedError: something is mounted below the pod's directory that is none of its volumes.
        :raises RemovalError: files are left in a volume's directory; they were kept (BR-70).
        """
        self._check_privileges()
        self._now.ending.one(name, namespace, timeout)

    def unmount_all(self, *, timeout: float = POD_TIMEOUT) -> list[str]:
        """Unmount every pod that has volumes here; returns ``namespace/name`` of each.

        One that fails does not stop the others.

        :raises WaitTimeoutError: some could not be unmounted in time; ``details`` says which and why.
        :raises VolumesFailedError: waiting longer would help none of those that are left; ``details`` likewise.
        """
        self._check_privileges()
        return self._now.ending.all(timeout)

    @property
    def mounting(self) -> PodMounting:
        """For pods that come many at a time, which nobody may change any more (MissingPrivilegeError as above)."""
        self._check_privileges()
        return self._now.mounting

    @property
    def ending(self) -> PodEnding:
        """Who ends pods that somebody asks to end, for those who have a say in that: the agent."""
        return self._now.ending

    def notes(self) -> list[str]:
        """What should be known beside the status of pods: what whoever tells this manager of pods cannot read."""
        status = self._now.parts.status
        return [status.warning] * bool(status.warning) + status.notes()

    def drain(self, *, timeout: float = POD_TIMEOUT) -> None:
        """Take everything that is mounted off the node, in order; the pods stay, for the next manager (BR-54).

        Directories that are no mounts stay too. Nothing is mounted any more after that.

        :raises WaitTimeoutError: something is still mounted; ``details`` says what and why.
        """
        from volumehost.node.draining import Draining

        self._check_privileges()
        Draining(self._now.parts).run(timeout)

    # --- questions --------------------------------------------------------------------------------------------------

    def status(self) -> list[PodStatus]:
        """Every pod in the API, every other one that this manager was told of, and those that something is mounted for.

        While the API cannot be read its pods are told by what is known of them here.
        """
        return self._now.pod_statuses()

    def pod_status(self, pod: Pod) -> PodStatus:
        """One pod, as it is in the API."""
        return self._now.parts.status.of_pod(pod)

    def explain(self, pod: Pod | PodStatus) -> PodExplanation:
        """Why the pod's volumes are not mounted, or not gone: where each is, what it waits for, what to do (BR-83).

        :param pod: as the API has it, or what :meth:`status` or :meth:`mount_pod` returned.
        """
        from volumehost.node.explaining.explain import explain_live, with_object

        return explain_live(self._now.parts, with_object(self._now.parts, self._now.api, pod))

    def container_mounts(self, pod: Pod | PodStatus) -> list[ContainerMounts]:
        """For each container of a mounted pod, what to mount where.

        A pod that an earlier manager mounted is taken as it is: nothing is set up again.

        :param pod: what :meth:`mount_pod` returned, or the pod as the API has it.
        :raises FailedPreconditionError: the pod, or a volume that it needs, is not mounted (any more).
        :raises UnsafePathError: a ``subPath`` cannot be made, or leads out of its volume.
        :raises SpecError: a ``subPathExpr`` names a variable that has no value.
        """
        from volumehost.node.workloads.containers import container_mounts

        return container_mounts(self._now.parts, self._now.mounting, self._now.api, pod)

    @property
    def orphan_care(self) -> OrphanCare:
        """Looks after pod directories of no known pod; a node's agent calls its ``housekeep`` from time to time."""
        return self._now.orphans

    def orphans(self) -> list[OrphanedPod]:
        """Pod directories of no known pod, and what keeps each (ORPHAN-01)."""
        return self._now.orphans.find()

    def clean_orphans(self, *, dry_run: bool = True) -> list[OrphanedPod]:
        """Unmount and remove what :meth:`orphans` finds; by default only tell. Never deletes data (BR-84)."""
        return self._now.orphans.clean(dry_run=dry_run)

    # --- inside -----------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> AtWork:
        if self._at_work is None:
            raise FailedPreconditionError(
                "the manager is not at work", action="using a VolumeManager", hint="use it in a with statement"
            )
        return self._at_work

    def _check_privileges(self) -> None:
        if not self._privileged:
            from volumehost.mount.privileges import check_mount_privileges

            check_mount_privileges()
            self._privileged = True
