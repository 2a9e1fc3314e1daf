"""Static pods: a directory of manifests, whose pods are wanted on this node for as long as their files are there.

They need no API. A file that cannot be read, a directory that cannot be listed: neither ever ends a pod (BR-15, BR-51).
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from volumehost.agent.mirror_pods import MirrorPods
from volumehost.agent.static_manifests import FILE_ANNOTATION, Stamp, is_manifest_name, read_static_pods
from volumehost.errors import ManifestError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.agent.pod_sources import PodSources
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: Seconds between two looks at the directory. What changed is acted upon when it has been the same for two looks, so
#: that neither a file that is being written nor one that an editor replaces is taken for what it is not.
LOOK_SECONDS: Final = 0.4


@dataclass(slots=True)
class _File:
    """One file. ``seen`` is its content at the last look, ``read`` the one that ``pods`` come from, by their uids.

    ``told``: those that are wanted. ``refused``: why the others are not.
    """

    seen: Stamp | None = None
    read: Stamp | None = None
    missing: bool = False
    problem: str = ""
    pods: dict[str, Pod] = field(default_factory=dict)
    told: dict[str, Pod] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether its pods are what it says now."""
        return not self.problem and not self.missing and self.read == self.seen


class StaticPods:
    """A PodSource over one directory.

    A pod's uid is that of its content: a file that changes ends the old pod and brings a new one. Of several pods with
    one name only one is wanted: the one that was there before, at the start one that is mounted, else the one of the
    file that comes first by its name.
    """

    name = "static pods"

    def __init__(self, manager: VolumeManager, directory: str, *, mirrored: bool = True) -> None:
        """:param mirrored: show them as objects of the store; False in a cluster, where that is the kubelet's."""
        self.directory = os.path.abspath(directory)
        self._manager = manager
        self._node_name = manager.host.get_node_name()
        self._recorder = manager.host.get_event_recorder()
        self._mirrors = MirrorPods(manager, shows=mirrored)
        self._files: dict[str, _File] = {}
        self._problem = "it was not looked at yet"
        self._told = self._changed = False
        self._stop = threading.Event()

    def start(self, sources: PodSources) -> None:
        """Look from now on."""
        threading.Thread(target=self._run, args=(sources,), name="volumehost-static-pods", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def look_again(self) -> None:
        """Read every file anew."""
        for file in list(self._files.values()):
            file.read = None

    def mirror_touched(self) -> None:
        """Somebody deleted the object of a static pod: the pod is there all the same."""
        self._mirrors.refresh_soon()

    def problems(self) -> list[str]:
        """What cannot be read, and why."""
        found = [f"{self.directory}: {self._problem}"] if self._problem else []
        for name, file in sorted(self._files.items()):
            of_file = [file.problem] * bool(file.problem) + list(file.refused.values())
            found += [f"{self.directory}/{name}: {problem}" for problem in of_file]
        return found

    def problem_of(self, pod: Pod) -> str:
        """Why what is mounted for the pod may be out of date, "" when it is not."""
        if self._problem:
            return f"its manifest cannot be looked at: {self._problem}"
        for file in list(self._files.values()):
            if pod.metadata.uid in file.told and file.problem:
                return f"its manifest cannot be read, what is mounted stays: {file.problem}"
        return ""

    def keeps(self, pod: Pod) -> str:
        """It is there for as long as its manifest is."""
        path = pod.metadata.annotations.get(FILE_ANNOTATION, self.directory)
        return f"it is a static pod, which ends when {path} is removed"

    def prepare(self, pod: Pod) -> Pod | None:
        """Show the pod in the store, when that can be."""
        self._mirrors.show(pod)
        return pod

    def ended(self, pod: Pod) -> None:
        """Take the pod out of the store again."""
        self._mirrors.hide(pod)

    # --- on the thread ----------------------------------------------------------------------------------------------

    def _run(self, sources: PodSources) -> None:
        while not self._stop.is_set():
            try:
                self._look(sources)
            except Exception:
                logger.exception("static pods could not be looked at")
            self._stop.wait(LOOK_SECONDS)

    def _look(self, sources: PodSources) -> None:
        """Compare the directory with what it was."""
        try:
            found = self._list()
        except OSError as error:
            self._tell_directory(error.strerror or str(error))
            return
        self._tell_directory("")
        for name in list(self._files):
            if name not in found:
                self._gone(sources, name)
        for name, stamp in found.items():
            self._there(sources, name, stamp)
        if self._changed:
            self._share_names(sources)
        if not self._told and all(file.settled for file in self._files.values()):
            self._told = True
            sources.told(self)
        if self._told:
            self._mirrors.refresh(pod for file in self._files.values() for pod in file.told.values())

    def _list(self) -> dict[str, Stamp | OSError]:
        """Each manifest's name with what tells its content, or why that cannot be told. Links are followed."""
        found: dict[str, Stamp | OSError] = {}
        with os.scandir(self.directory) as entries:
            names = [entry.name for entry in entries if is_manifest_name(entry.name)]
        for name in sorted(names):
            try:
                status = os.stat(f"{self.directory}/{name}")
            except FileNotFoundError as error:
                if os.path.lexists(f"{self.directory}/{name}"):
                    found[name] = error
            except OSError as error:
                found[name] = error
            else:
                # A directory where a manifest may have been is no word that its pods have ended.
                is_directory = stat.S_ISDIR(status.st_mode)
                found[name] = IsADirectoryError(errno.EISDIR, "is a directory") if is_directory else Stamp.of(status)
        return found

    def _gone(self, sources: PodSources, name: str) -> None:
        """The file was not listed: the word that its pods have ended, the second time."""
        file = self._files[name]
        if not file.missing:
            file.missing = True
            return
        del self._files[name]
        self._changed = True
        for pod in file.told.values():
            logger.info("%s/%s is gone: pod %s ends", self.directory, name, _label(pod))
            sources.end(self, pod)

    def _there(self, sources: PodSources, name: str, stamp: Stamp | OSError) -> None:
        file = self._files.setdefault(name, _File())
        file.missing = False
        if isinstance(stamp, OSError):
            file.seen = file.read = None
            self._tell_file(name, file, stamp.strerror or str(stamp))
            return
        quiet, file.seen = file.seen == stamp or _is_old(stamp), stamp
        if file.read == stamp or not quiet:
            return
        try:
            pods, file.read = read_static_pods(f"{self.directory}/{name}", self._node_name)
        except (BlockingIOError, FileNotFoundError):
            return  # it is being written, or went just now: the next look tells
        except OSError as error:
            self._tell_file(name, file, error.strerror or str(error))
            return
        except VolumeHostError as error:
            file.read = stamp  # until it changes there is nothing to try again
            self._tell_file(name, file, _reason(error))
            return
        self._tell_file(name, file, "")
        file.pods, self._changed = pods, True
        for uid, pod in list(file.told.items()):
            if uid in pods:
                file.told[uid] = pods[uid]
                sources.want(self, pods[uid])
            else:
                del file.told[uid]
                logger.info("%s/%s has changed: pod %s ends", self.directory, name, _label(pod))
                sources.end(self, pod)

    def _share_names(self, sources: PodSources) -> None:
        """Want the pods whose names no other has, and refuse the others for as long as that is so."""
        self._changed = False
        files = sorted(self._files.items())
        holders = {_label(pod): name for name, file in files for pod in file.told.values()}
        waiting = [(name, file, pod) for name, file in files for uid, pod in file.pods.items() if uid not in file.told]
        for name, file, pod in sorted(waiting, key=lambda each: not self._manager.may_be_in_use(each[2].metadata.uid)):
            holder = holders.setdefault(_label(pod), name)
            if holder == name and not any(_label(other) == _label(pod) for other in file.told.values()):
                file.told[pod.metadata.uid] = pod
                sources.want(self, pod)
        for name, file in files:
            refused = {
                uid: f"pod {_label(pod)} is not mounted: {self.directory}/{holders[_label(pod)]} has one of that name"
                for uid, pod in file.pods.items()
                if uid not in file.told
            }
            for uid in refused.keys() - file.refused.keys():
                logger.warning("%s/%s: %s", self.directory, name, refused[uid])
            file.refused = refused

    # --- telling ----------------------------------------------------------------------------------------------------

    def _tell_directory(self, problem: str) -> None:
        if problem and problem != self._problem:
            logger.warning("static pods cannot be looked at, they stay as they are: %s: %s", self.directory, problem)
        self._problem = problem

    def _tell_file(self, name: str, file: _File, problem: str) -> None:
        if problem and problem != file.problem:
            logger.warning("a static pod's manifest cannot be read, its pods stay as they are: %s/%s: %s",
                           self.directory, name, problem)  # fmt: skip
            for pod in file.told.values():
                if self._recorder is not None:
                    self._recorder.event(pod, "Warning", "FailedValidation", f"its manifest cannot be read: {problem}")
        file.problem = problem


def _reason(error: VolumeHostError) -> str:
    """Why a manifest cannot be used; its path stands before that already."""
    if not isinstance(error, ManifestError) or error.action != f"read {error.source}":
        return str(error)
    return f"{error.reason} ({error.hint})" if error.hint else error.reason


def _is_old(stamp: Stamp) -> bool:
    """Whether the file was not changed for a while, by its own account: then it need not be watched first."""
    return 0 < stamp.modified < time.time_ns() - 2e9 * LOOK_SECONDS


def _label(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
