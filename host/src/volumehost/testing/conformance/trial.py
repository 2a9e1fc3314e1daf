"""A trial: one plugin, one volume, a fresh root directory. What a check is handed, and all that it needs to do."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from volumehost.testing.conformance.check import not_applicable, require
from volumehost.testing.conformance.content import Content, observe_content, remove_content, write_content
from volumehost.testing.conformance.driving import (
    arguments_for,
    attach,
    bring_up,
    let_go,
    mount_device,
    take_down,
)
from volumehost.testing.conformance.faults import FaultyMounter
from volumehost.testing.conformance.remains import Remains
from volumehost.testing.conformance.samples import Sample, Samples
from volumehost.testing.conformance.subject import PluginUnderTest, load
from volumehost.testing.plugin_host import PluginTestHost

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.errors import VolumeHostError
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.spec import Spec
    from volumehost.volumes import Attributes, Mounter, MounterArgs


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume that a plugin has set up for a pod."""

    pod: Pod
    mounter: Mounter
    path: str
    attributes: Attributes
    writable: bool


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
        self._staged: list[Spec] = []
        self._remains = Remains(host)

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

    def stage(self) -> None:
        """What a node does once, before the first pod: attach the volume, mount its device."""
        self.will_let_go()
        device = attach(self.plugin, self.spec, self.pod, self.host.get_node_name())
        mount_device(self.plugin, self.spec, device)

    def will_let_go(self) -> None:
        """Unmount the device and detach at the end, although no pod is known to have the volume."""
        self._staged.append(self.spec)

    def set_up(self, pod: Pod | None = None, args: MounterArgs | None = None, *, spec: Spec | None = None) -> Mounted:
        """Bring the volume up for a pod, in a node's order, and look at what came of it."""
        pod, spec = pod or self.pod, spec or self.spec
        self._up[pod.metadata.uid] = spec, pod
        self._staged.append(spec)
        mounter = bring_up(self.plugin, spec, pod, self.host.get_node_name(), args or arguments_for(pod))
        return self._look(mounter, spec, pod)

    def set_up_only(self, pod: Pod) -> Mounted:
        """The last step alone, for a pod of a volume that was staged."""
        self._up[pod.metadata.uid] = self.spec, pod
        mounter = self.plugin.new_mounter(self.spec, pod)
        mounter.set_up(arguments_for(pod))
        return self._look(mounter, self.spec, pod)

    def _look(self, mounter: Mounter, spec: Spec, pod: Pod) -> Mounted:
        path = mounter.get_path()
        require(path, "get_path() of the mounter is empty after set_up")
        require(os.path.lexists(path), f"after set_up there is nothing at {path}, which get_path() tells")
        attributes = mounter.get_attributes()
        writable = os.path.isdir(path) and not attributes.read_only and not spec.read_only
        return Mounted(pod, mounter, path, attributes, writable)

    def put_content(self, mounted: Mounted) -> Content:
        """Write something into the volume, which goes again with the trial."""
        return self.put_content_at(mounted.path, writable=mounted.writable)

    def put_content_at(self, path: str, *, writable: bool) -> Content:
        """The same by the volume's path."""
        content = write_content(path) if writable and os.path.isdir(path) else observe_content(path)
        self._written.append(content)
        return content

    def remove_contents(self) -> None:
        """Take away what was written: the storage may belong to somebody."""
        for content in self._written:
            remove_content(content)
        self._written.clear()

    def tear_down(self, pod: Pod | None = None, *, spec: Spec | None = None, keep_content: bool = False) -> None:
        """Take the volume from the pod, after taking away what was written unless that is to be kept."""
        pod, spec = pod or self.pod, spec or self.spec
        if not keep_content:
            self.remove_contents()
        take_down(self.plugin, spec, pod.metadata.uid)
        self._up.pop(pod.metadata.uid, None)

    def forget_pod(self, pod: Pod) -> None:
        """The pod's volume was taken away without the trial: do not try again at the end."""
        self._up.pop(pod.metadata.uid, None)

    def let_go(self, spec: Spec | None = None) -> None:
        """After the last pod: unmount the device, detach."""
        let_go(self.plugin, spec or self.spec, self.host.get_node_name())

    def use_faulty_mounter(self) -> FaultyMounter:
        """Have the plugin, which is not loaded yet, mount with a mounter that can be told to fail."""
        if not isinstance(self.host, PluginTestHost):
            not_applicable("volumehost_host is no PluginTestHost, whose mounter could be made to fail")
        faults = FaultyMounter(self.host.get_mounter())
        self.host.use_mounter(faults)
        return faults

    def forget_objects(self) -> None:
        """Delete the objects of the files from the API, so that a plugin that needs them fails from now on."""
        api = self.host.get_kube_client()
        if api is not None:
            for obj in self.samples.objects:
                api.delete(type(obj), obj.metadata.name, obj.metadata.namespace)

    def volume_dir(self, pod: Pod, spec: Spec | None = None) -> str:
        """Where the layout puts the volume's directory."""
        return self.host.get_pod_volume_dir(pod.metadata.uid, self.plugin.name, (spec or self.spec).name())

    # --- what is there ------------------------------------------------------------------------------------------

    def new_mounts(self) -> list[str]:
        """What is mounted now and was not when the trial began."""
        return self._remains.new_mounts()

    def leftovers(self, pod: Pod, spec: Spec | None = None) -> list[str]:
        """What is left of the pod's volume on the disk: its directory, and files of the plugin for this pod."""
        return self._remains.of_volume(pod.metadata.uid, self.plugin.name, (spec or self.spec).name())

    def require_nothing_left(self, *pods: Pod, after: str = "tear_down", spec: Spec | None = None) -> None:
        """Fail the check when something of the volume is left."""
        left = [f"a mount at {mount}" for mount in self.new_mounts()]
        for pod in pods or (self.pod,):
            left += self.leftovers(pod, spec)
        require(not left, f"after {after} there is left: {'; '.join(left)}")

    # --- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Take away what is still up and shut the plugin down; what fails here has failed in its own check."""
        with suppress(Exception):
            self._clean_storage()
        self.close_volumes()
        if self._manager is not None:
            self._manager.close()

    def close_volumes(self) -> None:
        """Take away what is still up."""
        for spec, pod in list(self._up.values()):
            with suppress(Exception):
                self.tear_down(pod, spec=spec)
        for spec in self._staged:  # a driver may remember a device that the root directory's end took away
            with suppress(Exception):
                self.let_go(spec)

    def _clean_storage(self) -> None:
        """Files that were there while the volume was torn down may be in storage that outlives it."""
        if self._written and self._spec is not None:
            path = self.set_up().path
            for content in self._written:
                remove_content(replace(content, path=path))
            self._written.clear()
