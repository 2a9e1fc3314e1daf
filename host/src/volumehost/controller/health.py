"""What the controller daemon tells of itself: health, readiness, metrics, and a line for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.daemon.health import Checks, health_routes
from volumehost.daemon.http import Answer, Request, Route

if TYPE_CHECKING:
    from volumehost.controller.daemon import ControllerDaemon
    from volumehost.metrics.controllers import ControllerView


def alive(daemon: ControllerDaemon) -> Checks:
    """Whether the process gets round to its work; a restart would help where it does not."""
    return {"leader-election": "" if daemon.alive or daemon.ended else "its thread has ended"}


def ready(daemon: ControllerDaemon) -> Checks:
    """Whether it does what it is there for: lead, or stand by for when the leader is gone."""
    work, leading = daemon.work, daemon.leading
    problem = "; ".join(work.problems()) if work is not None else ""
    plugins = work is not None and not work.plugins.loaded_plugins()
    waits = "" if leading or daemon.leader or work is not None else daemon.phase
    return {
        "leader-election": daemon.lease_problem() or waits,
        "caches": problem,
        "plugins": "no volume plugin is loaded" if plugins else "",
        **alive(daemon),
    }


def line(daemon: ControllerDaemon) -> str:
    """How things are, in one line."""
    problems = [text for text in ready(daemon).values() if text]
    if problems:
        return problems[0]
    if not daemon.leading and daemon.leader and not daemon.stopping:
        return f"{daemon.leader} leads"
    return daemon.phase


def _view(daemon: ControllerDaemon) -> ControllerView:
    from volumehost.metrics.controllers import ControllerView

    work, lease = daemon.work, daemon.settings.lease
    name = lease.name if lease is not None else ""
    if work is None:
        return ControllerView(lease=name)
    return ControllerView(
        lease=name,
        leading=daemon.leading,
        world=work.world,
        api=work.api,
        plugins=work.plugins,
        failures=work.failures(),
    )


def routes(daemon: ControllerDaemon) -> dict[str, Route]:
    """``/healthz`` (also ``/livez``), ``/readyz`` and ``/metrics``."""

    def metrics(request: Request) -> Answer:
        if daemon.metrics is None:
            return Answer.of_text(404, "nothing is counted without --http\n")
        return Answer(200, *daemon.metrics.text(_view(daemon), request.accept))

    return {**health_routes(lambda: alive(daemon), lambda: ready(daemon)), "/metrics": metrics}
