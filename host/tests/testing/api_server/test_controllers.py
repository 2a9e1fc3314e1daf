"""What the controllers of every cluster do: garbage, storage in use, namespaces that go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from volumehost.testing.api_server import ApiServer

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def csi_node(owner: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "n1", "ownerReferences": [reference]}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": []}}


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


class TestGarbage:
    def test_owner_that_is_there(self, server) -> None:
        server.objects.put(csi_node(server.objects.put(NODE)))
        assert server.collect_garbage() == 0

    def test_owner_that_was_made_again(self, server) -> None:
        """BR-78: the CSINode of a node of that name which has gone."""
        server.objects.put(csi_node(server.objects.put(NODE)))
        old = server.objects.get("nodes", "n1")["metadata"]["uid"]
        assert server.recreate("nodes", "n1")["metadata"]["uid"] != old
        assert server.collect_garbage() == 1
        assert server.objects.find("csinodes", "n1") is None

    def test_by_itself(self) -> None:
        with ApiServer(garbage_collector=True) as server:
            server.objects.put(csi_node(server.objects.put(NODE)))
            server.objects.delete("nodes", "n1")
            server.objects.wait("csinodes", "n1", until=lambda found: found is None)

    def test_owner_of_an_unknown_kind_is_believed(self, server) -> None:
        document = csi_node(server.objects.put(NODE))
        document["metadata"]["ownerReferences"][0]["kind"] = "Unknown"
        server.objects.put(document)
        assert server.collect_garbage() == 0


class TestProtection:
    @pytest.fixture
    def cluster(self) -> Iterator[ApiServer]:
        with ApiServer(protection=True) as made:
            yield made

    def test_claim_goes_with_its_last_pod(self, cluster, connect, claim, pod) -> None:
        http = connect(cluster)
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        cluster.objects.put(claim)
        cluster.objects.put(pod)
        assert http.delete(CLAIMS + "/data").metadata["finalizers"]
        cluster.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another-change"}})
        assert cluster.objects.find("persistentvolumeclaims", "data")
        cluster.objects.delete("pods", "web")
        cluster.objects.wait("persistentvolumeclaims", "data", until=lambda found: found is None)

    def test_volume_goes_when_it_is_bound_no_more(self, cluster, connect) -> None:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec}
        cluster.objects.put(volume | {"status": {"phase": "Bound"}})
        connect(cluster).delete("/api/v1/persistentvolumes/pv")
        cluster.objects.patch("persistentvolumes", "pv", {"status": {"phase": "Released"}})
        cluster.objects.wait("persistentvolumes", "pv", until=lambda found: found is None)


class TestNamespaces:
    def test_content_goes_first(self, connect) -> None:
        with ApiServer(garbage_collector=True) as server:
            held = {"name": "x", "namespace": "team", "finalizers": ["example.com/hold"]}
            server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
            connect(server).delete("/api/v1/namespaces/team")
            marked = server.objects.wait(
                "configmaps", "x", "team", until=lambda found: found and "deletionTimestamp" in found["metadata"]
            )
            assert marked
            assert server.objects.get("namespaces", "team")["status"]["phase"] == "Terminating"
            server.objects.delete("configmaps", "x", "team")
            server.objects.wait("namespaces", "team", until=lambda found: found is None)

    def test_finalize(self, server, connect) -> None:
        """As a namespace controller ends one."""
        http = connect(server)
        made = http.post("/api/v1/namespaces", {"metadata": {"name": "team"}}).body
        http.delete("/api/v1/namespaces/team")
        del made["metadata"]["resourceVersion"]
        http.put("/api/v1/namespaces/team/finalize", made | {"spec": {}})
        assert server.objects.find("namespaces", "team") is None


class TestObjects:
    def test_documents_are_copies(self, server) -> None:
        server.objects.put(NODE)["metadata"]["name"] = "changed"
        server.objects.get("nodes", "n1")["metadata"]["name"] = "changed"
        assert server.objects.get("Node", "n1")["metadata"]["name"] == "n1"
        assert NODE == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}

    def test_missing_ones(self, server) -> None:
        with pytest.raises(LookupError, match="holds no nodes"):
            server.objects.get("nodes", "none")
        with pytest.raises(LookupError, match="serves no cattle"):
            server.objects.get("cattle", "none")

    def test_wait_shows_what_there_is_instead(self, server) -> None:
        server.objects.put(NODE)
        with pytest.raises(TimeoutError, match='"name": "n1"'):
            server.objects.wait("nodes", "n1", until=lambda found: found is None, timeout=0.01)

    def test_manifests(self, server, tmp_path) -> None:
        path = tmp_path / "objects.yaml"
        path.write_text(
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n2}\n"
        )
        server.objects.load(str(path))
        assert [node["metadata"]["name"] for node in server.objects.list("nodes")] == ["n1", "n2"]
