"""What the host knows about each plugin, loaded or not, for people to read: ``volumehost plugins list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import DuplicatePluginError, PluginImportError, PluginIncompatibleError, VolumeHostError
from volumehost.hookspecs import INTERFACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from volumehost.loader.asking import Asker
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.unit import Entry, Unit

ACTIVE = "active"
NEWER_INSTALLED = "newer version installed"
REMOVED_IN_USE = "removed, still in use"
REMOVED = "removed"
SET_ASIDE = "set aside"
FAILED = "failed"
CONFLICT = "conflict"
INCOMPATIBLE = "incompatible"
DENIED = "denied"
INSTALLING = "being installed"
#: States of plugins that somebody may miss.
NOT_LOADED = frozenset({FAILED, CONFLICT, INCOMPATIBLE, INSTALLING})


class PluginStatus(NamedTuple):
    """One plugin.

    ``name`` is the entry point's where the plugin never told its own. ``version`` is that of the loaded code,
    ``installed_version`` what lies on the disk where that is another. ``state`` is one of this module's constants,
    ``detail`` its reason. ``users`` are those that hold it. ``notes`` are for its author. ``value`` is what the entry
    point names, ``hooks`` what the plugin implements.
    """

    name: str
    state: str
    detail: str = ""
    distribution: str = ""
    version: str = ""
    installed_version: str = ""
    entry_point: str = ""
    location: str = ""
    interfaces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: VolumeHostError | None = None
    value: str = ""
    hooks: tuple[str, ...] = ()


def plugin_statuses(units: Iterable[Unit], asker: Asker, waiting: Mapping[str, str]) -> list[PluginStatus]:
    """The status of every plugin, sorted by name.

    :param waiting: distributions whose installation is not finished, and what is missing; those that no plugin is
        loaded of are listed under their own name.
    """
    all_units = list(units)
    rivals = _rivals(all_units)
    statuses = [
        _loaded(unit, entry.plugin, asker, rivals) if entry.plugin is not None else _not_loaded(entry)
        for unit in all_units
        for entry in unit.entries
    ]
    known = {each.distribution for each in statuses}
    statuses += [_not_finished(name, reason) for name, reason in waiting.items() if name not in known]
    return sorted(statuses, key=lambda each: (each.name, each.distribution))


def _rivals(units: list[Unit]) -> dict[str, list[str]]:
    """For each plugin name that more than one distribution claims, those that did not get it."""
    rivals: dict[str, list[str]] = {}
    for unit in units:
        for entry in unit.entries:
            if isinstance(entry.error, DuplicatePluginError):
                rivals.setdefault(entry.error.plugin, []).append(str(entry.origin))
    return rivals


def _loaded(unit: Unit, plugin: LoadedPlugin, asker: Asker, rivals: dict[str, list[str]]) -> PluginStatus:
    state, detail, error = ACTIVE, "", unit.update_error
    aside = asker.why_aside(plugin)
    if plugin.name in rivals:
        detail = f"in conflict with {', '.join(rivals[plugin.name])}"
    if unit.outdated and unit.wanted is not None:
        state = NEWER_INSTALLED
        detail = unit.update_error.reason if unit.update_error else "takes over when the last volume is gone"
    if aside is not None:
        state, detail, error = SET_ASIDE, aside.reason, aside
    if unit.wanted is None and not unit.given:
        state = REMOVED_IN_USE if plugin.in_use else REMOVED
        detail = "serves no new volumes; unloads when its last volume is gone" if plugin.in_use else ""
    return PluginStatus(
        plugin.name,
        state,
        detail,
        distribution=plugin.origin.distribution,
        version=plugin.origin.version,
        installed_version=unit.wanted.version if unit.outdated and unit.wanted is not None else "",
        entry_point=plugin.origin.entry_point,
        value=plugin.origin.value,
        location=plugin.origin.location,
        interfaces=tuple(interface.__name__ for interface in INTERFACES if interface in plugin.interfaces),
        hooks=tuple(sorted(plugin.contract.implementations)),
        users=tuple(sorted(plugin.users)),
        notes=plugin.contract.notes,
        error=error,
    )


def _not_loaded(entry: Entry) -> PluginStatus:
    state, detail = FAILED, entry.error.reason if entry.error is not None else "not loaded yet"
    if entry.denied:
        state, detail = DENIED, entry.denied
    elif isinstance(entry.error, DuplicatePluginError):
        state = CONFLICT
    elif isinstance(entry.error, PluginIncompatibleError):
        state = INCOMPATIBLE
    return PluginStatus(
        (entry.error.plugin if entry.error is not None else "") or entry.label,
        state,
        detail,
        distribution=entry.origin.distribution,
        version=entry.origin.version,
        entry_point=entry.origin.entry_point,
        value=entry.origin.value,
        location=entry.origin.location,
        error=None if entry.denied else entry.error,
    )


def _not_finished(distribution: str, reason: str) -> PluginStatus:
    error = PluginImportError(
        reason,
        plugin=distribution,
        distribution=distribution,
        action=f"waiting for the installation of {distribution} to be finished",
        hint=f"if no installer is at work any more, repeat it: pip install --force-reinstall {distribution}",
    )
    return PluginStatus(distribution, INSTALLING, reason, distribution=distribution, error=error)
