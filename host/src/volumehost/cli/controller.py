"""``volumehost controller``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.durations import DurationType
from volumehost.cli.options import Settings, shared_options

if TYPE_CHECKING:
    from volumehost.controller.leader_election import LeaseSettings
    from volumehost.controller.settings import ControllerSettings


@click.command(
    cls=Command,
    examples=(
        ("For the cluster of a kubeconfig, until SIGTERM", "volumehost controller --kubeconfig cluster.conf"),
        (
            "One controller alone, with health and metrics for this machine",
            "volumehost controller --kubeconfig cluster.conf --controllers attach-detach --http 127.0.0.1:10259",
        ),
        (
            "All but one, and no other process that would take over",
            "volumehost controller --kubeconfig cluster.conf --controllers -expander --no-leader-elect",
        ),
    ),
)
@click.option(
    "--controllers",
    metavar="NAMES",
    help="Which ones, separated by commas: NAME turns on, -NAME off, * stands for those that are on by default.  "
    "[default: all but those that serve --csi-driver]",
)
@click.option(
    "--csi-driver",
    "csi_drivers",
    multiple=True,
    metavar="NAME=ENDPOINT",
    help="Do for this CSI driver, with its controller service at ENDPOINT, what its sidecars would do. Only where "
    "there are no such sidecars. May be given several times.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    help="Work only while this process is the leader.  [default: leader-elect]",
)
@click.option(
    "--lease-namespace",
    default="",
    metavar="NAME",
    help="Where the leader's lease is.  [default: with --in-cluster the pod's own namespace, else kube-system]",
)
@click.option(
    "--lease-name", default="volumehost-controller", show_default=True, metavar="NAME", help="Name of the lease."
)
@click.option(
    "--http",
    metavar="ADDRESS:PORT",
    help="Serve /healthz, /readyz and /metrics there; port 0 for any.  [default: nowhere]",
)
@click.option(
    "--max-wait-for-unmount",
    type=DurationType(),
    default="6m",
    show_default=True,
    metavar="DURATION",
    help="After how long a volume is taken from a node that is not healthy and may still use it.",
)
@click.option(
    "--no-force-detach",
    is_flag=True,
    help="Never do that, unless the node has the taint node.kubernetes.io/out-of-service.",
)
@click.option(
    "--grace",
    type=DurationType(),
    default="20s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for what is under way, when told to end.",
)
@shared_options("root-dir", "cluster")
@click.pass_obj
def controller(
    settings: Settings,
    *,
    controllers: str | None,
    csi_drivers: tuple[str, ...],
    lease_namespace: str,
    lease_name: str,
    http: str | None,
    max_wait_for_unmount: float,
    grace: float,
    leader_elect: bool,
    no_force_detach: bool,
) -> None:
    """Attach, bind, provision, expand and reclaim the volumes of a cluster, until SIGTERM.

    Several may run for one cluster: one of them is the leader and works, another takes over when it is gone.

    Controllers: attach-detach, binder, reclaimer, expander, ephemeral, claim-protection, volume-protection; and for
    the drivers of --csi-driver: csi-provisioner, csi-attacher, csi-resizer, csi-snapshotter. A cluster whose
    kube-controller-manager has its own ones must have those turned off, so that never two work on one object.

    The plugins' configuration is config.toml below --root-dir. SIGTERM and SIGINT end it within --grace, a second one
    at once.
    """
    from volumehost.cli.api_choice import check_cluster_options
    from volumehost.controller.settings import ControllerSettings

    check_cluster_options(settings)
    if not settings.cluster:
        raise click.UsageError("it works for a cluster: give --kubeconfig, --context or --in-cluster")
    drivers = _drivers(csi_drivers)
    _check_address(http)
    _run(
        ControllerSettings(
            kubeconfig=os.path.abspath(settings.kubeconfig) if settings.kubeconfig is not None else None,
            context=settings.context,
            in_cluster=settings.in_cluster,
            controllers=_chosen(controllers, served=bool(drivers)),
            drivers=drivers,
            lease=_lease(lease_namespace, lease_name) if leader_elect else None,
            http=http,
            grace=grace,
            root_dir=settings.root,
            max_wait_for_unmount=None if no_force_detach else max_wait_for_unmount,
        )
    )


def _lease(namespace: str, name: str) -> LeaseSettings:
    from volumehost.controller.leader_election import LeaseSettings
    from volumehost.controller.settings import identity

    return LeaseSettings(namespace, name, identity())


def _chosen(names: str | None, *, served: bool) -> frozenset[str]:
    """:param served: whether there is a driver for those that do a sidecar's work."""
    from volumehost.control.cluster import SIDECARS
    from volumehost.controller.settings import chosen_controllers

    try:
        chosen = chosen_controllers(names.split(",") if names is not None else (), sidecars=served)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--controllers") from None
    if not chosen:
        raise click.BadParameter("it turns every controller off", param_hint="--controllers")
    if chosen & SIDECARS and not served:
        text = f"{min(chosen & SIDECARS)} serves the drivers of --csi-driver, and none is given"
        raise click.BadParameter(text, param_hint="--controllers")
    return chosen


def _drivers(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, endpoint = each.partition("=")
        if not name or not equals or not endpoint:
            raise click.BadParameter(f"{each!r} is no NAME=ENDPOINT", param_hint="--csi-driver")
        if name in found:
            raise click.BadParameter(f"{name} is given twice", param_hint="--csi-driver")
        found[name] = endpoint
    return tuple(found.items())


def _check_address(http: str | None) -> None:
    from volumehost.daemon.http import parse_address

    if http is not None:
        try:
            parse_address(http)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--http") from None


def _run(options: ControllerSettings) -> None:
    from volumehost.cli.daemons import leave, telling
    from volumehost.cli.streams import plugins_print_to_stderr
    from volumehost.controller.daemon import ControllerDaemon

    with plugins_print_to_stderr(), telling("volumehost.controller"):
        daemon = ControllerDaemon(options)
        daemon.run()
        leave(ended=daemon.ended)
