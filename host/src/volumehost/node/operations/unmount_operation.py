"""Taking a volume away from a pod: UNMOUNT-01 to -05. Works from the record alone, without pod and spec."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from volumehost.errors import PluginLookupError, VolumeHostError
from volumehost.node.execution.pending import OperationKey
from volumehost.node.journal.format import UNCERTAIN, UNMOUNTING
from volumehost.node.operations.common import Failure, OperationFailedError, Services, Steps, plugin_user, pod_details
from volumehost.node.operations.own_places import check_place_to_tear_down

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.journal.records import Fields
    from volumehost.node.state.records import MountedVolume

logger = logging.getLogger(__name__)

T = TypeVar("T")


class PodTeardown:
    """What unmounting and unmapping have in common: intent, plugin, the end, and failures."""

    name: str
    requested_at: float | None = None

    def __init__(self, services: Services, mount: MountedVolume) -> None:
        self._services = services
        self._mount = mount
        self.key = OperationKey(mount.volume, mount.pod_uid)
        self.pod_uid = mount.pod_uid
        self.plugin_name, self.spec = mount.plugin_name, mount.spec

    def intent(self) -> Sequence[Fields]:
        """The rest is known from the mount's own record."""
        mount = self._mount
        return (
            {
                "v": mount.volume,
                "p": mount.pod_uid,
                "state": UNMOUNTING,
                "at": round(self._services.wall_clock(), 3),
                "plugin": mount.plugin_name,
                "inner": mount.inner_name,
            },
        )

    def _begin(self, steps: Steps, prefix: str) -> LoadedPlugin:
        mount = self._mount
        steps.enter("plugin")
        try:
            plugin = self._services.plugins.find_plugin_by_name(mount.plugin_name)
            plugin.hold(plugin_user(mount.volume, mount.pod_uid))
        except PluginLookupError as error:
            raise self._failure(f"{prefix}.FindPluginByName failed", error) from error
        return plugin

    def _finish(self, steps: Steps, plugin: LoadedPlugin) -> None:
        mount, services = self._mount, self._services
        steps.enter("mark-unmounted")
        services.note({"v": mount.volume, "p": mount.pod_uid, "gone": True})
        plugin.release(plugin_user(mount.volume, mount.pod_uid))
        try:
            services.actual.mark_unmounted(mount.volume, mount.pod_uid)
        except VolumeHostError as error:  # a retry would do nothing (UNMOUNT-04)
            logger.error("volume %s was torn down but not marked: %s", mount.volume, error)  # noqa: TRY400

    def failed(self, failure: Failure) -> None:
        """No event (UNMOUNT-05, UNMAP-01); status and log tell."""
        mount = self._mount
        self._services.note({"v": mount.volume, "p": mount.pod_uid, "state": UNCERTAIN, **failure.fields()})

    def _attempt(self, prefix: str, step: Callable[[], T]) -> T:
        try:
            return step()
        except BaseException as error:
            raise self._failure(prefix, error) from error

    def _failure(self, prefix: str, cause: BaseException) -> OperationFailedError:
        mount = self._mount
        details = pod_details(mount.volume, mount.pod_namespace, mount.pod_name, mount.pod_uid)
        return OperationFailedError(prefix, mount.inner_name or mount.volume, details, cause)


class UnmountOperation(PodTeardown):
    """One run of "tear this volume of this pod down"."""

    name = "volume_unmount"

    def run(self, steps: Steps) -> None:
        """Clean subpaths, tear down, forget."""
        mount, services = self._mount, self._services
        plugin = self._begin(steps, "UnmountVolume")
        unmounter = self._attempt(
            "UnmountVolume.NewUnmounter failed", lambda: plugin.new_unmounter(mount.inner_name, mount.pod_uid)
        )
        has_subpaths = self._attempt("UnmountVolume.TearDown failed", lambda: self._check_place(steps.together))
        steps.make_intent_durable(required=False)
        steps.enter("clean-subpaths")
        if has_subpaths:  # their bind mounts keep the volume busy (SUBPATH-35)
            self._attempt("error cleaning subPath mounts", self._clean_subpaths)
        steps.enter("tear-down")
        services.actual.mark_uncertain(mount.volume, mount.pod_uid)
        self._attempt("UnmountVolume.TearDown failed", unmounter.tear_down)
        self._finish(steps, plugin)

    def _check_place(self, together: int) -> bool:
        mount, layout = self._mount, self._services.host.layout
        return check_place_to_tear_down(layout, mount.pod_uid, mount.plugin_name, mount.inner_name, together=together)

    def _clean_subpaths(self) -> None:
        mount, host = self._mount, self._services.host
        host.get_subpather().clean_sub_paths(host.layout.pod_dir(mount.pod_uid), mount.inner_name)
