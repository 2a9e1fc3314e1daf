"""``volumehost export``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.managing import at_work, root_dir_exists, timeout_option, volume_manager
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_names import choose_pod, looking_for
from volumehost.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.node.workloads.containers import ContainerMounts

FORMATS = ("oci", "podman", "docker", "bwrap", "json")


@click.command(
    cls=Command,
    examples=(
        ("What each container of a pod gets", "volumehost export web"),
        ("Arguments for a sandbox, quoted for a shell", "volumehost export web --container c --format bwrap"),
        ("Arguments for podman, as a list for a program", "volumehost export web --format podman -o json"),
        ("The configuration of a bundle with the volumes", "volumehost export web --container c --config config.json"),
    ),
)
@click.argument("pod", type=NameType(), shell_complete=pod_names)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="For which container runtime.  [default: json, with --config oci]",
)
@click.option("--container", metavar="NAME", help="This container alone.")
@click.option(
    "--config",
    "config",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="With --container: print this config.json of an OCI runtime with the volumes in it.",
)
@timeout_option("How long to wait while another process works on the root directory.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def export(
    settings: Settings, pod: str, *, format_name: str | None, container: str | None, config: str | None, timeout: float
) -> None:
    """Print what containers get of a mounted pod's volumes, for a runtime.

    Mounts nothing into anything, but for one thing: parts of volumes (subPath) are bound to a place where no container
    can change them, until the volume is unmounted. For podman, docker and bwrap the result is one line of arguments for
    each container, quoted for a shell; with -o json, lists of arguments. The pod has to be mounted.
    """
    if config is not None and (format_name not in {None, "oci"} or container is None):
        raise click.UsageError("--config goes with --container, and with no other --format than oci")
    format_name = format_name or ("json" if config is None else "oci")
    given = _read_config(config) if config is not None else None
    name = choose_pod(settings, pod)
    with looking_for(settings, name):
        found = _containers(settings, name, container, timeout)
    if settings.output == "name":
        for each in found:
            click.echo(each.container)
    elif format_name == "json":
        _print_data(settings, {"containers": [_json(each) for each in found]})
    elif format_name == "oci":
        _print_oci(settings, found, given, alone=container is not None)
    else:
        _print_arguments(settings, format_name, found, alone=container is not None)


def _containers(settings: Settings, name: str, container: str | None, timeout: float) -> list[ContainerMounts]:
    label = f"{settings.namespace}/{name}"
    if not root_dir_exists(settings):
        raise ObjectNotFoundError(
            f"there is no pod {label}: the root directory {settings.root} does not exist",
            subject=label,
            hint="another root directory is given with --root-dir",
        )
    from volumehost.api.objects import Pod

    with volume_manager(settings, timeout) as entered:
        manager = at_work(entered)
        found = manager.container_mounts(manager.api.get(Pod, name, settings.namespace))
    if container is None:
        return found
    alone = [each for each in found if each.container == container]
    if not alone:
        raise ObjectNotFoundError(
            f"pod {label} has no container {container}",
            subject=container,
            hint=f"it has {', '.join(each.container for each in found)}",
        )
    return alone


def _json(container: ContainerMounts) -> dict[str, Any]:
    from volumehost.runtimes.formats import container_data

    return container_data(container)


def _print_oci(
    settings: Settings, found: Sequence[ContainerMounts], config: dict[str, Any] | None, *, alone: bool
) -> None:
    from volumehost.runtimes.oci import merge_into, oci_fragment

    made = {each.container: merge_into(config, each) if config is not None else oci_fragment(each) for each in found}
    _print_data(settings, next(iter(made.values())) if alone else made)


def _print_arguments(settings: Settings, format_name: str, found: Sequence[ContainerMounts], *, alone: bool) -> None:
    """Everything is worked out before anything is printed: half a command line is worse than none."""
    import shlex

    from volumehost.runtimes.formats import ARGUMENTS

    made = [(each, ARGUMENTS[format_name](each)) for each in found]
    if settings.output != "table":
        containers = [
            {"container": each.container, "kind": each.kind, "arguments": arguments} for each, arguments in made
        ]
        _print_data(settings, {"format": format_name, "containers": containers})
        return
    for each, arguments in made:
        if not alone:
            click.echo(f"## {each.kind} container {each.container}")
        click.echo(shlex.join(arguments))


def _print_data(settings: Settings, data: Any) -> None:
    from volumehost.cli.output import echo_data

    echo_data(data, "yaml" if settings.output == "yaml" else "json")


def _read_config(path: str) -> dict[str, Any]:
    """A runtime configuration, which is a JSON object.

    :raises ManifestError: it is none.
    """
    import json

    from volumehost.errors import ManifestError

    action = f"reading {path}"
    try:
        with click.open_file(path, "rb") as file:
            data = json.loads(file.read())
    except OSError as error:
        raise ManifestError(error.strerror or str(error), source=path, action=action) from error
    except ValueError as error:
        raise ManifestError(f"it is no JSON: {error}", source=path, action=action) from error
    if not isinstance(data, dict):
        raise ManifestError("it is no OCI runtime configuration: expected an object", source=path, action=action)
    return data
