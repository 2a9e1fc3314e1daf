"""Keeps systemd informed while the agent runs: its watchdog, a line on what there is, more time where it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.agent.health import alive

if TYPE_CHECKING:
    from volumehost.agent.agent import Agent
    from volumehost.daemon.notify import Notifier

#: Seconds between two looks at what there is to tell, and how much more time is asked for each time.
TEND_SECONDS: Final = 5.0
MORE_SECONDS: Final = 4 * TEND_SECONDS


class Tending:
    """Called from the agent's main thread, which nothing can hold up."""

    def __init__(self, agent: Agent, notifier: Notifier) -> None:
        self._agent = agent
        self._notifier = notifier

    def tend(self) -> float | None:
        """Tell what there is to tell; returns the seconds until it should be called again, None for never."""
        agent, notifier = self._agent, self._notifier
        if not notifier.listens:
            return None
        if agent.takes_its_time:
            notifier.extend(MORE_SECONDS)
        notifier.status(self._line())
        watchdog = notifier.watchdog_seconds
        if watchdog is not None and not any(alive(agent).values()):
            notifier.alive()
        return TEND_SECONDS if watchdog is None else min(TEND_SECONDS, watchdog / 3)

    def _line(self) -> str:
        agent = self._agent
        manager, sources = agent.at_work, agent.sources
        if manager is None or agent.stopping:
            return agent.phase
        problem = next((f"{name}: {text}" for name, text in alive(agent).items() if text), "")
        problem = problem or next(iter(sources.problems() if sources is not None else ()), "")
        if problem:
            return problem
        pods = len(manager.parts.services.actual.pods())
        return f"{pods} pod{'' if pods == 1 else 's'} with volumes"
