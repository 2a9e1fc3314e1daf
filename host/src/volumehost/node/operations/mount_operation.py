"""Mounting (and refreshing) a filesystem volume for a pod: MOUNTOP-01 to -15, with the error states of OPERR."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from volumehost.errors import OperationError, PluginCallError, UncertainProgressError, VolumeHostError
from volumehost.node.operations.common import MOUNT_VOLUME
from volumehost.node.operations.device_mount import mount_device
from volumehost.node.operations.lost_device import undo_lost_device
from volumehost.node.operations.set_up_operation import SetUpOperation, has_lost_mount, is_mount_point, is_mounted_now
from volumehost.node.populating.pods import fs_user_of
from volumehost.node.state.states import MountState
from volumehost.volumes import Attributes, MounterArgs

if TYPE_CHECKING:
    from volumehost.node.journal.records import Fields
    from volumehost.node.operations.common import Services, Steps
    from volumehost.node.state.desired import VolumeUse
    from volumehost.volumes import Mounter

logger = logging.getLogger(__name__)


class MountOperation(SetUpOperation):
    """One run of "mount this volume for this pod"."""

    name = MOUNT_VOLUME
    prefix = "MountVolume"
    event_reason = "FailedMount"

    def __init__(self, services: Services, use: VolumeUse, *, is_remount: bool) -> None:
        super().__init__(services, use)
        self._is_remount = is_remount

    def run(self, steps: Steps) -> None:
        """Check, wait for the device, mount it, set the volume up, grow it, mark it as mounted."""
        use, services = self._use, self._services
        if not self._begin(steps):
            return
        if not self._was_mounted or use.remounts:
            self.requested_at = use.requested_at
        steps.enter("check")
        self._check("SetUp", steps)
        self._check_mount_options()
        try:
            mounter = use.plugin.new_mounter(use.spec, use.pod)
        except BaseException as error:
            raise self._failure("NewMounter initialization failed", error) from error
        steps.make_intent_durable(required=True)
        device_path = self._wait_for_attach(steps)
        if not undo_lost_device(services, use, steps):
            self._undo_lost_mount(steps)
        stage_path = mount_device(services, use, device_path, steps, self._failure) if use.device_mountable else ""
        steps.enter("set-up")
        try:
            self._set_up(steps, mounter)
        except BaseException as error:
            self._set_up_failed(error, left_a_mount=lambda: self._left_a_mount(mounter))
            raise self._failure("SetUp failed", error) from error
        try:
            self._grow(steps, device_path, mounter, stage_path)
        except BaseException as error:
            self._leave_uncertain(error)
            raise self._failure("Setup failed while expanding volume", error) from error
        steps.enter("mark-mounted")
        try:
            self._mark_mounted(mounter)
        except BaseException as error:
            self._leave_uncertain(error)
            raise self._failure("MarkVolumeAsMounted failed", error) from error

    def _undo_lost_mount(self, steps: Steps) -> None:
        """What was mounted and no longer is (a reboot, an unmount behind our back) is taken down before it is set up.

        Whoever serves the volume may still count it as mounted there. A second set-up would count twice with some
        drivers, and their volume would never be free again. Volumes of the node alone are not served by anybody.
        """
        use, services = self._use, self._services
        if not use.device_mountable:
            return
        known = services.journal.entry(use.volume, self.pod_uid) or {}
        path = known.get("mount") or known.get("path")  # of a directory that was found only the former is the mount
        if known.get("is_mount") and path and has_lost_mount(services, path):
            self._undo(steps)

    def _set_up(self, steps: Steps, mounter: Mounter) -> None:
        """Set the volume up; anew, where whoever serves it only counts it as mounted (BR-58).

        That can be when a former process was ended before it could record how its set-up went, and the mount has gone
        since: the driver says that it is done, and nothing is there.
        """
        use, services = self._use, self._services
        mounter.set_up(self._arguments(steps))
        if not use.device_mountable:
            return
        former = services.actual.get_mount(use.volume, self.pod_uid)
        unknown = former is not None and former.reconstructed and former.is_mount is None
        if unknown and is_mount_point(services, mounter.get_path()) is False:
            self._undo(steps)
            steps.enter("set-up")
            mounter.set_up(self._arguments(steps))

    def _undo(self, steps: Steps) -> None:
        use = self._use
        steps.enter("undo-lost-mount")
        try:
            use.plugin.new_unmounter(use.inner_name, self.pod_uid).tear_down()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything; the set-up decides
            logger.warning("what is left of volume %s of pod %s was not undone: %s", use.volume, self.pod_uid, error)

    def _check_mount_options(self) -> None:
        use, volume = self._use, self._use.spec.persistent_volume
        if volume is not None and volume.spec.mount_options and not use.plugin.supports_mount_option():
            refusal = OperationError("mount options are not supported for this volume type", subject=use.inner_name)
            raise self._failure("MountOptionSupport check failed", refusal)

    def _grow(self, steps: Steps, device_path: str, mounter: Mounter, stage_path: str) -> None:
        expansion = self._expansion()
        if expansion is not None:
            from volumehost.node.operations.expansion import Places

            steps.enter("expand")
            expansion.during_set_up(Places(device_path, mounter.get_path(), stage_path))

    def _leave_uncertain(self, error: BaseException) -> None:
        """It is there, so it has to be torn down one day, whatever went wrong after that."""
        self._set_up_failed(UncertainProgressError(str(error)))
        self._services.actual.mark_uncertain(self._use.volume, self.pod_uid)

    def _arguments(self, steps: Steps) -> MounterArgs:
        use = self._use
        applicator = None
        if use.fs_group is not None:
            from volumehost.node.operations.ownership import OwnershipApplicator

            applicator = OwnershipApplicator(self._services, steps, use)
        context = use.pod.spec.security_context
        return MounterArgs(
            fs_user=fs_user_of(use.pod),
            fs_group=use.fs_group,
            fs_group_change_policy=context.fs_group_change_policy if context is not None else None,
            desired_size=use.size_limit,
            selinux_label=use.mount_label,
            recorder=self._services.recorder(),
            volume_ownership_applicator=applicator,
            reconstructed_volume=self._reconstructed,
            is_remount=self._is_remount,
        )

    def _mark_mounted(self, mounter: Mounter) -> None:
        path = mounter.get_path()
        if not isinstance(path, str):
            raise PluginCallError(f"get_path returned {path!r}, not a str", plugin=self._use.plugin.name)
        is_mount = is_mounted_now(self._services, path)
        known: Fields = {}
        if is_mount is False:
            known = self._services.journal.entry(self._use.volume, self.pod_uid) or {}
        if known.get("is_mount") and known.get("path") == path:
            raise PluginCallError(
                f"it says that it has mounted the volume, and nothing is mounted at {path}, where it was before",
                plugin=self._use.plugin.name,
                hint="what containers write there would be lost in the host's own filesystem",
            )
        attributes = _attributes_of(mounter)
        mount = self._record(MountState.MOUNTED, attributes=attributes, path=path, is_mount=is_mount)
        self._put_mounted(mount, _place_in_table(self._services, path) if is_mount else {})

    def _left_a_mount(self, mounter: Mounter) -> bool:
        """Whether the plugin made a mount in the pod's directory and then failed for good without undoing it."""
        try:
            path = mounter.get_path()
            return _is_in_pods(self._services, path) and bool(is_mount_point(self._services, path))
        except Exception:
            logger.debug("whether set-up left a mount is not known", exc_info=True)
            return False


def _attributes_of(mounter: Mounter) -> Attributes | None:
    """What the mounter says of the volume that it has set up; None where it does not: it is asked when that is needed.

    The mounter itself is not kept, since there are thousands of volumes and nothing else is ever asked of most.
    """
    try:
        attributes = mounter.get_attributes()
    except Exception:
        logger.debug("a mounter does not tell the attributes of its volume", exc_info=True)
        return None
    return _known_attributes.setdefault(attributes, attributes) if type(attributes) is Attributes else None


#: Of each kind one, for all volumes.
_known_attributes: dict[Attributes, Attributes] = {}


def _is_in_pods(services: Services, path: str) -> bool:
    return path.startswith(f"{services.host.get_pods_dir()}/")


def _place_in_table(services: Services, path: str) -> dict[str, str]:
    """What the mount table calls a mount that was not made in the pod's directory: a hostPath may lead over links."""
    if _is_in_pods(services, path):
        return {}
    with contextlib.suppress(OSError, VolumeHostError):
        return {"mount": services.host.get_host_util().eval_host_symlinks(path)}
    return {}
