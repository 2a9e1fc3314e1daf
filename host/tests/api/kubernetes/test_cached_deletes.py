"""What a CachedClient has deleted and a server keeps for a while is read back as on its way."""

from __future__ import annotations

from volumehost.api.kubernetes import CachedClient, KubernetesClient, Watched
from volumehost.api.objects import ConfigMap, Pod
from volumehost.testing.api_contract.fixtures import PATIENCE
from volumehost.testing.api_server import ApiServer, Rule


def test_what_an_own_call_has_marked_is_read_back(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    """What finalizers or a grace period hold is on its way, which nobody should have to learn of by the watch."""
    server.faults.add(Rule(verb="watch", after_events=0, hang=True, times=None))
    held = {"name": "a", "finalizers": ["example.com/hold"]}
    server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "registry.example.com/none"}]}
    server.objects.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
    with CachedClient(kubernetes_client, [Watched(ConfigMap), Watched(Pod)]) as client:
        assert client.wait_for_sync(PATIENCE)
        assert client.delete(ConfigMap, "a").metadata.deletion_timestamp is not None
        assert client.get(ConfigMap, "a").metadata.deletion_timestamp is not None
        client.delete(Pod, "web")
        assert client.get(Pod, "web").metadata.deletion_grace_period_seconds == 30
        assert client.list(Pod).items[0].metadata.deletion_timestamp is not None
    assert server.requests.count(verb="get") == 0
