"""What a running agent knows that the records do not tell yet: for ``status`` and ``explain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from volumehost.errors import AgentGoneError

if TYPE_CHECKING:
    from volumehost.cli.options import Settings
    from volumehost.node.pod_manager import PodManager
    from volumehost.node.status.recorded import NodeStatus
    from volumehost.node.status.records import PodStatus

T = TypeVar("T")


def ask_agent(settings: Settings, question: Callable[[PodManager], T]) -> T | None:
    """The agent's answer; None where none is at work.

    :raises VolumeHostError: the question's own.
    """
    from volumehost.cli.managing import agent_manager

    try:
        with agent_manager(settings) as manager:
            return question(manager)
    except AgentGoneError:
        return None


def with_agents_pods(settings: Settings, pods: Sequence[PodStatus]) -> tuple[list[PodStatus], list[str]]:
    """The pods of a cluster, those that an agent of this machine works on as it sees them, and its notes."""
    answer = ask_agent(settings, lambda manager: (manager.status(), manager.notes()))
    if answer is None:
        return list(pods), []
    live = {each.uid: each for each in answer[0]}
    return [live.get(each.uid, each) for each in pods], list(answer[1])


def with_live_pods(settings: Settings, found: NodeStatus) -> NodeStatus:
    """The status with the pods as the agent sees them, operations and their age included."""
    if found.manager_pid is None:  # nobody holds the root directory
        return found
    answer = ask_agent(settings, lambda manager: (manager.status(), manager.notes()))
    if answer is None:
        return found
    pods, notes = answer
    return replace(found, pods=tuple(pods), notes=(*found.notes, *notes))
