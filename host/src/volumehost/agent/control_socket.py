"""The control socket as a service of the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.agent.service import ControlService

if TYPE_CHECKING:
    from volumehost.agent.agent import Agent


class ControlSocket:
    """A Service: serves the control socket while the agent's manager is at work."""

    def __init__(self) -> None:
        self._service: ControlService | None = None

    def start(self, agent: Agent) -> None:
        """Begin to answer."""
        service = ControlService(agent.manager)
        service.start()
        self._service = service

    def stop(self, deadline: float) -> None:
        """Take no more calls."""
        del deadline
        service, self._service = self._service, None
        if service is not None:
            service.stop()
