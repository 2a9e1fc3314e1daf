"""The plugins that are loaded: takes one in, lets one go. The lifecycle decides which and when."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from volumehost.errors import DuplicatePluginError, PluginContractError, PluginError

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.loading import PluginLoader
    from volumehost.loader.unit import Entry
    from volumehost.volume_host import VolumeHost

logger = logging.getLogger(__name__)


class Roster:
    """Loaded plugins by name, in the order in which they were loaded; each is registered with pluggy too.

    ``changed`` is set when the set of plugins, or which of them are offered, changed; the manager clears it.

    :param initialise: plugins are for use: register them, call their ``init`` and ``shutdown``. Otherwise they are
        only looked at.
    """

    def __init__(self, loader: PluginLoader, *, initialise: bool) -> None:
        self.plugins: dict[str, LoadedPlugin] = {}
        self.changed = False
        self.host: VolumeHost | None = None
        #: Called for each plugin before it is initialised, when nobody can find it yet.
        self.on_created: Callable[[LoadedPlugin], None] | None = None
        self._loader = loader
        self._initialise = initialise

    def start(self, entry: Entry, replaced: Collection[LoadedPlugin] = ()) -> LoadedPlugin:
        """Create, check and initialise a plugin; nobody can find it yet.

        :param replaced: plugins whose names it may take.
        :raises PluginError: of the kind that says what failed.
        """
        plugin = self._loader.prepare(entry.make, entry.origin, entry.label)
        taken = self.plugins.get(plugin.name)
        if taken is not None and taken not in replaced:
            raise DuplicatePluginError(
                f'volume plugin "{plugin.name}" was registered more than once: by {taken.origin}, which stays, and '
                f"by {plugin.origin}, which is not loaded",
                plugin=plugin.name,
                distribution=plugin.origin.distribution,
                version=plugin.origin.version,
                action=f"loading the volume plugin {plugin.name} of {plugin.origin}",
                hint="uninstall one of the two, or exclude it",
            )
        if self.on_created is not None:
            self.on_created(plugin)
        if self._initialise:
            self._loader.init(plugin, self.host)
        return plugin

    def admit(self, entry: Entry, plugin: LoadedPlugin) -> None:
        """Make a started plugin one of the loaded.

        :raises PluginContractError: pluggy does not take it.
        """
        try:
            if self._initialise:
                self._loader.registry.register(plugin.plugin, name=plugin.name)
        except Exception as error:
            raise PluginContractError(
                f"pluggy refuses it: {error}",
                plugin=plugin.name,
                distribution=plugin.origin.distribution,
                version=plugin.origin.version,
                action=f"loading the volume plugin {plugin.name} of {plugin.origin}",
            ) from error
        self.plugins[plugin.name] = plugin
        entry.loaded(plugin)
        self.changed = True
        logger.info("loaded a volume plugin: plugin=%s, origin=%s", plugin.name, plugin.origin)

    def drop(self, plugin: LoadedPlugin) -> None:
        """Take a plugin out, without shutting it down."""
        if self._initialise:
            self._loader.registry.unregister(name=plugin.name)
        self.plugins.pop(plugin.name, None)
        self.changed = True
        logger.info("unloaded a volume plugin: plugin=%s, origin=%s", plugin.name, plugin.origin)

    def shut_down(self, plugin: LoadedPlugin) -> PluginError | None:
        """Call its ``shutdown``; a failure is logged and returned, never raised (BR-18)."""
        error = self._loader.shutdown(plugin) if self._initialise else None
        if error is not None:
            logger.warning("%s", error)
        return error

    def offer(self, plugins: Collection[LoadedPlugin], *, offered: bool) -> None:
        """Offer plugins for new volumes, or no longer."""
        for plugin in plugins:
            if plugin.offered != offered:
                plugin.offered = offered
                self.changed = True


def retire_all(plugins: Collection[LoadedPlugin]) -> bool:
    """Let nobody take hold of the plugins any more; False, and no change, when one of them is in use."""
    retired = [plugin for plugin in plugins if plugin.retire()]
    if len(retired) == len(plugins):
        return True
    for plugin in retired:
        plugin.unretire()
    return False
