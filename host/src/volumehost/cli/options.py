"""Options that commands share, and the settings that they add up to.

The program's group takes all of them; a command takes those that mean something to it, after its own name too.
The nearer one wins; ``-v`` adds up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ROOT_DIR_VARIABLE = "VOLUMEHOST_ROOT_DIR"
DEFAULT_ROOT_DIR = "/var/lib/volumehost"
DEFAULT_NAMESPACE = "default"
OUTPUTS = ("table", "json", "yaml", "name")

_F = TypeVar("_F", bound=Callable[..., Any])


class Settings:
    """What the shared options say; ``click.pass_obj`` hands it to commands.

    ``namespace_given`` tells a choice from the default; ``root_dir_given`` one on the command line from any other.
    """

    __slots__ = ("namespace", "namespace_given", "node_name", "output", "root_dir", "root_dir_given", "verbosity")

    def __init__(self) -> None:
        self.root_dir = DEFAULT_ROOT_DIR
        self.root_dir_given = False
        self.node_name: str | None = None
        self.output = "table"
        self.namespace = DEFAULT_NAMESPACE
        self.namespace_given = False
        self.verbosity = 0

    @property
    def root(self) -> str:
        """The root directory as an absolute path."""
        return os.path.abspath(self.root_dir)


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    settings = ctx.ensure_object(Settings)
    if value is None or param.name is None:
        return
    if param.name == "verbose":
        settings.verbosity += value
        return
    if value == "" and param.name != "node_name":
        raise click.BadParameter("must not be empty", ctx, param)
    setattr(settings, param.name, value)
    if param.name == "namespace":
        settings.namespace_given = True
    elif param.name == "root_dir":
        source = ctx.get_parameter_source(param.name)
        settings.root_dir_given = settings.root_dir_given or source is click.core.ParameterSource.COMMANDLINE


def _complete_namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from volumehost.cli.complete import namespaces

    return namespaces(ctx, param, incomplete)


def _root_dir(*, environment: bool) -> click.Option:
    return click.Option(
        ["--root-dir"],
        type=click.Path(readable=False),  # looked at where it is used: there the errors say what to do
        metavar="DIR",
        envvar=ROOT_DIR_VARIABLE if environment else None,
        expose_value=False,
        callback=_store,
        help=f"Where the state and the mounts are.  [default: ${ROOT_DIR_VARIABLE}, else {DEFAULT_ROOT_DIR}]",
    )


def _node_name() -> click.Option:
    return click.Option(
        ["--node-name"],
        metavar="NAME",
        expose_value=False,
        callback=_store,
        help="Name of this node.  [default: the one used before, at first the host name]",
    )


def _output() -> click.Option:
    return click.Option(
        ["-o", "--output"],
        type=click.Choice(OUTPUTS),
        expose_value=False,
        callback=_store,
        help="How to print the result.  [default: table]",
    )


def _namespace() -> click.Option:
    return click.Option(
        ["-n", "--namespace"],
        metavar="NAME",
        expose_value=False,
        callback=_store,
        shell_complete=_complete_namespaces,
        help="Namespace of the objects.  [default: default]",
    )


def _verbose() -> click.Option:
    return click.Option(
        ["-v", "--verbose"],
        count=True,
        default=0,
        expose_value=False,
        callback=_store,
        help="Log to stderr: -v what is done, -vv every detail and tracebacks.",
    )


_MAKERS: dict[str, Callable[[], click.Option]] = {
    "root-dir": lambda: _root_dir(environment=False),
    "node-name": _node_name,
    "output": _output,
    "namespace": _namespace,
    "verbose": _verbose,
}


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
    if value and not ctx.resilient_parsing:
        from volumehost._version import __version__

        click.echo(f"volumehost {__version__}")
        ctx.exit()


def _version() -> click.Option:
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version and exit.",
    )


def group_options() -> list[click.Parameter]:
    """The options of the program's group: all of them."""
    return [_root_dir(environment=True), _node_name(), _output(), _namespace(), _verbose(), _version()]


def shared_params(*names: str) -> list[click.Parameter]:
    """These shared options, for a group of commands; ``verbose`` comes with them."""
    return [_MAKERS[name]() for name in (*names, "verbose")]


def shared_options(*names: str) -> Callable[[_F], _F]:
    """Give a command these shared options; ``verbose`` comes with them.

    :param names: of ``root-dir``, ``node-name``, ``output``, ``namespace``.
    """

    def decorate(function: _F) -> _F:
        params = shared_params(*names)
        own = getattr(function, "__click_params__", None)
        if own is None:
            own = function.__click_params__ = []  # type: ignore[attr-defined]  # click's own attribute
        own.extend(reversed(params))
        return function

    return decorate
