"""Checks of the agent's health, by name: alive for whoever would restart it, ready for whoever relies on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.daemon.health import Checks, health_routes
from volumehost.daemon.http import Answer, Request, Route

if TYPE_CHECKING:
    from volumehost.agent.agent import Agent
    from volumehost.node.manager import VolumeManager


def alive(agent: Agent) -> Checks:
    """Whether the process gets round to its work; a restart would help where it does not."""
    heart = agent.heart
    return {
        "timers": heart.timer_problem() if heart is not None else "",
        "reconciler": heart.reconciler_problem() if heart is not None else "",
    }


def ready(agent: Agent) -> Checks:
    """Whether the agent has taken over the node: what is mounted is known, and so is what is wanted."""
    manager, sources = agent.at_work, agent.sources
    not_yet = "" if manager is not None else agent.phase
    plugins = not_yet or ("" if manager is None or manager.plugins.loaded_plugins() else "no volume plugin is loaded")
    store = not_yet or agent.store_problem()
    untold = not_yet or ("the sources of pods are not begun yet" if sources is None else "")
    if sources is not None and not untold:
        untold = "; ".join(sources.problems())
        if not untold and not sources.complete:
            untold = "the pods are being looked at for the first time"
    of_cluster = _of_cluster(manager, not_yet) if agent.settings.cluster else {}
    objects = "api-server" if agent.settings.cluster else "store"
    return {"volumes": not_yet, "plugins": plugins, objects: store, **of_cluster, "pods": untold, **alive(agent)}


def _of_cluster(manager: VolumeManager | None, not_yet: str) -> Checks:
    """What the cluster knows of the node."""
    if manager is None:
        return {"node": not_yet, "csinode": not_yet}
    attachments, error = manager.parts.services.attachments, manager.host.kubelet_error
    return {
        "node": attachments.problem if attachments is not None else "",
        "csinode": f"CSINode is not yet initialized: {error}" if error is not None else "",
    }


def routes(agent: Agent) -> dict[str, Route]:
    """``/healthz`` (also ``/livez``), ``/readyz`` and ``/metrics``, for a server of the agent."""

    def metrics(request: Request) -> Answer:
        if agent.metrics is None:
            return Answer.of_text(404, "nothing is counted without --http\n")
        return Answer(200, *agent.metrics.text(request.accept))

    return {**health_routes(lambda: alive(agent), lambda: ready(agent)), "/metrics": metrics}
