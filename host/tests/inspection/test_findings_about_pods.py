"""Orphaned pods are told from pods that nobody was asked about; which sources tell what."""

import json
import os
import time
from pathlib import Path

import pytest

from volumehost.errors import ManifestError
from volumehost.inspection.inspect import Sources, inspect_root
from volumehost.inspection.pods import KnownPod, KnownPods, PodName
from volumehost.inspection.report import PodState

from .conftest import kinds, pod_uid

pytestmark = pytest.mark.root

STATIC = "0123456789abcdef0123456789abcdef"


def states(inspection):
    return {pod.uid: pod.state.value for pod in inspection.pods}


def finding(inspection, kind):
    (found,) = [each for each in inspection.findings if each.kind == kind]
    return found


def test_a_directory_of_no_pod_is_orphaned_and_its_content_told(kubelet):
    known, orphan = kubelet.pod(1), kubelet.pod(2)
    kubelet.csi(known)
    target = kubelet.csi(orphan, "vol-2", "pv-2")
    Path(kubelet.empty_dir(orphan), "notes").write_text("mine")
    found = kubelet.inspect(known)
    assert states(found) == {known: "known", orphan: "orphaned"}
    told = finding(found, "orphaned-pod")
    assert told.subject == told.pod_uid == orphan
    assert any(line.startswith(f"mounted: {target}") for line in told.evidence)
    assert any("notes" in line for line in told.evidence)


def test_a_pod_that_is_newer_than_the_list_is_not_judged(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.pods_file(age=60)
    found = kubelet.inspect(pods=path)
    assert states(found) == {uid: "unknown"}
    assert "newer than the list" in finding(found, "unknown-pod").evidence[0]


def test_a_static_pod_is_known_by_its_mirror(kubelet):
    """The API's image of a static pod has another uid; its directory has the digest that an annotation tells."""
    uid = kubelet.pod(STATIC)
    mirror = {"metadata": {"uid": pod_uid(7), "namespace": "kube-system", "name": "etcd-node-1",
                           "annotations": {"kubernetes.io/config.hash": STATIC}}}  # fmt: skip
    found = kubelet.inspect(pods=kubelet.pods_file(more=[mirror]))
    assert states(found) == {uid: "known"}
    assert found.pod(uid).label == "kube-system/etcd-node-1"


def test_a_static_pod_without_a_mirror_is_never_called_orphaned(kubelet):
    uid = kubelet.pod(STATIC)
    found = kubelet.inspect()
    assert states(found) == {uid: "unknown"}
    assert "manifest file" in finding(found, "unknown-pod").evidence[0]


def test_static_manifests_whose_pods_are_all_known_complete_the_sources(kubelet, area):
    manifests = area / "manifests"
    manifests.mkdir()
    (manifests / "etcd.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system}\n"
        "spec: {containers: [{name: c, image: i}]}\n"
    )
    logs = area / "logs"
    (logs / f"kube-system_etcd-node-1_{STATIC}").mkdir(parents=True)
    known, old = kubelet.pod(STATIC), kubelet.pod("fedcba9876543210fedcba9876543210")
    # Without the logs nothing tells which directory is etcd's.
    found = kubelet.inspect(static_pods=str(manifests))
    assert states(found) == {known: "unknown", old: "unknown"}
    assert any("kube-system/etcd" in note for note in found.notes)
    found = kubelet.inspect(static_pods=str(manifests), pod_logs=str(logs))
    assert states(found) == {known: "known", old: "orphaned"}
    assert found.pod(known).label == "kube-system/etcd"


def test_a_list_of_one_namespace_does_not_orphan_the_pods_of_another(kubelet, area):
    """``kubectl get pods`` without ``--all-namespaces``."""
    default, system = kubelet.pod(1), kubelet.pod(2)
    (area / "logs" / f"kube-system_proxy_{system}").mkdir(parents=True)
    found = kubelet.inspect(default, pod_logs=str(area / "logs"))
    assert states(found) == {default: "known", system: "unknown"}
    assert "all namespaces" in finding(found, "unknown-pod").evidence[0]
    assert found.pod(system).label == "kube-system/proxy"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no list of pods"),
        ("{}", "without a kind"),
        ('{"kind": "ServiceList", "items": []}', "ServiceList"),
        ('{"kind": "PodList", "items": [{"metadata": {"name": "x"}}]}', "no uid"),
        ('{"kind": "PodList", "items": [{"kind": "Service", "metadata": {"name": "x", "uid": "u"}}]}', "is no pod"),
        ('{"kind": "PodList", "metadata": {"continue": "abc"}, "items": []}', "part of a list"),
        ("kind: PodList\nitems: [\n", "line"),
    ],
)
def test_what_is_no_whole_list_of_pods_is_refused(kubelet, area, text, reason):
    """A part of a list would make orphans of the pods that it leaves out."""
    path = area / "pods.json"
    path.write_text(text)
    with pytest.raises(ManifestError, match=reason):
        inspect_root(kubelet.root, Sources(pods=str(path)))


def test_a_list_in_yaml_and_a_single_pod_are_read_too(kubelet, area):
    uid = kubelet.pod(1)
    path = area / "pods.yaml"
    path.write_text(f"kind: Pod\nmetadata: {{name: web, namespace: shop, uid: {uid}}}\n")
    found = inspect_root(kubelet.root, Sources(pods=str(path)))
    assert found.pod(uid).label == "shop/web"


def test_a_pod_that_has_ended_is_told_as_ending(kubelet):
    uid = kubelet.pod(1)
    ended = {"metadata": {"uid": uid, "namespace": "a", "name": "job"}, "status": {"phase": "Succeeded"}}
    found = kubelet.inspect(pods=kubelet.pods_file(more=[ended]))
    assert states(found) == {uid: "ending"}
    assert kinds(found) == []


# --- what does not belong there -------------------------------------------------------------------------------------


def test_what_is_no_pods_directory_is_told_and_not_entered(kubelet):
    Path(f"{kubelet.root}/pods/notes").write_text("mine")
    os.symlink("/etc", f"{kubelet.root}/pods/link")
    found = kubelet.inspect()
    assert kinds(found) == [
        ("unexpected-entry", f"{kubelet.root}/pods/link"),
        ("unexpected-entry", f"{kubelet.root}/pods/notes"),
    ]


def test_what_does_not_belong_to_a_known_pod_is_told(kubelet):
    uid = kubelet.pod(1)
    os.makedirs(f"{kubelet.root}/pods/{uid}/backup")
    Path(f"{kubelet.root}/pods/{uid}/backup/db").write_text("data")
    os.makedirs(f"{kubelet.root}/pods/{uid}/volumes/nested/nfs/share")  # a plugin that forgot to escape its name
    found = kubelet.inspect(uid)
    assert kinds(found) == [
        ("unexpected-entry", f"{kubelet.root}/pods/{uid}/backup"),
        ("unexpected-entry", f"{kubelet.root}/pods/{uid}/volumes/nested"),
    ]
    assert "db" in found.findings[0].evidence[0]


def test_a_subpath_of_a_volume_that_is_gone_is_told(kubelet):
    uid = kubelet.pod(1)
    kubelet.nfs(uid)
    kubelet.subpath(uid, "share", kubelet.data("nfs-share"))
    left = kubelet.subpath(uid, "gone", kubelet.data("gone"))
    found = kubelet.inspect(uid)
    assert kinds(found) == [("subpath-leftover", left)]
    assert "something is mounted there" in finding(found, "subpath-leftover").evidence


# --- the rule by itself ---------------------------------------------------------------------------------------------


def test_every_reason_to_conclude_nothing_is_asked_for():
    known = KnownPods(complete=True, told_at=100.0, listed_namespaces={"default"})
    known.add([KnownPod("default", "web", "given", ("u1",))])
    known.names["u3"] = PodName("other", "web", "pod logs")
    assert known.state_of("u1") is PodState.KNOWN
    assert known.state_of("u2", changed_at=99.0) is PodState.ORPHANED
    assert known.state_of("u2", changed_at=99.0, recorded=True) is PodState.GONE
    assert known.state_of("u2", changed_at=101.0) is PodState.UNKNOWN
    assert known.state_of("u3") is PodState.UNKNOWN
    assert known.state_of(STATIC) is PodState.UNKNOWN
    known.static_complete = True
    assert known.state_of(STATIC) is PodState.ORPHANED
    assert KnownPods().state_of("u2") is PodState.UNKNOWN


def test_the_time_of_a_list_on_standard_input_is_now(kubelet, monkeypatch, area):
    import io
    import sys

    uid = kubelet.pod(1)
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps({"kind": "List", "items": []}).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    before = time.time()
    found = inspect_root(kubelet.root, Sources(pods="-"))
    assert time.time() >= before
    assert states(found) == {uid: "orphaned"}
