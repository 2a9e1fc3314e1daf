"""The derived look-ups: each asks by spec or by name, then for an interface (MGR-FIND-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import CapabilityMissingError, NoPluginMatchedError, PluginLookupError, SpecError
from volumehost.hookspecs import (
    AttachableVolumePlugin,
    BlockVolumePlugin,
    DeletableVolumePlugin,
    DeviceMountableVolumePlugin,
    ExpandableVolumePlugin,
    NodeExpandableVolumePlugin,
    PersistentVolumePlugin,
    ProvisionableVolumePlugin,
    RecyclableVolumePlugin,
)

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec


class DerivedLookups:
    """Every ``find_*`` of the Go original beyond the two basic ones, which a subclass provides.

    Those that return ``LoadedPlugin`` raise CapabilityMissingError when the plugin lacks the interface; those that
    return ``LoadedPlugin | None`` give None then.
    """

    def find_plugin_by_spec(self, spec: Spec | None, *, guarded: bool = False) -> LoadedPlugin:
        """The one plugin that supports the spec."""
        raise NotImplementedError

    def find_plugin_by_name(self, name: str) -> LoadedPlugin:
        """The plugin of that name."""
        raise NotImplementedError

    def _noop_expandable(self, spec: Spec) -> LoadedPlugin:
        raise NotImplementedError

    # --- with the interface, or an error ---

    def find_persistent_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin:
        """The persistent plugin for the spec; the cause of a failed look-up is chained (MGR-FIND-09)."""
        try:
            plugin = self.find_plugin_by_spec(spec)
        except (PluginLookupError, SpecError) as error:
            raise PluginLookupError(
                f"could not find volume plugin for spec: {spec!r}", subject=spec.name() if spec is not None else ""
            ) from error
        return _require(plugin, PersistentVolumePlugin, "persistent")

    def find_persistent_plugin_by_name(self, name: str) -> LoadedPlugin:
        """The persistent plugin of that name."""
        return _require(self.find_plugin_by_name(name), PersistentVolumePlugin, "persistent")

    def find_recyclable_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin:
        """The recyclable plugin for the spec."""
        return _require(self.find_plugin_by_spec(spec), RecyclableVolumePlugin, "recyclable")

    def find_provisionable_plugin_by_name(self, name: str) -> LoadedPlugin:
        """The provisionable plugin of that name."""
        return _require(self.find_plugin_by_name(name), ProvisionableVolumePlugin, "provisionable")

    def find_deletable_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin:
        """The deletable plugin for the spec."""
        return _require(self.find_plugin_by_spec(spec), DeletableVolumePlugin, "deletable")

    def find_deletable_plugin_by_name(self, name: str) -> LoadedPlugin:
        """The deletable plugin of that name."""
        return _require(self.find_plugin_by_name(name), DeletableVolumePlugin, "deletable")

    # --- with the interface, or None ---

    def find_attachable_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin | None:
        """The plugin for the spec if it must attach it; None is a normal answer (MGR-FIND-08)."""
        plugin = _having(self.find_plugin_by_spec(spec), AttachableVolumePlugin)
        return plugin if plugin is not None and spec is not None and plugin.can_attach(spec) else None

    def find_attachable_plugin_by_name(self, name: str) -> LoadedPlugin | None:
        """The plugin of that name if it can attach at all."""
        return _having(self.find_plugin_by_name(name), AttachableVolumePlugin)

    def find_device_mountable_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin | None:
        """The plugin for the spec if it mounts its device globally."""
        plugin = _having(self.find_plugin_by_spec(spec), DeviceMountableVolumePlugin)
        return plugin if plugin is not None and spec is not None and plugin.can_device_mount(spec) else None

    def find_device_mountable_plugin_by_name(self, name: str) -> LoadedPlugin | None:
        """The plugin of that name if it mounts devices at all."""
        return _having(self.find_plugin_by_name(name), DeviceMountableVolumePlugin)

    def find_expandable_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin | None:
        """The plugin for the spec if the control plane can expand it (MGR-FIND-07).

        For a spec that only the node can expand and whose plugin is not installed here, a plugin that does nothing.
        """
        try:
            plugin = self.find_plugin_by_spec(spec)
        except PluginLookupError as error:
            if spec is not None and spec.is_kubelet_expandable():
                return self._noop_expandable(spec)
            if isinstance(error, NoPluginMatchedError):
                return None
            raise
        return _having(plugin, ExpandableVolumePlugin)

    def find_expandable_plugin_by_name(self, name: str) -> LoadedPlugin | None:
        """The plugin of that name if the control plane can expand its volumes."""
        return _having(self.find_plugin_by_name(name), ExpandableVolumePlugin)

    def find_mapper_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin | None:
        """The plugin for the spec if it can map raw block volumes."""
        return _having(self.find_plugin_by_spec(spec), BlockVolumePlugin)

    def find_mapper_plugin_by_name(self, name: str) -> LoadedPlugin | None:
        """The plugin of that name if it can map raw block volumes."""
        return _having(self.find_plugin_by_name(name), BlockVolumePlugin)

    def find_node_expandable_plugin_by_spec(self, spec: Spec | None) -> LoadedPlugin | None:
        """The plugin for the spec if the node can expand it."""
        return _having(self.find_plugin_by_spec(spec), NodeExpandableVolumePlugin)

    def find_node_expandable_plugin_by_name(self, name: str) -> LoadedPlugin | None:
        """The plugin of that name if the node can expand its volumes."""
        return _having(self.find_plugin_by_name(name), NodeExpandableVolumePlugin)


def _require(plugin: LoadedPlugin, interface: type, word: str) -> LoadedPlugin:
    if not plugin.supports(interface):
        raise CapabilityMissingError(
            f"no {word} volume plugin matched",
            subject=plugin.name,
            hint=f"{plugin.name} does not implement {interface.__name__}",
        )
    return plugin


def _having(plugin: LoadedPlugin, interface: type) -> LoadedPlugin | None:
    return plugin if plugin.supports(interface) else None
