"""Takes over that a volume is attached, from node status: VerifyControllerAttachedVolume (VERIFY-02)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from volumehost.errors import TransientOperationError
from volumehost.node.execution.pending import OperationKey
from volumehost.node.operations.common import NO_FAILURE, Failure, OperationFailedError, Services, Steps, plugin_user
from volumehost.node.state.states import Attachability

if TYPE_CHECKING:
    from volumehost.node.cluster.attachments import ControllerAttachments
    from volumehost.node.journal.records import Fields
    from volumehost.node.state.desired import VolumeUse
    from volumehost.spec import Spec

#: As the journal calls a volume that is attached.
ATTACHED = "attached"


class VerifyOperation:
    """One run. It reaches nothing outside, so that it needs no durable intent."""

    name = "verify_controller_attached_volume"
    spec: Spec | None
    requested_at: float | None = None

    def __init__(self, services: Services, attachments: ControllerAttachments, use: VolumeUse) -> None:
        self._services = services
        self._attachments = attachments
        self._use = use
        self.key = OperationKey(use.volume)
        self.pod_uid = use.pod_uid
        self.plugin_name, self.spec = use.plugin.name, use.spec

    def intent(self) -> Sequence[Fields]:
        """The plugin that the volume needs from now on."""
        use = self._use
        return ({"v": use.volume, "plugin": use.plugin.name, "mode": use.spec.volume_mode()},)

    def run(self, steps: Steps) -> None:
        """Ask whether it has to be attached at all (BR-49), then take the device path from node status."""
        use, services = self._use, self._services
        steps.enter("plugin")
        use.plugin.hold(plugin_user(use.volume, ""))
        try:
            if not use.plugin.can_attach(use.spec):
                self._do_without()
                return
            steps.enter("verify")
            path = self._attachments.device_path(use.volume)
            if path is None:
                raise TransientOperationError("Volume not attached according to node status", subject=use.volume)
        except BaseException as error:
            if services.actual.get_volume(use.volume) is None:
                services.note({"v": use.volume, "gone": True})
                use.plugin.release(plugin_user(use.volume, ""))
            details = f'(UniqueName: "{use.volume}") pod "{use.pod.metadata.namespace}/{use.pod.metadata.name}"'
            prefix = "VerifyControllerAttachedVolume failed"
            raise OperationFailedError(prefix, use.inner_name, details, error) from error
        steps.enter("mark-attached")
        services.actual.mark_attached(use.volume, use.plugin.name, use.spec, Attachability.TRUE, path)
        services.note({"v": use.volume, "att": ATTACHED, "dpath": path, **NO_FAILURE})

    def _do_without(self) -> None:
        """It needs no attaching any more (POP-31): whatever attachment there is, is the controller's to undo."""
        use, services = self._use, self._services
        known = services.actual.get_volume(use.volume)
        services.desired.mark_not_attachable(use.volume)
        if known is None:
            services.actual.mark_attached(use.volume, use.plugin.name, use.spec, Attachability.FALSE)
        else:
            services.actual.mark_not_attachable(use.volume)
        services.note({"v": use.volume, "att": "", **NO_FAILURE})
        use.plugin.release(plugin_user(use.volume, ""))
        self._attachments.wake()

    def failed(self, failure: Failure) -> None:
        """No event; status and log tell."""
