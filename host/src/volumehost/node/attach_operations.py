"""Attaching and detaching by the node itself, where no controller does: ATTACH-01, -02, DETACH-01, -03."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import CapabilityMissingError, VolumeHostError, is_operation_finished_error
from volumehost.node.identity import split_unique_volume_name
from volumehost.node.operations import (
    NO_FAILURE,
    Failure,
    OperationFailedError,
    Services,
    Steps,
    event_message,
    plugin_user,
)
from volumehost.node.pending import OperationKey
from volumehost.node.states import Attachability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.actual import AttachedVolume
    from volumehost.node.desired import VolumeUse
    from volumehost.node.journal_format import Fields

ATTACHING, ATTACHED, DETACHING, DETACH_FAILED = "attaching", "attached", "detaching", "uncertain"


class AttachOperation:
    """One run of "attach this volume to this node"."""

    name = "volume_attach"

    def __init__(self, services: Services, use: VolumeUse) -> None:
        self._services = services
        self._use = use
        self.key = OperationKey(use.volume)
        self.pod_uid = use.pod_uid

    def intent(self) -> Sequence[Fields]:
        """Write "maybe attached" down before the call (BR-47), with all that a detach needs."""
        use = self._use
        return (
            {
                "v": use.volume,
                "att": ATTACHING,
                "plugin": use.plugin.name,
                "mode": use.spec.volume_mode(),
                "at": round(self._services.wall_clock(), 3),
            },
        )

    def run(self, steps: Steps) -> None:
        """Attach and record the device path."""
        use, services = self._use, self._services
        node = services.host.get_node_name()
        steps.enter("plugin")
        use.plugin.hold(plugin_user(use.volume, ""))
        steps.make_intent_durable(required=True)
        steps.enter("attach")
        try:
            device_path = use.plugin.new_attacher().attach(use.spec, node)
        except BaseException as error:
            raise self._failure(error) from error
        steps.enter("mark-attached")
        services.actual.mark_attached(use.volume, use.plugin.name, use.spec, Attachability.TRUE, device_path)
        services.note({"v": use.volume, "att": ATTACHED, "dpath": device_path, **NO_FAILURE})
        recorder = services.recorder()
        if recorder is not None:
            message = f'AttachVolume.Attach succeeded for volume "{use.inner_name}"'
            recorder.event(use.pod, "Normal", "SuccessfulAttachVolume", message)

    def failed(self, failure: Failure) -> None:
        """Warning FailedAttachVolume; a call that may have worked must be undone before the volume is forgotten."""
        use, services = self._use, self._services
        if is_operation_finished_error(failure.error):
            services.note({"v": use.volume, "gone": True})
            use.plugin.release(plugin_user(use.volume, ""))
        recorder = services.recorder()
        if recorder is not None:
            recorder.event(use.pod, "Warning", "FailedAttachVolume", event_message(failure.error))

    def _failure(self, cause: BaseException) -> OperationFailedError:
        details = f'(UniqueName: "{self._use.volume}") from node "{self._services.host.get_node_name()}"'
        return OperationFailedError("AttachVolume.Attach failed", self._use.inner_name, details, cause)


class DetachOperation:
    """One run of "detach this volume from this node"; the node itself knows that it is unmounted."""

    name = "volume_detach"
    pod_uid = ""

    def __init__(self, services: Services, volume: AttachedVolume) -> None:
        self._services = services
        self._volume = volume
        self.key = OperationKey(volume.name)

    def intent(self) -> Sequence[Fields]:
        """An attachment that may be gone is not counted on (DETACH-03)."""
        return ({"v": self._volume.name, "att": DETACHING, "at": round(self._services.wall_clock(), 3)},)

    def run(self, steps: Steps) -> None:
        """Detach and forget the volume."""
        volume, services = self._volume, self._services
        steps.enter("plugin")
        plugin = self._plugin()
        _, plugin_volume_name = split_unique_volume_name(volume.name)
        steps.make_intent_durable(required=False)
        steps.enter("detach")
        try:
            plugin.new_detacher().detach(plugin_volume_name, services.host.get_node_name())
        except BaseException as error:
            raise self._failure("DetachVolume.Detach failed", error) from error
        steps.enter("mark-detached")
        services.actual.mark_detached(volume.name)
        services.note({"v": volume.name, "gone": True})
        plugin.release(plugin_user(volume.name, ""))

    def failed(self, failure: Failure) -> None:
        """No event; status and log tell."""
        self._services.note({"v": self._volume.name, "att": DETACH_FAILED, **failure.fields()})

    def _plugin(self) -> LoadedPlugin:
        name = self._volume.plugin_name
        try:
            plugin = self._services.plugins.find_attachable_plugin_by_name(name)
            if plugin is None:
                raise CapabilityMissingError("no attachable volume plugin matched", subject=name)
        except VolumeHostError as error:
            raise self._failure("DetachVolume.FindAttachablePluginByName failed", error) from error
        return plugin

    def _failure(self, prefix: str, cause: BaseException) -> OperationFailedError:
        volume = self._volume
        name = volume.spec.name() if volume.spec is not None else "nil"
        details = f'(UniqueName: "{volume.name}") on node "{self._services.host.get_node_name()}"'
        return OperationFailedError(prefix, name, details, cause)
