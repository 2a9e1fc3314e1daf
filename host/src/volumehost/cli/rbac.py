"""``volumehost rbac``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.command import Command
from volumehost.cli.options import Settings, shared_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.daemon.rbac import Permission

#: Where the manifests in ``deploy/`` put the daemons.
DEFAULT_NAMESPACE = "volumehost"

_ROLES = {"node": "volumehost-agent", "controller": "volumehost-controller"}


@click.command(
    cls=Command,
    examples=(
        ("What the agent of a node may do", "volumehost rbac --role node"),
        ("What the controllers may do, in another namespace", "volumehost rbac --role controller -n storage"),
    ),
)
@click.option("--role", type=click.Choice(list(_ROLES)), required=True, help="Which daemon runs with it.")
@click.option(
    "--service-account", metavar="NAME", help="Of the daemon.  [default: volumehost-agent or volumehost-controller]"
)
@click.option("--csi-driver", "csi_driver", is_flag=True, help="Of the controller, with its own --csi-driver.")
@shared_options("output", "namespace")
@click.pass_obj
def rbac(settings: Settings, role: str, service_account: str | None, *, csi_driver: bool) -> None:
    """Print what a daemon may do in a cluster, as RBAC manifests.

    ServiceAccount, roles and bindings with exactly the permissions that the daemon uses, for 'kubectl apply -f -'. The
    namespace of -n is where the daemon runs, by default volumehost. Nothing is read or written.
    """
    from volumehost.daemon.rbac import rbac_objects

    if csi_driver and role != "controller":
        raise click.UsageError("--csi-driver goes with --role controller")
    name = _ROLES[role]
    namespace = settings.namespace if settings.namespace_given else DEFAULT_NAMESPACE
    objects = rbac_objects(name, namespace, service_account or name, permissions_of(role, csi_driver=csi_driver))
    if settings.output == "name":
        for each in objects:
            click.echo(f"{each['kind'].lower()}/{each['metadata']['name']}")
    elif settings.output == "json":
        from volumehost.cli.output import echo_data

        echo_data({"apiVersion": "v1", "kind": "List", "items": objects}, "json")
    else:
        click.echo(as_yaml(objects), nl=False)


def permissions_of(role: str, *, csi_driver: bool = False) -> Sequence[Permission]:
    """The table of the daemon."""
    if role == "node":
        from volumehost.agent.permissions import NODE_PERMISSIONS

        return NODE_PERMISSIONS
    from volumehost.controller.permissions import CONTROLLER_PERMISSIONS, SIDECAR_PERMISSIONS

    return (*CONTROLLER_PERMISSIONS, *SIDECAR_PERMISSIONS) if csi_driver else CONTROLLER_PERMISSIONS


def as_yaml(objects: Sequence[dict[str, Any]]) -> str:
    """Documents of one stream."""
    from volumehost.api.yaml_writer import dump_yaml

    return "---\n".join(dump_yaml(each) for each in objects)
