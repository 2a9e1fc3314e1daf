"""What the ``plugins`` commands share: the plugins as the loader sees them, and a plugin's status as plain data.

``plugins list`` has to start fast: nothing heavier than the loader is imported here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.streams import plugins_print_to_stderr
from volumehost.cli.tables import printable
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.prober import EntryPointProber

if TYPE_CHECKING:
    from volumehost.loader.status import PluginStatus
    from volumehost.volume_host import VolumeHost


def inspect_plugins(host: VolumeHost | None = None) -> VolumePluginManager:
    """Load every installed plugin that may be loaded, to be looked at.

    :param host: initialise them with it; by default none is initialised.
    """
    manager = VolumePluginManager(inspect_only=host is None)
    with plugins_print_to_stderr():
        manager.init_plugins(prober=EntryPointProber(), host=host)
    return manager


def tell_of_unmatched(manager: VolumePluginManager) -> None:
    """Tell on stderr what the environment switches name and nothing that is installed is called."""
    trust = manager.trust
    if not trust.allow and not trust.deny:
        return
    from volumehost.loader.entry_points import InstalledEntryPoints
    from volumehost.loader.trust import ENV_DISABLE, ENV_ONLY, TrustPolicy

    names = [(status.distribution, status.entry_point, status.name) for status in manager.plugins()]
    drivers = InstalledEntryPoints(TrustPolicy()).of("volumehost.csi_drivers")
    for item in trust.unmatched([*names, *((each.distribution, each.name) for each in drivers)]):
        switch = ENV_DISABLE if item in trust.deny else ENV_ONLY
        click.echo(f"note: {switch} names {printable(item)}, which no installed plugin or driver is called", err=True)


def state_of(status: PluginStatus) -> str:
    """The state with its reason, on one line."""
    newer = f" ({status.installed_version})" if status.installed_version else ""
    return f"{status.state}{newer}: {status.detail}" if status.detail else f"{status.state}{newer}"


def origin_of(status: PluginStatus) -> str:
    """``acme-volumes 1.0``."""
    return f"{status.distribution} {status.version}".strip()


def file_of(status: PluginStatus) -> str:
    """The file of the module that the entry point names, "" when it is not loaded here."""
    return str(getattr(sys.modules.get(status.value.partition(":")[0]), "__file__", "") or "")


def as_data(status: PluginStatus) -> dict[str, Any]:
    """The status as plain data: the documented shape of a plugin in JSON and YAML."""
    return {
        "name": status.name,
        "state": status.state,
        "detail": status.detail,
        "hint": status.error.hint if status.error is not None else "",
        "distribution": status.distribution,
        "version": status.version,
        "installedVersion": status.installed_version or status.version,
        "entryPoint": status.entry_point,
        "object": status.value,
        "location": status.location,
        "file": file_of(status),
        "interfaces": list(status.interfaces),
        "hooks": list(status.hooks),
        "users": list(status.users),
        "notes": list(status.notes),
    }
