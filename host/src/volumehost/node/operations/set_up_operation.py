"""What mounting and mapping a volume for a pod have in common: intent, checks, waiting for the device, error states."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from volumehost.errors import (
    FailedPreconditionError,
    FormatError,
    VolumeHostError,
    error_chain,
    is_operation_finished_error,
    is_uncertain_progress_error,
)
from volumehost.hookspecs import AttachableVolumePlugin
from volumehost.mount.corrupted import is_dead_mount
from volumehost.mount.mounter import LinuxMounter
from volumehost.node.execution.pending import OperationKey
from volumehost.node.journal.format import FAILED, MOUNTED, MOUNTING, UNCERTAIN
from volumehost.node.operations.common import (
    NO_FAILURE,
    Failure,
    OperationFailedError,
    Services,
    Steps,
    driver_answered,
    event_message,
    plugin_user,
    pod_details,
    use_fields,
    was_stopped,
)
from volumehost.node.operations.own_places import check_place_in_pod
from volumehost.node.populating.affinity import check_node_affinity
from volumehost.node.state.recorded_spec import wire_spec
from volumehost.node.state.records import MountedVolume
from volumehost.node.state.states import DeviceState, MountState

if TYPE_CHECKING:
    from volumehost.node.journal.records import Fields
    from volumehost.node.operations.expansion import NodeExpansion
    from volumehost.node.state.desired import VolumeUse
    from volumehost.spec import Spec
    from volumehost.volumes import Attacher, Attributes, BlockVolumeMapper

logger = logging.getLogger(__name__)

T = TypeVar("T")

_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class _InUseByAnotherPodError(FailedPreconditionError):
    """The volume is for one pod at a time, and another has it."""


def is_in_use_by_another(error: BaseException) -> bool:
    """Whether a set-up failed because another pod has the volume (BR-42)."""
    return any(isinstance(link, _InUseByAnotherPodError) for link in error_chain(error))


class SetUpOperation:
    """One run of "give this volume to this pod"; every step may be repeated in a later run (MOUNTOP-15).

    Where the volume's name is shared by pods, the reconciler starts nothing else on it meanwhile.
    """

    name: str
    #: The first word of its errors, and the reason of its event.
    prefix: str
    event_reason: str
    spec: Spec | None
    requested_at: float | None = None

    def __init__(self, services: Services, use: VolumeUse) -> None:
        self._services = services
        self._use = use
        self.key = OperationKey(use.volume, use.pod_uid)
        self.pod_uid = use.pod_uid
        self.plugin_name, self.spec = use.plugin.name, use.spec
        self._reconstructed = False
        #: This manager has mounted it for the pod before, whatever became of that.
        self._was_mounted = False
        #: The pod has it already: this run refreshes what is in use.
        self._refreshes = False

    def intent(self) -> Sequence[Fields]:
        """Names everything that a teardown needs, should nothing else be left."""
        use = self._use
        label = {"sel": use.mount_label} if use.selinux is not None else {}
        record = {**use_fields(use), "state": MOUNTING, "at": round(self._services.wall_clock(), 3), **label}
        if not use.is_shared and not use.is_block:
            return (record,)
        volume = {"v": use.volume, "plugin": use.plugin.name, "mode": record["mode"], **wire_spec(use.spec), **label}
        return volume, record

    # --- steps ------------------------------------------------------------------------------------------------

    def _begin(self, steps: Steps) -> bool:
        """Hold the plugin; False when the pod ended between the decision to start and now: then nothing is done."""
        use, services = self._use, self._services
        steps.enter("plugin")
        use.plugin.hold(plugin_user(use.volume, self.pod_uid))
        former = services.actual.get_mount(use.volume, self.pod_uid)
        if not services.desired.wants(use.volume, self.pod_uid):
            if former is None:
                services.note({"v": use.volume, "p": self.pod_uid, "gone": True})
                use.plugin.release(plugin_user(use.volume, self.pod_uid))
            return False
        self._reconstructed = former is not None and former.reconstructed
        self._was_mounted = former is not None and not former.reconstructed and bool(former.path)
        self._refreshes = former is not None and former.state is MountState.MOUNTED
        if use.selinux is not None:
            services.actual.set_selinux_context(use.volume, use.mount_label)
        return True

    def _check(self, exclusive_step: str, steps: Steps) -> None:
        """Whether the node may have it (MOUNTOP-02), and whether the pod may have it beside others (MOUNTOP-05).

        First of all whether its place is our own.
        """
        use, services = self._use, self._services
        try:
            self._check_place(steps.together)
        except BaseException as error:
            raise self._failure(f"{exclusive_step} failed", error) from error
        volume = use.spec.persistent_volume
        if volume is None:
            return
        try:
            check_node_affinity(volume, services.host)
        except BaseException as error:
            self.event_reason = "FailedMount"  # also of a raw block volume (MAP-01)
            raise self._failure("NodeAffinity check failed", error) from error
        if volume.spec.access_modes == [_READ_WRITE_ONCE_POD] and services.actual.is_used_elsewhere(
            use.volume, use.plugin.name, use.inner_name, self.pod_uid
        ):
            refusal = _InUseByAnotherPodError(
                "volume uses the ReadWriteOncePod access mode and is already in use by another pod",
                subject=use.inner_name,
            )
            raise self._failure(f"{exclusive_step} failed", refusal)

    def _check_place(self, together: int) -> None:
        use, layout = self._use, self._services.host.layout
        check_place_in_pod(layout, self.pod_uid, use.plugin.name, use.inner_name, block=use.is_block, together=together)

    def _wait_for_attach(self, steps: Steps) -> str:
        use = self._use
        if not use.is_shared:
            return ""
        volume = self._services.actual.get_volume(use.volume)
        device_path = volume.device_path if volume is not None else ""
        if not use.attachable or not use.plugin.supports(AttachableVolumePlugin):
            return device_path
        steps.enter("wait-for-attach")
        attacher = self._attempt("NewAttacher failed", use.plugin.new_attacher)
        try:
            return attacher.wait_for_attach(use.spec, device_path, use.pod, self._services.attach_timeout)
        except BaseException as error:
            self._doubt_attachment(attacher)
            raise self._failure("WaitForAttach failed", error) from error

    def _doubt_attachment(self, attacher: Attacher) -> None:
        """Somebody else may have detached it meanwhile: then it has to be attached anew first (VERIFYATT-01)."""
        use, services = self._use, self._services
        with contextlib.suppress(Exception):  # what went wrong is told by the failure that brought us here
            if not attacher.volumes_are_attached([use.spec], services.host.get_node_name()).get(use.spec):
                services.actual.mark_unconfirmed(use.volume)

    def _expansion(self) -> NodeExpansion | None:
        """What grows the volume before the pod uses it (EXPN-20); None where there is nothing to grow now.

        What is only refreshed is in use: it grows by an operation of its own, whose failure leaves the mount as it is.
        """
        if self._refreshes or not self._use.has_grown:
            return None
        from volumehost.node.operations.expansion import NodeExpansion

        return NodeExpansion(self._services, self._use)

    # --- states -----------------------------------------------------------------------------------------------

    def _record(
        self,
        state: MountState,
        *,
        attributes: Attributes | None = None,
        mapper: BlockVolumeMapper | None = None,
        path: str = "",
        is_mount: bool | None = None,
        mount_point: str = "",
    ) -> MountedVolume:
        use, metadata = self._use, self._use.pod.metadata
        return MountedVolume(
            volume=use.volume,
            pod_uid=self.pod_uid,
            pod_name=metadata.name,
            pod_namespace=metadata.namespace,
            plugin_name=use.plugin.name,
            inner_name=use.inner_name,
            state=state,
            mode=use.spec.volume_mode(),
            # Else the record of the volume tells it, or nothing depends on it.
            spec=use.spec if use.spec.source() == "csi" and not use.is_shared else None,
            attributes=attributes,
            mapper=mapper,
            path=path,
            is_mount=is_mount,
            mount_point=mount_point,
        )

    def _put_mounted(self, mount: MountedVolume, table_entry: Fields) -> None:
        """On record before it is visible: who learns that it is mounted may rely on the record."""
        use, services = self._use, self._services
        services.note(
            {
                "v": use.volume,
                "p": self.pod_uid,
                "state": MOUNTED,
                "path": mount.path,
                "is_mount": mount.is_mount,
                **table_entry,
                **NO_FAILURE,
            }
        )
        services.actual.put_mount(mount)
        if use.is_shared or use.is_block:
            services.actual.read_spec_from_record(use.volume)
        if use.claim_size:
            services.actual.initialize_size(use.volume, use.claim_size)
        self._take_over()

    def _take_over(self) -> None:
        """A restart may have found the volume's directory without learning its name: that is this one (RECON-40)."""
        use, actual = self._use, self._services.actual
        if not actual.has_directories:
            return
        for found in actual.mounts_of_pod(self.pod_uid):
            same = (found.inner_name, found.plugin_name) == (use.inner_name, use.plugin.name)
            if found.from_directory and same and found.volume != use.volume:
                actual.mark_unmounted(found.volume, self.pod_uid)
                use.plugin.release(plugin_user(found.volume, self.pod_uid))

    def _set_up_failed(
        self,
        error: BaseException,
        *,
        mapper: BlockVolumeMapper | None = None,
        left_a_mount: Callable[[], bool] = lambda: False,
    ) -> None:
        """The pod's mount after a failed set-up (OPERR-03, OPERR-04)."""
        use, actual = self._use, self._services.actual
        former = actual.get_mount(use.volume, self.pod_uid)
        try:
            self._doubt_device(error)
            if former is None:
                if is_uncertain_progress_error(error) or left_a_mount():
                    actual.put_mount(self._record(MountState.UNCERTAIN, mapper=mapper))
            elif (
                former.state is MountState.UNCERTAIN
                and not former.reconstructed
                and is_operation_finished_error(error)
                and not left_a_mount()
            ):
                actual.mark_unmounted(use.volume, self.pod_uid)
        except VolumeHostError as problem:  # the failure of marking is only logged (OPERR-05)
            logger.error("the state of volume %s could not be marked: %s", use.volume, problem)  # noqa: TRY400

    def _doubt_device(self, error: BaseException) -> None:
        """A driver that misses what should have come before has not staged it, or not any more: it is staged anew.

        A call to unstage that had timed out may have been at work still while the volume was staged again.
        """
        volume = self._services.actual.get_volume(self._use.volume)
        missed = driver_answered(error, "FAILED_PRECONDITION")
        if missed and volume is not None and volume.device_state is DeviceState.MOUNTED:
            self._services.actual.mark_device_unmounting(volume.name, volume.device_mount_path)

    def failed(self, failure: Failure) -> None:
        """A Warning on the pod (MOUNTOP-13, MAP-12), and let go of what is certainly not mounted."""
        use, services = self._use, self._services
        mount = services.actual.get_mount(use.volume, self.pod_uid)
        word = FAILED if mount is None else UNCERTAIN if mount.state is MountState.UNCERTAIN else MOUNTED
        services.note({"v": use.volume, "p": self.pod_uid, "state": word, **failure.fields()})
        if mount is None:
            use.plugin.release(plugin_user(use.volume, self.pod_uid))
        recorder = services.recorder()
        if recorder is None or was_stopped(failure.error):
            return
        message = event_message(failure.error)
        recorder.event(use.pod, "Warning", self.event_reason, message)
        volume = use.spec.persistent_volume
        if volume is not None and _is_filesystem_mismatch(failure.error):
            recorder.event(volume, "Warning", "FailedMountOnFilesystemMismatch", message)  # OPERR-01

    # --- errors -----------------------------------------------------------------------------------------------

    def _attempt(self, step: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except BaseException as error:
            raise self._failure(step, error) from error

    def _failure(self, step: str, cause: BaseException) -> OperationFailedError:
        use, metadata = self._use, self._use.pod.metadata
        details = pod_details(use.volume, metadata.namespace, metadata.name, self.pod_uid)
        return OperationFailedError(f"{self.prefix}.{step}", use.inner_name or "nil", details, cause)


def is_mount_point(services: Services, path: str) -> bool | None:
    """Whether the volume is a mount of its own: what was one must be one when it is handed out later (BR-58)."""
    if not path:
        return None
    with contextlib.suppress(OSError, VolumeHostError):
        return services.host.get_mounter().is_mount_point(path)
    return None


def is_mounted_now(services: Services, path: str) -> bool | None:
    """The same where it was mounted just now, so that it need not show that it answers."""
    mounter = services.host.get_mounter()
    if path and isinstance(mounter, LinuxMounter):
        try:
            found = mounter.has_mount_at(path)
        except OSError:
            found = None
        if found is not None:
            return found
    return is_mount_point(services, path)


def has_lost_mount(services: Services, path: str) -> bool:
    """Whether what was mounted there is not any more, or is certainly dead (BR-58, BR-64).

    One that only does not answer may come back, and whoever uses it waits for that: it is not lost (BR-52).
    """
    try:
        return not services.host.get_mounter().is_mount_point(path)
    except FileNotFoundError:
        return True
    except (OSError, VolumeHostError) as error:
        return is_dead_mount(error)


def _is_filesystem_mismatch(error: BaseException) -> bool:
    return any(isinstance(link, FormatError) and link.kind == "FilesystemMismatch" for link in error_chain(error))
