"""Attaching and detaching by the node itself, where no controller does: ATTACH-01, -02, DETACH-01, -03."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import (
    CapabilityMissingError,
    TransientOperationError,
    VolumeHostError,
    error_chain,
    is_uncertain_progress_error,
)
from volumehost.node.execution.pending import OperationKey
from volumehost.node.journal.format import FAILED
from volumehost.node.operations.common import (
    NO_FAILURE,
    Failure,
    OperationFailedError,
    Services,
    Steps,
    event_message,
    plugin_user,
    use_fields,
)
from volumehost.node.populating.attach_limit import LIMIT_EXCEEDED, is_exhausted, limit_message
from volumehost.node.state.identity import split_unique_volume_name
from volumehost.node.state.states import Attachability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.journal.records import Fields
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import AttachedVolume
    from volumehost.spec import Spec

ATTACHING, ATTACHED, DETACHING, DETACH_FAILED = "attaching", "attached", "detaching", "uncertain"


class AttachOperation:
    """One run of "attach this volume to this node"."""

    name = "volume_attach"
    spec: Spec | None
    requested_at: float | None = None

    def __init__(self, services: Services, use: VolumeUse) -> None:
        self._services = services
        self._use = use
        self.key = OperationKey(use.volume)
        self.pod_uid = use.pod_uid
        self.plugin_name, self.spec = use.plugin.name, use.spec

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
        """Ask whether it has to be attached at all, whether it still is, and attach it."""
        use, services = self._use, self._services
        steps.enter("plugin")
        use.plugin.hold(plugin_user(use.volume, ""))
        known = services.actual.get_volume(use.volume)
        steps.make_intent_durable(required=True)
        steps.enter("attach")
        try:
            if not use.plugin.can_attach(use.spec):
                self._do_without(known, steps)
                return
            services.actual.mark_maybe_attached(use.volume, use.plugin.name, use.spec)
            services.control.begin()
            device_path, news = self._attach(known)
        except BaseException as error:
            if known is None and _changed_nothing(error):
                services.actual.mark_detached(use.volume)
            raise self._failure(error) from error
        steps.enter("mark-attached")
        services.actual.mark_attached(use.volume, use.plugin.name, use.spec, Attachability.TRUE, device_path)
        services.note({"v": use.volume, "att": ATTACHED, "dpath": device_path, **NO_FAILURE})
        if news:
            message = f'AttachVolume.Attach succeeded for volume "{use.inner_name}"'
            self._tell("Normal", "SuccessfulAttachVolume", message)

    def _attach(self, known: AttachedVolume | None) -> tuple[str, bool]:
        """The device path, and whether it was attached now.

        What was attached before a restart is asked for and not attached again (VERIFYATT-01).
        """
        use, node = self._use, self._services.host.get_node_name()
        attacher = use.plugin.new_attacher()
        was_attached = known is not None and known.attachability is Attachability.TRUE
        if known is not None and was_attached and attacher.volumes_are_attached([use.spec], node).get(use.spec):
            return known.device_path, False
        return attacher.attach(use.spec, node), True

    def _do_without(self, known: AttachedVolume | None, steps: Steps) -> None:
        """It needs no attaching any more: what may be attached already is undone, unless it is in use (BR-49)."""
        use, services = self._use, self._services
        services.desired.mark_not_attachable(use.volume)
        if known is None:
            services.actual.mark_attached(use.volume, use.plugin.name, use.spec, Attachability.FALSE)
        elif known.attachability is not Attachability.TRUE:
            services.actual.mark_not_attachable(use.volume)
        elif known.pods or known.device_state.may_be_mounted:
            return  # it is detached when it is not mounted any more, as ever (BR-46)
        else:
            steps.enter("detach")
            detach(services, use.plugin, use.volume)
            services.actual.mark_not_attachable(use.volume)
        services.note({"v": use.volume, "att": "", **NO_FAILURE})
        use.plugin.release(plugin_user(use.volume, ""))

    def failed(self, failure: Failure) -> None:
        """Warning FailedAttachVolume. A call that was made is undone before the volume is forgotten (ATTACH-01)."""
        use, services = self._use, self._services
        if services.actual.get_volume(use.volume) is None:  # nothing was called
            services.note({"v": use.volume, "gone": True})
            use.plugin.release(plugin_user(use.volume, ""))
        for each in self._uses():
            if services.actual.get_mount(use.volume, each.pod_uid) is None:
                services.note({**use_fields(each), "state": FAILED, **failure.fields()})
        self._tell("Warning", "FailedAttachVolume", event_message(failure.error))
        if is_exhausted(use):
            self._tell("Warning", LIMIT_EXCEEDED, limit_message(use))

    def _tell(self, event_type: str, reason: str, message: str) -> None:
        """An event on every pod that wants the volume (ATTACH-02)."""
        recorder = self._services.recorder()
        if recorder is not None:
            for use in self._uses():
                recorder.event(use.pod, event_type, reason, message)

    def _uses(self) -> list[VolumeUse]:
        """What every pod that wants the volume wants of it."""
        desired, volume = self._services.desired, self._use.volume
        found = (desired.get(volume, uid) for uid in desired.pods_of_volume(volume))
        return [use for use in found if use is not None]

    def _failure(self, cause: BaseException) -> OperationFailedError:
        details = f'(UniqueName: "{self._use.volume}") from node "{self._services.host.get_node_name()}"'
        return OperationFailedError("AttachVolume.Attach failed", self._use.inner_name, details, cause)


class DetachOperation:
    """One run of "detach this volume from this node"; the node itself knows that it is unmounted."""

    name = "volume_detach"
    pod_uid = ""
    requested_at: float | None = None

    def __init__(self, services: Services, volume: AttachedVolume) -> None:
        self._services = services
        self._volume = volume
        self.key = OperationKey(volume.name)
        self.plugin_name, self.spec = volume.plugin_name, volume.spec

    def intent(self) -> Sequence[Fields]:
        """An attachment that may be gone is not counted on (DETACH-03)."""
        return ({"v": self._volume.name, "att": DETACHING, "at": round(self._services.wall_clock(), 3)},)

    def run(self, steps: Steps) -> None:
        """Detach and forget the volume."""
        volume, services = self._volume, self._services
        steps.enter("plugin")
        plugin = self._plugin()
        steps.make_intent_durable(required=False)
        steps.enter("detach")
        try:
            services.control.begin()
            detach(services, plugin, volume.name)
        except BaseException as error:
            services.actual.mark_unconfirmed(volume.name)  # DETACH-03
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
        volume, spec = self._volume, self._volume.spec
        name = spec.name() if spec is not None else "nil"
        details = f'(UniqueName: "{volume.name}") on node "{self._services.host.get_node_name()}"'
        return OperationFailedError(prefix, name, details, cause)


def _changed_nothing(error: BaseException) -> bool:
    """Whether certainly nothing was attached (ERR-01)."""
    links = list(error_chain(error))
    return any(isinstance(link, TransientOperationError) for link in links) and not is_uncertain_progress_error(error)


def detach(services: Services, plugin: LoadedPlugin, volume: str) -> None:
    """Call the plugin; the volume by its unique name."""
    _, plugin_volume_name = split_unique_volume_name(volume)
    plugin.new_detacher().detach(plugin_volume_name, services.host.get_node_name())
