"""Growing a volume on the node while a pod uses it: EXPN-01, -02, -08."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError
from volumehost.node.execution.pending import OperationKey
from volumehost.node.operations.common import Failure, OperationFailedError, Services, Steps, event_message, pod_details
from volumehost.node.operations.expansion import NodeExpansion, Places
from volumehost.node.state.states import MountState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.node.journal.records import Fields
    from volumehost.node.state.desired import VolumeUse
    from volumehost.spec import Spec


class ExpandOperation:
    """One run of "grow this volume"; how far it is stands in the claim's status, so a later run goes on with it."""

    name = "volume_fs_resize"
    spec: Spec | None
    requested_at: float | None = None

    def __init__(self, services: Services, use: VolumeUse) -> None:
        self._services = services
        self._use = use
        self.key = OperationKey(use.volume)
        self.pod_uid = use.pod_uid
        self.plugin_name, self.spec = use.plugin.name, use.spec

    def intent(self) -> Sequence[Fields]:
        """Nothing to record: the claim tells it."""
        return ()

    def run(self, steps: Steps) -> None:
        """Find out where it is, and grow it."""
        steps.enter("expand")
        try:
            NodeExpansion(self._services, self._use).online(self._places())
        except BaseException as error:
            raise self._failure(error) from error

    def _places(self) -> Places:
        use, actual = self._use, self._services.actual
        volume, mount = actual.get_volume(use.volume), actual.get_mount(use.volume, use.pod_uid)
        if volume is None or mount is None or mount.state is not MountState.MOUNTED:
            raise FailedPreconditionError("it is not mounted any more", subject=use.volume)
        if mount.mapper is not None:
            staging = getattr(mount.mapper, "get_staging_path", None)
            # The pod's own device: the one that was mapped last, which the volume tells of, may be gone (CSI-EXP-05).
            device = self._services.host.get_host_util().eval_host_symlinks(mount.path)
            return Places(device, "", staging() if staging is not None else "")
        stage_path = volume.device_mount_path if use.device_mountable else ""
        return Places(volume.device_path, mount.path, stage_path)

    def failed(self, failure: Failure) -> None:
        """Warning VolumeResizeFailed on the pod."""
        recorder = self._services.recorder()
        if recorder is not None:
            recorder.event(self._use.pod, "Warning", "VolumeResizeFailed", event_message(failure.error))

    def _failure(self, cause: BaseException) -> OperationFailedError:
        use, metadata = self._use, self._use.pod.metadata
        details = pod_details(use.volume, metadata.namespace, metadata.name, use.pod_uid)
        return OperationFailedError("MountVolume.NodeExpandVolume failed", use.inner_name, details, cause)
