"""What the commands on API objects share: kinds as people write them, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.tables import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.api.kinds import Kind
    from volumehost.api.manifests import Manifest
    from volumehost.api.objects import KubeObject
    from volumehost.cli.options import Settings

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:  # generic for type checkers alone: older versions of click do not know it
    _ParamType = click.ParamType


class KindType(_ParamType):
    """A click type: one or more kinds, ``pod`` or ``pods,pvc``, each optionally with a name, ``pod/web``.

    The value is a list of (kind, name or "").
    """

    name = "kind"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[Kind[KubeObject], str]]:
        """The kinds; an unknown one is a usage error that names the nearest."""
        from volumehost.api.kinds import find_kind
        from volumehost.errors import UnknownKindError

        found = []
        for word in str(value).split(","):
            spelling, _, name = word.partition("/")
            try:
                found.append((find_kind(spelling), name))
            except UnknownKindError as error:
                self.fail(f"{printable(error.reason)}; {error.hint}", param, ctx)
        return found


class NameType(_ParamType):
    """A click type: the name of an object, which is at least text."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name; bytes that are no text are a usage error."""
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{printable(text)} is not UTF-8 text", param, ctx)
        return text


def targets(kinds: Sequence[tuple[Kind[KubeObject], str]], names: Sequence[str]) -> list[tuple[Kind[KubeObject], str]]:
    """(kind, name) for each object meant; a kind alone, name "", means all of it.

    :raises click.UsageError: names both ways, or names for several kinds.
    """
    given = [name for _, name in kinds if name]
    if names and (given or len(kinds) > 1):
        raise click.UsageError("give names after one kind, or as KIND/NAME, not both")
    if any("/" in name for name in names):
        raise click.UsageError("give KIND/NAME without a kind before it")
    if names:
        return [(kinds[0][0], name) for name in names]
    return list(kinds)


def read_manifests(paths: Sequence[str], settings: Settings, *, recursive: bool = False) -> list[Manifest]:
    """All objects of the manifests, every one of them checked; warns of fields that are not known.

    :raises ApiError: a manifest cannot be read.
    :raises ExceptionGroup: objects are invalid.
    """
    from volumehost.api.manifest_checks import check_manifests
    from volumehost.api.manifests import load_manifests

    loaded = load_manifests(paths, recursive=recursive)
    for manifest in loaded:
        for path, hint in manifest.unknown_fields:
            more = f": {hint}" if hint else ""
            click.echo(f"warning: {printable(manifest.place)}: unknown field {printable(path + more)}", err=True)
    return check_manifests(loaded, settings.namespace if settings.namespace_given else "", settings.namespace)


def reference(kind: Kind[KubeObject], name: str) -> str:
    """``pod/web``, as commands take and print it."""
    return f"{kind.singular}/{name}"
