"""The agent's connection to a cluster: what it keeps up to date of the objects there, and what is wrong with that."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from volumehost.api.kinds import kind_of

if TYPE_CHECKING:
    from volumehost.agent.settings import AgentSettings
    from volumehost.api.client import ApiClient
    from volumehost.api.kubernetes import CachedClient, KubernetesClient, Watched
    from volumehost.api.kubernetes.gate import RequestGate
    from volumehost.api.objects import KubeObject

#: How long the end of the watches is waited for, in seconds.
STOP_SECONDS: Final = 5.0


def watched_kinds(node_name: str) -> list[Watched[Any]]:
    """What a node watches: its own pods, its Node and CSINode, and what claims and drivers are read for mounting.

    VolumeAttachments are not among them: the API has no selector for those of one node. Each is read when it is used.
    """
    from volumehost.api.kubernetes import Watched
    from volumehost.api.objects import CSIDriver, CSINode, Node, PersistentVolume, PersistentVolumeClaim, Pod

    own = f"metadata.name={node_name}"
    return [
        Watched(Pod, fields=f"spec.nodeName={node_name}"),
        Watched(Node, fields=own),
        Watched(CSINode, fields=own),
        Watched(CSIDriver),
        Watched(PersistentVolumeClaim),
        Watched(PersistentVolume),
    ]


class ClusterConnection:
    """A context manager; entering it asks nothing of the server, which need not answer then (BR-54).

    :raises ClusterConfigError: on entering: the kubeconfig cannot be used.
    :raises NotAvailableOnHostError: likewise: what talks to a cluster is not installed.
    """

    def __init__(self, settings: AgentSettings, node_name: str, *, gate: RequestGate | None = None) -> None:
        """:param gate: says how often a server that refuses everything is asked; as the client has it by default."""
        self._settings = settings
        self._gate = gate
        self._node_name = node_name
        self._client: KubernetesClient | None = None
        self._cached: CachedClient | None = None

    def __enter__(self) -> Self:
        from volumehost.api.kubernetes import CachedClient, connect

        self._client = connect(self._settings.kubeconfig, self._settings.context, in_cluster=self._settings.in_cluster)
        self._cached = CachedClient(self._client, watched_kinds(self._node_name), gate=self._gate)
        self._cached.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._cached is not None:
            self._cached.stop(STOP_SECONDS)
        if self._client is not None:
            self._client.close()

    @property
    def api(self) -> ApiClient:
        """The objects of the cluster."""
        assert self._cached is not None, "it is used within its block"
        return self._cached

    def problem(self) -> str:
        """Which kinds of objects may be old, and why; "" when none is."""
        if self._cached is None:
            return ""
        whys: dict[str, list[str]] = {}
        for kind, why in self._cached.stale_kinds().items():
            whys.setdefault(why, []).append(kind_of(kind).plural)
        since = self._cached.stale_since
        age = f" (for {time.monotonic() - since:.0f} s)" if since is not None else ""
        return "; ".join(f"{', '.join(sorted(kinds))} may be old{age}: {why}" for why, kinds in whys.items())

    def problem_of(self, kind: type[KubeObject]) -> str:
        """Why objects of the kind may be old, "" when they are not."""
        if self._cached is None:
            return ""
        stale = self._cached.stale_kinds()
        return (stale[kind] or "they may be old") if kind in stale else ""
