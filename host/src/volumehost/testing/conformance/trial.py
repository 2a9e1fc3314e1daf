"""A trial: one plugin, one volume, a fresh root directory. What a check is handed, and all that it needs to do."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from volumehost.mount.mountinfo import read_mount_table
from volumehost.sdk.names import escape_qualified_name
from volumehost.testing.conformance.check import not_applicable, require
from volumehost.testing.conformance.content import Content, observe_content, remove_content, write_content
from volumehost.testing.conformance.driving import arguments_for, bring_up, let_go, take_down
from volumehost.testing.conformance.samples import Sample, Samples
from volumehost.testing.conformance.subject import PluginUnderTest, load
from volumehost.volumes import MounterArgs

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.errors import VolumeHostError
    from volumehost.host_services import MountPoint
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.spec import Spec
    from volumehost.testing.plugin_host import PluginTestHost
    from volumehost.volumes import Attributes, Mounter


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume that a plugin has set up for a pod."""

    pod: Pod
    mounter: Mounter
    path: str
    attributes: Attributes
    writable: bool

    def put_content(self) -> Content:
        """Write something into the volume; remember what is in it when it is not for writing."""
        return write_content(self.path) if self.writable else observe_content(self.path)


class Trial:
    """One run of one check. Everything that it set up is taken away by ``close``, as far as the plugin can do that."""

    def __init__(
        self, subject: PluginUnderTest, host: PluginTestHost, samples: Samples, sample: Sample | None = None
    ) -> None:
        self.subject = subject
        self.host = host
        self.samples = samples
        self.sample = sample
        self._manager: VolumePluginManager | None = None
        self._plugin: LoadedPlugin | None = None
        self._spec = sample.new_spec() if sample is not None else None
        self._pod = sample.new_pod() if sample is not None else None
        self._up: dict[str, tuple[Spec, Pod]] = {}
        self._written: list[Content] = []
        self._mounts_before = frozenset(_mounts())

    # --- the plugin and the volume --------------------------------------------------------------------------

    @property
    def plugin(self) -> LoadedPlugin:
        """The plugin, loaded at the first use."""
        if self._plugin is None:
            self._manager, self._plugin = load(self.subject.thing, self.host)
        return self._plugin

    def restart(self) -> LoadedPlugin:
        """Shut the plugin down, and load a new plugin object, which knows nothing of what the old one did."""
        self.stop()
        return self.plugin

    def stop(self) -> list[VolumeHostError]:
        """Shut the plugin down; its errors are returned."""
        _ = self.plugin
        errors = self._manager.close() if self._manager is not None else []
        self._manager = self._plugin = None
        return errors

    @property
    def spec(self) -> Spec:
        """The volume's spec: a copy for this trial alone."""
        return self._spec if self._spec is not None else self._no_volume()

    @property
    def pod(self) -> Pod:
        """The pod that uses it."""
        return self._pod if self._pod is not None else self._no_volume()

    def another_pod(self) -> Pod:
        """One more pod with the same volume."""
        return self.sample.new_pod() if self.sample is not None else self._no_volume()

    def _no_volume(self) -> NoReturn:
        not_applicable(f"no volume of {self.subject.name} was given: --volume-spec FILE")

    # --- what a node does -------------------------------------------------------------------------------------

    def set_up(self, pod: Pod | None = None, args: MounterArgs | None = None, *, spec: Spec | None = None) -> Mounted:
        """Bring the volume up for a pod, in a node's order, and look at what came of it."""
        pod, spec = pod or self.pod, spec or self.spec
        self._up[pod.metadata.uid] = spec, pod
        mounter = bring_up(self.plugin, spec, pod, self.host.get_node_name(), args or arguments_for(pod))
        path = mounter.get_path()
        require(path, "get_path() of the mounter is empty after set_up")
        require(os.path.lexists(path), f"after set_up there is nothing at {path}, which get_path() tells")
        attributes = mounter.get_attributes()
        writable = os.path.isdir(path) and not attributes.read_only and not spec.read_only
        return Mounted(pod, mounter, path, attributes, writable)

    def put_content(self, mounted: Mounted) -> Content:
        """Write something into the volume, which goes again with the trial."""
        content = mounted.put_content()
        self._written.append(content)
        return content

    def tear_down(self, pod: Pod | None = None, *, spec: Spec | None = None) -> None:
        """Take the volume from the pod."""
        pod, spec = pod or self.pod, spec or self.spec
        for content in self._written:
            remove_content(content)
        take_down(self.plugin, spec, pod.metadata.uid)
        self._up.pop(pod.metadata.uid, None)

    def let_go(self, spec: Spec | None = None) -> None:
        """After the last pod: unmount the device, detach."""
        let_go(self.plugin, spec or self.spec, self.host.get_node_name())

    def volume_dir(self, pod: Pod, spec: Spec | None = None) -> str:
        """Where the layout puts the volume's directory."""
        return self.host.get_pod_volume_dir(pod.metadata.uid, self.plugin.name, (spec or self.spec).name())

    # --- what is there ------------------------------------------------------------------------------------------

    def new_mounts(self) -> list[str]:
        """What is mounted now and was not when the trial began."""
        return [
            f"{mount.path} ({mount.fs_type} from {mount.source})"
            for mount in _mounts()
            if mount not in self._mounts_before
        ]

    def leftovers(self, pod: Pod, spec: Spec | None = None) -> list[str]:
        """What is left of the pod's volume on the disk: its directory, and files of the plugin for this pod."""
        found = []
        directory = self.volume_dir(pod, spec)
        if os.path.lexists(directory):
            found.append(f"the directory {directory}")
        escaped = escape_qualified_name(self.plugin.name)
        for base in (os.path.dirname(directory), f"{self.host.layout.pod_dir(pod.metadata.uid)}/plugins/{escaped}"):
            for parent, _, files in os.walk(base):
                if not parent.startswith(directory):
                    found += [f"the file {parent}/{name}" for name in files]
        return found

    def require_nothing_left(self, *pods: Pod, after: str = "tear_down", spec: Spec | None = None) -> None:
        """Fail the check when something of the volume is left."""
        left = [f"a mount at {mount}" for mount in self.new_mounts()]
        for pod in pods or (self.pod,):
            left += self.leftovers(pod, spec)
        require(not left, f"after {after} there is left: {'; '.join(left)}")

    # --- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Take away what is still up and shut the plugin down; what fails here has failed in its own check."""
        for spec, pod in list(self._up.values()):
            with suppress(Exception):
                self.tear_down(pod, spec=spec)
            with suppress(Exception):
                self.let_go(spec)
        for content in self._written:
            remove_content(content)
        if self._manager is not None:
            self._manager.close()


def _mounts() -> list[MountPoint]:
    return read_mount_table()
