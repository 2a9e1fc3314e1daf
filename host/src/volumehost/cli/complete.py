"""What the shell is offered beside commands and options: kinds, names, namespaces, plugins, drivers.

A completion must never disturb the command line that is being typed: it writes nothing, changes nothing, and on any
error offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps

import click
from click.shell_completion import CompletionItem

from volumehost.cli.options import Settings

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completer(offers: Callable[[click.Context], Iterable[tuple[str, str]]]) -> Completer:
    """A click completion from a function that yields (value, help); errors offer nothing."""

    @wraps(offers)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
        try:
            return [CompletionItem(value, help=words) for value, words in offers(ctx) if value.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - nobody wants a traceback in the middle of a command line
            return []

    return complete


@completer
def plugin_names(ctx: click.Context) -> Iterable[tuple[str, str]]:  # noqa: ARG001 - a completer's signature
    """Names of plugins, with their distributions."""
    from volumehost.cli.plugin_report import inspect_plugins, origin_of

    return [(status.name, origin_of(status)) for status in inspect_plugins().plugins()]


@completer
def driver_names(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Names of drivers that are installed or have a record; asking those with a socket would change something."""
    import os

    from volumehost.hosts.layout import Layout
    from volumehost.loader.entry_points import InstalledEntryPoints
    from volumehost.loader.trust import TrustPolicy

    installed = InstalledEntryPoints(TrustPolicy.from_environment()).of("volumehost.csi_drivers")
    found = {each.name: f"{each.distribution} {each.version}" for each in installed}
    directory = Layout(ctx.ensure_object(Settings).root).drivers_dir()
    if os.path.isdir(directory):
        found = {**dict.fromkeys(os.listdir(directory), ""), **found}
    return sorted(found.items())


@completer
def kinds(ctx: click.Context) -> Iterable[tuple[str, str]]:  # noqa: ARG001 - a completer's signature
    """Names of kinds."""
    from volumehost.api.kinds import KINDS

    return [(kind.plural, kind.kind) for kind in KINDS if kind.stored]


@completer
def object_names(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Names of the objects of the kind that stands before."""
    from volumehost.cli.api_choice import open_for_reading

    settings = ctx.ensure_object(Settings)
    found = []
    with open_for_reading(settings) as store:
        for kind, _ in ctx.params.get("kinds") or ():
            objects = store.list(kind.struct, settings.namespace if kind.namespaced else None).items
            found += [(obj.metadata.name, kind.kind) for obj in objects]
    return found


@completer
def pod_names(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Names of pods."""
    from volumehost.api.objects import Pod
    from volumehost.cli.api_choice import open_for_reading

    settings = ctx.ensure_object(Settings)
    with open_for_reading(settings) as store:
        return [(pod.metadata.name, pod.status.phase) for pod in store.list(Pod, settings.namespace).items]


@completer
def claim_names(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Names of claims, with their sizes."""
    from volumehost.api.objects import PersistentVolumeClaim
    from volumehost.cli.api_choice import open_for_reading

    settings = ctx.ensure_object(Settings)
    with open_for_reading(settings) as store:
        claims = store.list(PersistentVolumeClaim, settings.namespace).items
    return [(claim.metadata.name, claim.status.capacity.get("storage", claim.status.phase)) for claim in claims]


@completer
def snapshot_names(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Names of snapshots, with the claims that they were taken of."""
    from volumehost.api.objects import VolumeSnapshot
    from volumehost.cli.api_choice import open_for_reading

    settings = ctx.ensure_object(Settings)
    with open_for_reading(settings) as store:
        snapshots = store.list(VolumeSnapshot, settings.namespace).items
    return [(each.metadata.name, each.spec.source.persistent_volume_claim_name or "") for each in snapshots]


@completer
def namespaces(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Namespaces that hold something."""
    from volumehost.api.kinds import KINDS
    from volumehost.cli.api_choice import open_for_reading

    with open_for_reading(ctx.ensure_object(Settings)) as store:
        found = {
            obj.metadata.namespace
            for kind in KINDS
            if kind.namespaced and kind.stored
            for obj in store.list(kind.struct).items
        }
    return [(namespace, "") for namespace in sorted({*found, "default"})]
