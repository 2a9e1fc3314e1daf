"""Errors about one plugin, and look-ups of plugins that have no answer; raised by the loader."""

from __future__ import annotations

from collections.abc import Sequence

from volumehost.errors.base import VolumeHostError


class PluginError(VolumeHostError):
    """Something about one plugin; the others are not affected.

    ``plugin`` is its name (or the entry point's name when it never told one), ``distribution`` and ``version``
    are those of the installed distribution that it came from, empty when it was handed over as an object.
    """

    def __init__(
        self,
        reason: str,
        *,
        plugin: str = "",
        distribution: str = "",
        version: str = "",
        action: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(reason, action=action, subject=plugin, hint=hint)
        self.plugin = plugin
        self.distribution = distribution
        self.version = version


class InvalidPluginNameError(PluginError):
    """The name breaks MGR-NAME-01 to -07."""


class DuplicatePluginError(PluginError):
    """Two plugins with one name: the first stays, this names both distributions (MGR-INIT-06, BR-09)."""


class PluginDeniedError(PluginError):
    """The trust policy or an environment switch excludes the plugin; it was not imported."""


class PluginIncompatibleError(PluginError):
    """The distribution declares that it needs another host version or Python (BR-82); it was not imported."""


class PluginImportError(PluginError):
    """Importing the module or creating the plugin object failed; the cause is chained (BR-03, BR-04)."""


class PluginContractError(PluginError):
    """The plugin does not keep the contract: missing hooks, unknown hooks, wrong signatures (BR-17)."""


class PluginInitError(PluginError):
    """The plugin's ``init`` raised or did not come back within its deadline (MGR-INIT-07)."""


class PluginCallError(PluginError):
    """A hook raised, hung past its deadline, or returned a value of the wrong type."""


class HookNotImplementedError(PluginError):
    """A hook was called that belongs to an interface which this plugin does not have."""


class PluginLookupError(VolumeHostError):
    """A ``find_*`` call has no answer."""


class NoPluginMatchedError(PluginLookupError):
    """No plugin supports the spec: the sentinel of MGR-FIND-02. Never means that a volume is unwanted."""


class PluginNotFoundError(PluginLookupError):
    """No plugin has that name (MGR-FIND-04). Not the sentinel."""


class MultiplePluginsMatchedError(PluginLookupError):
    """More than one plugin matched; ``names`` lists them, sorted."""

    def __init__(
        self, reason: str, *, names: Sequence[str], action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.names = tuple(names)


class CapabilityMissingError(PluginLookupError):
    """The plugin was found but does not have the interface asked for."""
