"""``volumehost agent``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.durations import DurationType
from volumehost.cli.options import Settings, shared_options

if TYPE_CHECKING:
    from volumehost.agent.settings import AgentSettings


@click.command(
    cls=Command,
    examples=(
        ("For this machine, until SIGTERM", "volumehost agent"),
        (
            "With static pods, and health and metrics for this machine",
            "volumehost agent --static-pods /etc/volumehost/pods --http 127.0.0.1:10258",
        ),
        ("For the pods of a cluster on this node", "volumehost agent --kubeconfig cluster.conf"),
        ("As a service", "volumehost agent --print-unit > volumehost.service"),
    ),
)
@click.option(
    "--static-pods",
    metavar="DIR",
    type=click.Path(),
    help="Mount the pods whose manifests are here, for as long as they are.",
)
@click.option(
    "--http",
    metavar="ADDRESS:PORT",
    help="Serve /healthz, /readyz and /metrics there; port 0 for any.  [default: nowhere]",
)
@click.option(
    "--grace",
    type=DurationType(),
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for operations that run, when told to end.",
)
@click.option("--drain", is_flag=True, help="Unmount everything when told to end.")
@click.option(
    "--drain-timeout",
    type=DurationType(),
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long to try that.",
)
@click.option("--print-unit", is_flag=True, help="Print a systemd unit that runs this command, and do nothing else.")
@shared_options("root-dir", "node-name", "kubeconfig", "context", "in-cluster")
@click.pass_obj
def agent(
    settings: Settings,
    static_pods: str | None,
    http: str | None,
    grace: float,
    *,
    drain: bool,
    drain_timeout: float,
    print_unit: bool,
) -> None:
    """Keep the volumes of all pods of this node mounted, until SIGTERM.

    Pods come from the store ("volumehost mount", "volumehost apply") and from static manifests. With --kubeconfig or
    --in-cluster they are those of the cluster that are bound to this node, and controllers there bind, attach and
    detach ("volumehost controller"). Other commands work through the agent while it runs. Mounts stay when it ends, and
    the next agent goes on with them; with --drain they are unmounted.

    SIGTERM and SIGINT end it within --grace, a second one at once. SIGHUP makes it look at plugins, drivers and
    manifests anew. The exit code is 4 when --drain could not unmount everything.
    """
    from volumehost.agent.settings import AgentSettings
    from volumehost.cli.api_choice import check_cluster_options
    from volumehost.daemon.http import parse_address

    check_cluster_options(settings)
    options = AgentSettings(
        settings.root,
        settings.node_name,
        static_pods=os.path.abspath(static_pods) if static_pods is not None else None,
        grace=grace,
        drain=drain,
        drain_timeout=drain_timeout,
        http=http,
        kubeconfig=os.path.abspath(settings.kubeconfig) if settings.kubeconfig is not None else None,
        context=settings.context,
        in_cluster=settings.in_cluster,
    )
    if http is not None:
        try:
            parse_address(http)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--http") from None
    if print_unit:
        from volumehost.agent.unit import unit_text

        click.echo(unit_text(options, settings.verbosity), nl=False)
        return
    _run(options)


def _run(options: AgentSettings) -> None:
    from volumehost.agent.agent import Agent
    from volumehost.agent.control_socket import ControlSocket
    from volumehost.cli.daemons import leave, telling
    from volumehost.cli.streams import plugins_print_to_stderr
    from volumehost.mount.privileges import check_mount_privileges

    check_mount_privileges()
    with plugins_print_to_stderr(), telling("volumehost.agent"):
        agent = Agent(options, [ControlSocket()])
        agent.run()
        leave(ended=agent.ended)
