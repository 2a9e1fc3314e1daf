"""Mounting (and refreshing) a filesystem volume for a pod: MOUNTOP-01 to -15, with the error states of OPERR."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from volumehost.errors import (
    FailedPreconditionError,
    FormatError,
    OperationError,
    PluginCallError,
    UncertainProgressError,
    VolumeHostError,
    error_chain,
    is_operation_finished_error,
    is_uncertain_progress_error,
)
from volumehost.hookspecs import AttachableVolumePlugin
from volumehost.node.actual import MountedVolume
from volumehost.node.affinity import check_node_affinity
from volumehost.node.device_mount import mount_device
from volumehost.node.journal_format import FAILED, MOUNTED, MOUNTING, UNCERTAIN
from volumehost.node.operations import (
    NO_FAILURE,
    Failure,
    OperationFailedError,
    Services,
    Steps,
    event_message,
    plugin_user,
    pod_details,
)
from volumehost.node.pending import OperationKey
from volumehost.node.pods import fs_user_of
from volumehost.node.recorded_spec import wire_spec
from volumehost.node.states import MountState
from volumehost.volumes import MounterArgs

if TYPE_CHECKING:
    from volumehost.node.desired import VolumeUse
    from volumehost.node.journal_format import Fields
    from volumehost.volumes import Mounter

logger = logging.getLogger(__name__)

T = TypeVar("T")


class MountOperation:
    """One run of "mount this volume for this pod"; every step may be repeated in a later run (MOUNTOP-15)."""

    name = "volume_mount"

    def __init__(self, services: Services, use: VolumeUse, *, is_remount: bool) -> None:
        self._services = services
        self._use = use
        self._is_remount = is_remount
        shared = use.attachable or use.device_mountable
        self.key = OperationKey(use.volume, "" if shared else use.pod_uid)
        self.pod_uid = use.pod_uid
        self._reconstructed = False

    def intent(self) -> Sequence[Fields]:
        """Names everything that a teardown needs, should nothing else be left."""
        use, plugin, metadata = self._use, self._use.plugin, self._use.pod.metadata
        record = {
            "v": use.volume,
            "p": use.pod_uid,
            "state": MOUNTING,
            "at": round(self._services.wall_clock(), 3),
            "plugin": plugin.name,
            "dist": plugin.origin.distribution,
            "ver": plugin.origin.version,
            "inner": use.inner_name,
            "outer": use.outer_names,
            "ns": metadata.namespace,
            "pod": metadata.name,
            "mode": use.spec.volume_mode(),
        }
        if not use.attachable and not use.device_mountable:
            return (record,)
        return {"v": use.volume, "plugin": plugin.name, "mode": record["mode"], **wire_spec(use.spec)}, record

    def run(self, steps: Steps) -> None:
        """Check, wait for the device, mount it, set the volume up, mark it as mounted."""
        use, services = self._use, self._services
        steps.enter("plugin")
        use.plugin.hold(plugin_user(use.volume, use.pod_uid))
        if services.desired.get(use.volume, use.pod_uid) is None:
            self._abandon()
            return
        former = services.actual.get_mount(use.volume, use.pod_uid)
        self._reconstructed = former is not None and former.reconstructed
        steps.enter("check")
        self._check()
        mounter = self._attempt("MountVolume.NewMounter initialization failed", self._new_mounter)
        steps.make_intent_durable(required=True)
        device_path = self._wait_for_attach(steps)
        if use.device_mountable:
            mount_device(services, use, device_path, steps, self._failure)
        steps.enter("set-up")
        try:
            mounter.set_up(self._arguments())
        except BaseException as error:
            self._set_up_failed(error, mounter)
            raise self._failure("MountVolume.SetUp failed", error) from error
        steps.enter("mark-mounted")
        try:
            self._mark_mounted(mounter)
        except BaseException as error:
            # It is there, so it has to be torn down one day, whatever could not be found out about it.
            self._set_up_failed(UncertainProgressError(str(error)), mounter)
            raise self._failure("MountVolume.MarkVolumeAsMounted failed", error) from error

    def _abandon(self) -> None:
        """The pod ended between the decision to mount and now: nothing has been done, nothing is to be told."""
        use, services = self._use, self._services
        if services.actual.get_mount(use.volume, use.pod_uid) is None:
            services.note({"v": use.volume, "p": use.pod_uid, "gone": True})
            use.plugin.release(plugin_user(use.volume, use.pod_uid))

    # --- steps ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        use, services = self._use, self._services
        volume = use.spec.persistent_volume
        if volume is None:
            return
        self._attempt(
            "MountVolume.NodeAffinity check failed",
            lambda: check_node_affinity(volume, services.host.get_node_labels(), services.host.get_node_name()),
        )
        if volume.spec.mount_options and not use.plugin.supports_mount_option():
            refusal = OperationError("mount options are not supported for this volume type", subject=use.inner_name)
            raise self._failure("MountVolume.MountOptionSupport check failed", refusal)
        if volume.spec.access_modes == ["ReadWriteOncePod"] and services.actual.is_mounted_elsewhere(
            use.volume, use.pod_uid
        ):
            refusal = FailedPreconditionError(
                "volume uses the ReadWriteOncePod access mode and is already in use by another pod",
                subject=use.inner_name,
            )
            raise self._failure("MountVolume.SetUp failed", refusal)

    def _new_mounter(self) -> Mounter:
        return self._use.plugin.new_mounter(self._use.spec, self._use.pod)

    def _wait_for_attach(self, steps: Steps) -> str:
        use = self._use
        device_path = self._services.actual.check(use.volume, use.pod_uid).device_path
        if not use.attachable or not use.plugin.supports(AttachableVolumePlugin):
            return device_path
        steps.enter("wait-for-attach")
        return self._attempt(
            "MountVolume.WaitForAttach failed",
            lambda: use.plugin.new_attacher().wait_for_attach(
                use.spec, device_path, use.pod, self._services.attach_timeout
            ),
        )

    def _arguments(self) -> MounterArgs:
        use = self._use
        context = use.pod.spec.security_context
        return MounterArgs(
            fs_user=fs_user_of(use.pod),
            fs_group=use.fs_group,
            fs_group_change_policy=context.fs_group_change_policy if context is not None else None,
            desired_size=use.size_limit,
            recorder=self._services.recorder(),
            reconstructed_volume=self._reconstructed,
            is_remount=self._is_remount,
        )

    # --- states -----------------------------------------------------------------------------------------------

    def _mark_mounted(self, mounter: Mounter) -> None:
        use, services = self._use, self._services
        path = mounter.get_path()
        if not isinstance(path, str):
            raise PluginCallError(f"get_path returned {path!r}, not a str", plugin=use.plugin.name)
        is_mount = _is_mount(services, path)
        # On record before it is visible: who learns that it is mounted may rely on the record.
        services.note(
            {
                "v": use.volume,
                "p": use.pod_uid,
                "state": MOUNTED,
                "path": path,
                "is_mount": is_mount,
                **(_place_in_table(services, path) if is_mount else {}),
                **NO_FAILURE,
            }
        )
        services.actual.put_mount(self._record(MountState.MOUNTED, mounter, path, is_mount))
        self._take_over()

    def _take_over(self) -> None:
        """A restart may have found the volume's directory without learning its name: that is this one (RECON-40)."""
        use, actual = self._use, self._services.actual
        for found in actual.mounts_of_pod(use.pod_uid):
            same = (found.inner_name, found.plugin_name) == (use.inner_name, use.plugin.name)
            if found.from_directory and same and found.volume != use.volume:
                actual.mark_unmounted(found.volume, use.pod_uid)
                use.plugin.release(plugin_user(found.volume, use.pod_uid))

    def _record(
        self, state: MountState, mounter: Mounter | None, path: str = "", is_mount: bool | None = None
    ) -> MountedVolume:
        use, metadata = self._use, self._use.pod.metadata
        return MountedVolume(
            volume=use.volume,
            pod_uid=use.pod_uid,
            pod_name=metadata.name,
            pod_namespace=metadata.namespace,
            plugin_name=use.plugin.name,
            inner_name=use.inner_name,
            state=state,
            mode=use.spec.volume_mode(),
            spec=use.spec,
            mounter=mounter,
            path=path,
            is_mount=is_mount,
        )

    def _set_up_failed(self, error: BaseException, mounter: Mounter) -> None:
        """The pod's mount after a failed set-up (OPERR-03, OPERR-04)."""
        use, actual = self._use, self._services.actual
        former = actual.get_mount(use.volume, use.pod_uid)
        try:
            if former is None:
                if is_uncertain_progress_error(error) or self._left_a_mount(mounter):
                    actual.put_mount(self._record(MountState.UNCERTAIN, mounter))
            elif (
                former.state is MountState.UNCERTAIN
                and not former.reconstructed
                and is_operation_finished_error(error)
                and not self._left_a_mount(mounter)
            ):
                actual.mark_unmounted(use.volume, use.pod_uid)
        except VolumeHostError as problem:  # the failure of marking is only logged (OPERR-05)
            logger.error("the state of volume %s could not be marked: %s", use.volume, problem)  # noqa: TRY400

    def _left_a_mount(self, mounter: Mounter) -> bool:
        """Whether the plugin made a mount in the pod's directory and then failed for good without undoing it."""
        try:
            path = mounter.get_path()
            return _is_in_pods(self._services, path) and bool(_is_mount(self._services, path))
        except Exception:
            logger.debug("whether set-up left a mount is not known", exc_info=True)
            return False

    def failed(self, failure: Failure) -> None:
        """Warning FailedMount on the pod (MOUNTOP-13), and let go of what is certainly not mounted."""
        use, services = self._use, self._services
        mount = services.actual.get_mount(use.volume, use.pod_uid)
        word = FAILED if mount is None else UNCERTAIN if mount.state is MountState.UNCERTAIN else MOUNTED
        services.note({"v": use.volume, "p": use.pod_uid, "state": word, **failure.fields()})
        if mount is None:
            use.plugin.release(plugin_user(use.volume, use.pod_uid))
        recorder = services.recorder()
        if recorder is None:
            return
        message = event_message(failure.error)
        recorder.event(use.pod, "Warning", "FailedMount", message)
        volume = use.spec.persistent_volume
        if volume is not None and _is_filesystem_mismatch(failure.error):
            recorder.event(volume, "Warning", "FailedMountOnFilesystemMismatch", message)  # OPERR-01

    # --- errors -----------------------------------------------------------------------------------------------

    def _attempt(self, prefix: str, step: Callable[[], T]) -> T:
        try:
            return step()
        except BaseException as error:
            raise self._failure(prefix, error) from error

    def _failure(self, prefix: str, cause: BaseException) -> OperationFailedError:
        use, metadata = self._use, self._use.pod.metadata
        details = pod_details(use.volume, metadata.namespace, metadata.name, use.pod_uid)
        return OperationFailedError(prefix, use.inner_name or "nil", details, cause)


def _is_filesystem_mismatch(error: BaseException) -> bool:
    return any(isinstance(link, FormatError) and link.kind == "FilesystemMismatch" for link in error_chain(error))


def _is_mount(services: Services, path: str) -> bool | None:
    """Whether the volume is a mount of its own: what was one must be one when it is handed out later (BR-58)."""
    if not path:
        return None
    with contextlib.suppress(OSError, VolumeHostError):
        return services.host.get_mounter().is_mount_point(path)
    return None


def _is_in_pods(services: Services, path: str) -> bool:
    return path.startswith(f"{services.host.get_pods_dir()}/")


def _place_in_table(services: Services, path: str) -> dict[str, str]:
    """What the mount table calls a mount that was not made in the pod's directory: a hostPath may lead over links."""
    if _is_in_pods(services, path):
        return {}
    with contextlib.suppress(OSError, VolumeHostError):
        return {"mount": services.host.get_host_util().eval_host_symlinks(path)}
    return {}
