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
#: KUBECONFIG alone does not choose a cluster: whoever has kubectl set up must not touch one unawares.
KUBECONFIG_VARIABLE = "VOLUMEHOST_KUBECONFIG"
DEFAULT_ROOT_DIR = "/var/lib/volumehost"
DEFAULT_NAMESPACE = "default"
OUTPUTS = ("table", "json", "yaml", "name")

_F = TypeVar("_F", bound=Callable[..., Any])


class Settings:
    """What the shared options say; ``click.pass_obj`` hands it to commands.

    ``namespace_given`` tells a choice from the default; ``root_dir_given`` and ``kubeconfig_given`` one on the command
    line from any other.
    """

    __slots__ = (
        "_namespace",
        "context",
        "in_cluster",
        "kubeconfig",
        "kubeconfig_given",
        "namespace_given",
        "node_name",
        "output",
        "root_dir",
        "root_dir_given",
        "verbosity",
    )

    def __init__(self) -> None:
        self.root_dir = DEFAULT_ROOT_DIR
        self.root_dir_given = False
        self.kubeconfig: str | None = None
        self.kubeconfig_given = False
        self.context: str | None = None
        self.in_cluster = False
        self.node_name: str | None = None
        self.output = "table"
        self._namespace: str | None = None
        self.namespace_given = False
        self.verbosity = 0

    @property
    def root(self) -> str:
        """The root directory as an absolute path."""
        return os.path.abspath(self.root_dir)

    @property
    def namespace(self) -> str:
        """The namespace of the command: as given, else that of the kubeconfig's context, else the default one."""
        if self._namespace is None and self.cluster:
            from volumehost.cli.api_choice import context_namespace

            self._namespace = context_namespace(self)
        return self._namespace or DEFAULT_NAMESPACE

    @namespace.setter
    def namespace(self, name: str) -> None:
        self._namespace = name

    @property
    def cluster(self) -> bool:
        """Whether API objects are those of a cluster, and not those under the root directory."""
        return self.in_cluster or self.kubeconfig is not None or self.context is not None


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    settings = ctx.ensure_object(Settings)
    if value is None or param.name is None:
        return
    if param.name == "verbose":
        settings.verbosity += value
        return
    if param.name == "in_cluster" and not value:
        return  # not given here; perhaps before the command's name
    if value == "" and param.name != "node_name":
        raise click.BadParameter("must not be empty", ctx, param)
    if param.name == "node_name" and value:
        from volumehost.hosts.node_name import node_name_problem

        if problem := node_name_problem(value):
            raise click.BadParameter(f"{value!r}: {problem}", ctx, param)
    setattr(settings, param.name, value)
    if param.name == "namespace":
        settings.namespace_given = True
    elif param.name in {"root_dir", "kubeconfig"}:
        given = ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
        setattr(settings, f"{param.name}_given", given or getattr(settings, f"{param.name}_given"))


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


def _kubeconfig(*, environment: bool) -> click.Option:
    return click.Option(
        ["--kubeconfig"],
        type=click.Path(readable=False),  # looked at where it is used, as the root directory
        metavar="FILE",
        envvar=KUBECONFIG_VARIABLE if environment else None,
        expose_value=False,
        callback=_store,
        help=f"Use the cluster of this kubeconfig.  [default: ${KUBECONFIG_VARIABLE}, else no cluster]",
    )


def _context() -> click.Option:
    return click.Option(
        ["--context"],
        metavar="NAME",
        expose_value=False,
        callback=_store,
        help="Use the cluster of this context of the kubeconfig, by default $KUBECONFIG or ~/.kube/config.",
    )


def _in_cluster() -> click.Option:
    return click.Option(
        ["--in-cluster"],
        is_flag=True,
        expose_value=False,
        callback=_store,
        help="Use the cluster whose pod this runs in.",
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
        help="Namespace of the objects.  [default: that of the kubeconfig's context, else default]",
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
    "kubeconfig": lambda: _kubeconfig(environment=False),
    "context": _context,
    "in-cluster": _in_cluster,
    "node-name": _node_name,
    "output": _output,
    "namespace": _namespace,
    "verbose": _verbose,
}

#: A name that stands for several options.
_TOGETHER = {"cluster": ("kubeconfig", "context", "in-cluster")}


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
    cluster = [_kubeconfig(environment=True), _context(), _in_cluster()]
    return [_root_dir(environment=True), *cluster, _node_name(), _output(), _namespace(), _verbose(), _version()]


def shared_params(*names: str) -> list[click.Parameter]:
    """These shared options, for a group of commands; ``verbose`` comes with them."""
    return [_MAKERS[each]() for name in (*names, "verbose") for each in _TOGETHER.get(name, (name,))]


def shared_options(*names: str) -> Callable[[_F], _F]:
    """Give a command these shared options; ``verbose`` comes with them.

    :param names: of ``root-dir``, ``cluster``, ``node-name``, ``output``, ``namespace``.
    """

    def decorate(function: _F) -> _F:
        params = shared_params(*names)
        own = getattr(function, "__click_params__", None)
        if own is None:
            own = function.__click_params__ = []  # type: ignore[attr-defined]  # click's own attribute
        own.extend(reversed(params))
        return function

    return decorate
