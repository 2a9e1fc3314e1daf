"""Mistakes of plugin authors that a type checker must find: each ignored line is one, and mypy reports an ignore that
is not needed. That a hook's argument has another name than the contract's it does not find; the loader does.

Read by mypy, never run.
"""

from __future__ import annotations

from typing import assert_type

from volumehost import (
    AttachableVolumePlugin,
    DeviceMountableVolumePlugin,
    Mounter,
    MounterArgs,
    PersistentVolumePlugin,
    Spec,
    VolumeHost,
    VolumePlugin,
    hookimpl,
)


class WrongSignatures(VolumePlugin):
    """Right names, wrong types."""

    @hookimpl
    def get_plugin_name(self) -> bytes:  # type: ignore[override]  # a name is text
        return b"example.com/wrong"

    @hookimpl
    def get_volume_name(self, spec: Spec, host: VolumeHost) -> str:  # type: ignore[override]  # no hook passes a host
        return spec.name()

    @hookimpl
    def can_support(self, spec: str) -> bool:  # type: ignore[override]  # a Spec comes, not its name
        return bool(spec)


WrongSignatures()  # type: ignore[abstract]  # new_mounter and others are missing


class OnlyHalf:
    """Some hooks of a plugin."""

    @hookimpl
    def get_plugin_name(self) -> str:
        return "example.com/half"


half: VolumePlugin = OnlyHalf()  # type: ignore[assignment]  # the other hooks are missing


class NoUnmount:
    """A mounter that cannot tell its attributes."""

    def get_path(self) -> str:
        return ""

    def set_up(self, args: MounterArgs) -> None: ...


mounter: Mounter = NoUnmount()  # type: ignore[assignment]


def interfaces_are_not_interchangeable(plugin: VolumePlugin, mountable: DeviceMountableVolumePlugin) -> None:
    persistent: PersistentVolumePlugin = plugin  # type: ignore[assignment]  # it may lack get_access_modes
    attachable: AttachableVolumePlugin = mountable  # type: ignore[assignment]  # the other way round holds
    assert_type((persistent, attachable), tuple[PersistentVolumePlugin, AttachableVolumePlugin])


def values_are_frozen(args: MounterArgs, spec: Spec) -> None:
    args.fs_group = 1000  # type: ignore[misc]
    spec.read_only = True  # type: ignore[misc]
    spec.sources()  # type: ignore[attr-defined]
