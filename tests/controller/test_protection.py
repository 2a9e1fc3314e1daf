"""Claims and volumes that are in use stay until that ends (protection finalizers), where nobody else sees to it."""

from __future__ import annotations

from types import SimpleNamespace

from volumehost.api.kubernetes import connect
from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
from volumehost.control.binding.protection import ClaimProtection
from volumehost.control.machinery.controller import Key

PVC, PV = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


def finalizers(cluster, kind: str, namespace: str = "") -> list[str]:
    found = cluster.objects.find(kind, "data", namespace)
    return [] if found is None else found["metadata"].get("finalizers", [])


def test_a_claim_stays_while_a_pod_uses_it_and_goes_with_it(cluster, wait) -> None:
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    cluster.start()
    wait(lambda: cluster.attached() == ["data"], "the attachment")
    wait(lambda: PVC in finalizers(cluster, "persistentvolumeclaims", "default"), "the claim to be protected")
    wait(lambda: PV in finalizers(cluster, "persistentvolumes"), "the volume to be protected")
    cluster.objects.patch("persistentvolumeclaims", "data", {"metadata": {"labels": {"a": "b"}}}, "default")
    delete(cluster, "persistentvolumeclaims", "default")
    delete(cluster, "persistentvolumes")
    cluster.node("other")  # something that the controllers look at, after those
    wait(lambda: marked(cluster, "persistentvolumeclaims", "default"), "the mark")
    assert PVC in finalizers(cluster, "persistentvolumeclaims", "default")
    assert PV in finalizers(cluster, "persistentvolumes")
    cluster.end_pod()
    wait(lambda: cluster.objects.find("persistentvolumeclaims", "data", "default") is None, "the claim to go")
    wait(lambda: cluster.objects.find("persistentvolumes", "data") is None, "the volume to go")


def test_another_pods_ephemeral_claim_of_that_name_is_not_kept(cluster, wait) -> None:
    """The pod that comes again under its name does not use what was made for the former one, but waits for its end."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "former", "controller": True}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    cluster.put(
        "PersistentVolumeClaim",
        "web-v",
        metadata={"namespace": "default", "ownerReferences": [owner], "finalizers": [PVC]},
        spec=spec,
    )
    cluster.put(
        "Pod",
        "web",
        metadata={"namespace": "default"},
        spec={
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "registry.example.com/c"}],
            "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}],
        },
    )
    cluster.start()
    uid = cluster.objects.get("pods", "web", "default")["metadata"]["uid"]
    wait(
        lambda: (
            cluster.objects.get("persistentvolumeclaims", "web-v", "default")["metadata"]["ownerReferences"][0]["uid"]
            == uid
        ),
        "a claim of its own",
    )


def test_a_pod_that_has_ended_keeps_its_claim_until_its_object_is_gone(cluster) -> None:
    """As in Kubernetes: its node may still be unmounting the volume, and without the claim that would be deleted."""
    cluster.node()
    cluster.volume()
    cluster.pod()
    cluster.objects.patch("pods", "web", {"status": {"phase": "Succeeded"}}, "default")
    cluster.objects.patch("persistentvolumeclaims", "data", {"metadata": {"finalizers": [PVC]}}, "default")
    delete(cluster, "persistentvolumeclaims", "default")
    client = connect(cluster.settings().kubeconfig)
    protection = ClaimProtection(SimpleNamespace(api=client), client)
    protection.reconcile(Key("data", "default"))
    assert finalizers(cluster, "persistentvolumeclaims", "default") == [PVC]
    cluster.end_pod()
    protection.reconcile(Key("data", "default"))
    assert cluster.objects.find("persistentvolumeclaims", "data", "default") is None
    client.close()


def delete(cluster, resource: str, namespace: str = "") -> None:
    """As a user does: the finalizers are respected."""
    kind = PersistentVolumeClaim if resource == "persistentvolumeclaims" else PersistentVolume
    client = connect(cluster.settings().kubeconfig)
    client.delete(kind, "data", namespace)
    client.close()


def marked(cluster, resource: str, namespace: str) -> bool:
    return bool(cluster.objects.get(resource, "data", namespace)["metadata"].get("deletionTimestamp"))
