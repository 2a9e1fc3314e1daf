"""A plugin as a third party writes it, typed against the contract: it extends the Protocol, without the optional hooks.

Read by mypy, never run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, assert_type

from volumehost import (
    Attributes,
    KubeletVolumeHost,
    Mounter,
    MounterArgs,
    ReconstructedVolume,
    Spec,
    Unmounter,
    VolumeHost,
    VolumeMetrics,
    VolumePlugin,
    errors,
    hookimpl,
)

if TYPE_CHECKING:
    from volumehost.api.objects import Pod


class ScratchVolume:
    """Mounter and unmounter in one; neither extends anything."""

    def __init__(self, host: VolumeHost, path: str) -> None:
        self._host = host
        self._path = path

    def get_path(self) -> str:
        return self._path

    def get_metrics(self) -> VolumeMetrics:
        raise errors.NotSupportedMetricsError("no metrics", subject=self._path)

    def set_up(self, args: MounterArgs) -> None:
        self.set_up_at(self._path, args)

    def set_up_at(self, directory: str, args: MounterArgs) -> None:
        assert_type(args.fs_group, int | None)
        self._host.get_mounter().mount("tmpfs", directory, "tmpfs", ["size=1m"])

    def get_attributes(self) -> Attributes:
        return Attributes(managed=True)

    def tear_down(self) -> None:
        self.tear_down_at(self._path)

    def tear_down_at(self, directory: str) -> None:
        self._host.get_mounter().unmount(directory, timeout=30.0)


class ScratchPlugin(VolumePlugin):
    """Only the required hooks, ``init`` and one more that is optional."""

    _host: VolumeHost

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        self._host = host
        if isinstance(host, KubeletVolumeHost):
            assert_type(host.get_host_util().path_exists("/"), bool)

    @hookimpl
    def get_plugin_name(self) -> str:
        return "example.com/scratch"

    @hookimpl
    def get_volume_sources(self) -> Collection[str] | None:
        return ("flex_volume",)

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        return spec.name()

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        return spec.volume is not None and spec.volume.flex_volume is not None

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        return ScratchVolume(self._host, self._path(pod.metadata.uid, spec.name()))

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        return ScratchVolume(self._host, self._path(pod_uid, volume_name))

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        return ReconstructedVolume(spec=Spec(), complete=False)

    def _path(self, pod_uid: str, volume_name: str) -> str:
        return self._host.get_pod_volume_dir(pod_uid, self.get_plugin_name(), volume_name)


plugin: VolumePlugin = ScratchPlugin()
assert_type(plugin.can_support(Spec()), bool)
assert_type(plugin.new_unmounter("scratch", "uid"), Unmounter)
