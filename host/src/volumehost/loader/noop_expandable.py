"""The plugin that stands in on the control plane for volumes which only the node can expand (MGR-NOOP-01, -02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.hookspecs import hookimpl

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.volumes import ReconstructedVolume


class NoopExpandablePlugin:
    """Says yes to every expansion, so that the control plane marks the node's step as pending and touches nothing."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec

    @hookimpl
    def get_plugin_name(self) -> str:
        """The FlexVolume driver's name (SPEC-04)."""
        return self._spec.kubelet_expandable_plugin_name()

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The name of the spec."""
        return spec.name()

    @hookimpl
    def can_support(self) -> bool:
        """Always."""
        return True

    @hookimpl
    def new_mounter(self) -> None:
        """None: nothing is mounted on the control plane."""

    @hookimpl
    def new_unmounter(self) -> None:
        """None, as well."""

    @hookimpl
    def construct_volume_spec(self) -> ReconstructedVolume:
        """The spec that it was made for."""
        from volumehost.volumes import ReconstructedVolume

        return ReconstructedVolume(self._spec)

    @hookimpl
    def supports_mount_option(self) -> bool:
        """Yes."""
        return True

    @hookimpl
    def expand_volume_device(self, new_size: int) -> int:
        """The size asked for."""
        return new_size

    @hookimpl
    def requires_fs_resize(self) -> bool:
        """Yes: the node does it."""
        return True
