"""What an agent is made with; ``volumehost agent`` fills it in from its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: How long the agent waits for operations that run when it is told to end, in seconds.
GRACE_SECONDS: Final = 30.0

#: How long unmounting everything may take when it is told to end, in seconds.
DRAIN_SECONDS: Final = 120.0

#: How long a one-shot command that has the root directory is waited for, in seconds: longer than such a command waits.
TURN_SECONDS: Final = 130.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent does. Times in seconds.

    :param root_dir: where state and mounts are; an absolute path.
    :param node_name: name of the node, by default the one that the root directory was used with.
    :param static_pods: directory with manifests of static pods, None for none.
    :param grace: how long ending waits for operations that run.
    :param drain: unmount everything when told to end; ``drain_timeout``: for how long that is tried, before the grace.
    :param http: ``ADDRESS:PORT`` where health and metrics are served, None for nowhere.
    :param turn: how long to wait for another manager that works on the root directory.
    :param kubeconfig: file of the cluster whose pods are mounted, ``context`` the one in it; ``in_cluster``: the
        cluster that this process is a pod of. With none of them pods come from the store under the root directory.
    """

    root_dir: str
    node_name: str | None = None
    static_pods: str | None = None
    grace: float = GRACE_SECONDS
    drain: bool = False
    drain_timeout: float = DRAIN_SECONDS
    http: str | None = None
    turn: float = TURN_SECONDS
    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool = False

    @property
    def cluster(self) -> bool:
        """Whether pods are those of a cluster."""
        return self.in_cluster or self.kubeconfig is not None or self.context is not None

    @property
    def longest_end(self) -> float:
        """How long the end may take, from the signal on."""
        return self.grace + (self.drain_timeout if self.drain else 0.0)
