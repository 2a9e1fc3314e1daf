"""Carries out the steps of a plan, each in its own way; every step can be repeated after a crash at any instant."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Final

from volumehost.errors import StillMountedError, UnmountError, VolumeHostError
from volumehost.hookspecs import BlockVolumePlugin, DeviceMountableVolumePlugin
from volumehost.inspection.repairing.plan import Action, Outcome, Plan, Repair, Step, StepResult
from volumehost.inspection.repairing.removal import (
    remove_device,
    remove_payload,
    remove_pod,
    remove_small_file,
    remove_subpath,
    remove_volume,
)
from volumehost.inspection.repairing.tools import Tools, is_absent
from volumehost.mount import loop
from volumehost.mount.block_path import BlockPathHandler
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.places import shared_places
from volumehost.node.journal.format import UNMOUNTED

logger = logging.getLogger(__name__)

#: Mounts stacked on one place that are taken away before giving up.
_STACKED: Final = 16

OnStep = Callable[[Repair, StepResult], None]


class Executor:
    """Runs plans with the tools of one root directory.

    :param on_step: is told of each step when it has ended.
    """

    def __init__(self, tools: Tools, on_step: OnStep) -> None:
        self._tools = tools
        self._on_step = on_step
        self._ways: Mapping[Action, Callable[[Step], str]] = {
            Action.UNMOUNT: self._unmount,
            Action.UNPUBLISH: self._unpublish,
            Action.UNMAP: self._unmap,
            Action.UNSTAGE: self._unstage,
            Action.UNMAP_DEVICE: self._unmap_device,
            Action.DETACH: self._detach,
            Action.REMOVE_SUBPATH: lambda step: self._removed(remove_subpath, step.subject),
            Action.REMOVE_PAYLOAD: lambda step: self._removed(remove_payload, step.subject),
            Action.REMOVE_POD: lambda step: self._removed(remove_pod, step.pod_uid),
            Action.REMOVE_DEVICE: lambda step: self._removed(remove_device, step.subject),
            Action.REMOVE_FILE: lambda step: self._removed(remove_small_file, step.subject),
            Action.END_RECORDS: self._end_records,
        }

    def run(self, plan: Plan) -> list[tuple[Repair, StepResult]]:
        """Every step in order; of a repair whose step fails the later ones are skipped, other repairs go on."""
        results: list[tuple[Repair, StepResult]] = []
        for repair in plan.repairs:
            failed = False
            for step in repair.steps:
                result = StepResult(step, Outcome.SKIPPED) if failed else self._do(step)
                failed = failed or result.outcome is Outcome.FAILED
                logger.info("%s: %s%s", result.outcome, step.describe(), f": {result.detail}" if result.detail else "")
                results.append((repair, result))
                self._on_step(repair, result)
        return results

    def _do(self, step: Step) -> StepResult:
        try:
            return StepResult(step, Outcome.DONE, self._ways[step.action](step))
        except VolumeHostError as error:
            return StepResult(step, Outcome.FAILED, error.reason, error.hint)
        except OSError as error:
            return StepResult(step, Outcome.FAILED, error.strerror or str(error))
        except Exception as error:  # a plugin's defect must not keep the other repairs
            logger.exception("the step failed: %s", step.describe())
            return StepResult(step, Outcome.FAILED, f"unexpected {type(error).__name__}: {error}")

    def _removed(self, remove: Callable[[str, str], None], what: str) -> str:
        remove(self._tools.root, what)
        return ""

    # --- volumes of pods --------------------------------------------------------------------------------------------

    def _unmount(self, step: Step) -> str:
        self._tools.mounter.unmount(step.subject)
        return ""

    def _unpublish(self, step: Step) -> str:
        def through_plugin() -> None:
            plugin = self._tools.plugins.find_plugin_by_name(step.plugin)
            plugin.new_unmounter(step.name, step.pod_uid).tear_down()

        def plainly() -> None:
            self._unmount_all(step.place)
            remove_volume(self._tools.root, step.subject)

        return self._told(step, through_plugin, plainly)

    def _unmap(self, step: Step) -> str:
        """The generic part is the host's own: the lock, the link, the bind (BLOCK-09)."""
        handler = BlockPathHandler(self._tools.mounter)
        handler.unmap_block_volume(os.path.dirname(step.place), os.path.dirname(step.subject), step.name, step.pod_uid)

        def through_plugin() -> None:
            plugin = self._tools.plugins.find_plugin_by_name(step.plugin)
            if plugin.supports(BlockVolumePlugin):
                unmapper = plugin.new_block_volume_unmapper(step.name, step.pod_uid)
                if hasattr(unmapper, "unmap_pod_device"):
                    unmapper.unmap_pod_device()

        return self._told(step, through_plugin, lambda: None)

    # --- devices ----------------------------------------------------------------------------------------------------

    def _unstage(self, step: Step) -> str:
        self._check_unused(step.place)

        def through_plugin() -> None:
            plugin = self._tools.plugins.find_plugin_by_name(step.plugin)
            if plugin.supports(DeviceMountableVolumePlugin):
                plugin.new_device_unmounter().unmount_device(step.place)
            else:
                self._unmount_all(step.place)

        return self._told(step, through_plugin, lambda: self._unmount_all(step.place))

    def _unmap_device(self, step: Step) -> str:
        handler = BlockPathHandler(self._tools.mounter)
        left = [path for path in _mounted_below(step.place) if path != step.place]
        for path in reversed(left):  # binds of pods that are gone
            handler.unmap_device(os.path.dirname(path), os.path.basename(path), bind_mount=True)

        def through_plugin() -> None:
            plugin = self._tools.plugins.find_plugin_by_name(step.plugin)
            unmapper = plugin.new_block_volume_unmapper(step.name, "")
            if hasattr(unmapper, "tear_down_device"):
                unmapper.tear_down_device(step.place, "")

        def plainly() -> None:
            base = os.path.dirname(os.path.dirname(step.place))
            name = os.path.basename(os.path.dirname(step.place))
            for directory in ("publish", "staging"):
                for path in reversed(_mounted_below(f"{base}/{directory}/{name}")):
                    self._unmount_all(path)

        return self._told(step, through_plugin, plainly)

    def _check_unused(self, path: str) -> None:
        """A pod may have got the volume since the plan was made (UNMDEV-03)."""
        references = [
            each for each in self._tools.mounter.get_mount_refs(path) if each.startswith(f"{self._tools.root}/pods/")
        ]
        if references:
            raise StillMountedError(
                f"it is mounted at {references[0]} too",
                action=f"unmount {path}",
                subject=path,
                hint="a pod has it; inspect again",
            )

    def _detach(self, step: Step) -> str:
        found = [each for each in loop.list_attached() if each.device == step.subject]
        if not found or found[0].backing_file != step.place:
            return "it was let go of meanwhile"
        if not loop.detach(step.subject):
            raise UnmountError("something still uses it", action=f"detach {step.subject}", subject=step.subject)
        return ""

    # --- records ----------------------------------------------------------------------------------------------------

    def _end_records(self, step: Step) -> str:
        """The attachment that a record tells of stays recorded: whoever detaches needs that."""
        journal = self._tools.journal
        for volume, uid in step.records:
            record = journal.entry(volume, uid)
            if record is None:
                continue
            if record.get("att") and not uid:
                journal.note({"v": volume, "dev": UNMOUNTED, "dmpath": ""})
            else:
                journal.note({key: value for key, value in (("v", volume), ("p", uid)) if value} | {"gone": True})
        journal.sync(journal.write())
        return ""

    # --- with or without a plugin -----------------------------------------------------------------------------------

    @staticmethod
    def _told(step: Step, through_plugin: Callable[[], None], plainly: Callable[[], None]) -> str:
        """Through the plugin where there is one, and its driver answers; else plainly, which is said."""
        note = f"{step.untold} was not told" if step.untold else ""
        if step.plugin:
            try:
                through_plugin()
            except VolumeHostError as error:
                if not is_absent(error):
                    raise
                note = f"{f'the driver {step.driver}' if step.driver else step.plugin} was not told: {error.reason}"
            else:
                return ""
        plainly()
        return note

    def _unmount_all(self, path: str) -> None:
        for _ in range(_STACKED):
            if not _is_mounted(path):
                return
            self._tools.mounter.unmount(path)
        raise StillMountedError("more is mounted there than can be taken away", action=f"unmount {path}", subject=path)


def _is_mounted(path: str) -> bool:
    """Whether something is mounted exactly there, dead or alive."""
    try:
        found = shared_places().look(path, follow=False).mount_root
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(mount.path == path for mount in read_mount_table()) if found is None else found


def _mounted_below(path: str) -> list[str]:
    return sorted(mount.path for mount in read_mount_table() if f"{mount.path}/".startswith(f"{path}/"))
