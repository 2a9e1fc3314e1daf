"""A small, strict Kubernetes API server over real HTTP, in memory: for tests of whatever talks to a cluster.

::

    with ApiServer() as server:
        server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        config = server.kubeconfig(tmp_path / "config")
        server.faults.add(Rule(verb="list", resource="pods", code=429, retry_after=1))
        ...
        assert server.requests.count(verb="patch", resource="nodes/status") == 1

It behaves as a real server does where that matters to clients, and is no kinder: it fills in defaults, refuses what
must not change, wants resource versions, lists in any order, forgets old versions, keeps a status apart.
"""

from __future__ import annotations

from volumehost.testing.api_server.faults import Faults, Rule
from volumehost.testing.api_server.objects import Objects
from volumehost.testing.api_server.recording import Request, Requests
from volumehost.testing.api_server.server import ApiServer

__all__ = ["ApiServer", "Faults", "Objects", "Request", "Requests", "Rule"]
