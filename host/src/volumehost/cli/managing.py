"""What the commands that mount and unmount share: a volume manager, their own or the one of the agent that runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from volumehost.cli.api_choice import open_for_writing
from volumehost.cli.durations import DurationType
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.cli.options import Settings
    from volumehost.node.pod_manager import PodManager

#: As long as the kubelet waits for a pod's volumes.
DEFAULT_TIMEOUT = "2m3s"


def timeout_option(words: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """``--timeout``, in seconds for the command."""
    return click.option(
        "--timeout", type=DurationType(), default=DEFAULT_TIMEOUT, show_default=True, metavar="DURATION", help=words
    )


def no_wait_option(function: Callable[..., object]) -> Callable[..., object]:
    """``--wait/--no-wait`` of the commands that change objects."""
    return click.option(
        "--wait/--no-wait", default=True, help="Wait until the controllers have done their part.  [default: wait]"
    )(function)


def root_dir_exists(settings: Settings) -> bool:
    """Whether there is a root directory: where there is none, nothing can be mounted.

    Something else in its place counts, so that whoever wants to use it says what is wrong with it.
    """
    from volumehost.hosts.root_dir import resolve_root_dir

    return os.path.lexists(resolve_root_dir(settings.root))


def make_room(settings: Settings) -> None:
    """Let a full filesystem not stand in the way of what is about to be taken away."""
    from volumehost.hosts.reserve import spend_reserve

    spend_reserve(settings.root)


@contextmanager
def volume_manager(
    settings: Settings, timeout: float, *, unless: Callable[[], bool] = lambda: False
) -> Iterator[PodManager | None]:
    """A manager at work on the root directory, as soon as no other process has it; None when ``unless`` came true.

    While an agent has the root directory, it is the agent's; in a cluster there must be one. One of its own first
    checks that this process can mount at all, before anything is made. The command's own output has to wait for the
    end of the block.

    :raises MissingPrivilegeError: it cannot.
    :raises AgentGoneError: a cluster is meant, and no agent is at work here.
    :raises WaitTimeoutError: another process kept the root directory for ``timeout`` seconds.
    """
    from volumehost.cli.streams import plugins_print_to_stderr
    from volumehost.hosts.reserve import hold_reserve
    from volumehost.mount.privileges import check_mount_privileges
    from volumehost.node.manager import VolumeManager
    from volumehost.node.turn import manager_in_turn

    if settings.cluster:
        with agent_manager(settings) as agent:
            yield agent
        return

    def make() -> VolumeManager:
        check_mount_privileges()
        return VolumeManager(settings.root, node_name=settings.node_name)

    with (
        plugins_print_to_stderr(),
        manager_in_turn(make, timeout, join=lambda: agent_manager(settings), on_wait=_tell, unless=unless) as manager,
    ):
        if manager is not None:
            hold_reserve(manager.root_dir)
        yield manager


@contextmanager
def agent_manager(settings: Settings) -> Iterator[PodManager]:
    """The manager of the agent that has the root directory.

    :raises AgentGoneError: none is there.
    """
    from volumehost.agent.client import AgentManager
    from volumehost.hosts.root_dir import resolve_root_dir

    with ExitStack() as stack:

        def open_api() -> ApiClient:
            return stack.enter_context(open_for_writing(settings))

        yield stack.enter_context(AgentManager(resolve_root_dir(settings.root), open_api))


def at_work(manager: PodManager | None) -> PodManager:
    """The manager, where there is no reason not to have one."""
    if manager is None:
        raise FailedPreconditionError("there is no volume manager", action="working on the root directory")
    return manager


def _tell(pid: int | None) -> None:
    who = f"process {pid}" if pid else "another process"
    click.echo(f"waiting: {who} works on the root directory", err=True)
