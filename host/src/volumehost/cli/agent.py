"""``volumehost agent``."""

from __future__ import annotations

import click

from volumehost.cli.command import Command
from volumehost.cli.durations import DurationType
from volumehost.cli.options import Settings, shared_options


@click.command(
    cls=Command,
    examples=(
        ("For this machine, until SIGTERM", "volumehost agent"),
        ("With static pods", "volumehost agent --static-pods /etc/volumehost/pods"),
    ),
)
@click.option("--static-pods", metavar="DIR", type=click.Path(), help="Mount the pods whose manifests are here.")
@click.option(
    "--grace",
    type=DurationType(),
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for operations that run, when told to end.",
)
@shared_options("root-dir", "node-name")
@click.pass_obj
def agent(settings: Settings, static_pods: str | None, grace: float) -> None:
    """Keep the volumes of all pods of this node mounted, until SIGTERM.

    Mounts stay when the agent ends, and the next one goes on with them.
    """
    from volumehost.agent.agent import Agent, AgentSettings
    from volumehost.agent.control_socket import ControlSocket
    from volumehost.cli.streams import plugins_print_to_stderr
    from volumehost.mount.privileges import check_mount_privileges

    check_mount_privileges()
    options = AgentSettings(settings.root, settings.node_name, static_pods=static_pods, grace=grace)
    with plugins_print_to_stderr():
        Agent(options, [ControlSocket()]).run()
