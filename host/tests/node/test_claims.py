"""Claims are followed to their volume (POP-20 to -27), and pods' manifests read (UTIL-15 to -18)."""

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import Node, ObjectMeta, Pod
from volumehost.api.store import EmbeddedStore
from volumehost.errors import FailedPreconditionError, SpecError
from volumehost.hosts.node_host import NodeHost
from volumehost.node.populating import pods
from volumehost.node.populating.affinity import check_node_affinity
from volumehost.node.populating.claims import group_of, source_of
from volumehost.node.state.identity import split_unique_volume_name, unique_volume_name, unique_volume_name_of_pod

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "claim", "readOnly": True}}
GIB = 1 << 30


@pytest.fixture
def api(tmp_path):
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as store:
        yield store


@pytest.fixture
def resolve(api, make_pod):
    def run(volume=CLAIM, client=api, **options):
        pod = make_pod(volume, **options)
        return source_of(pod.spec.volumes[0], pod, pods.used_volumes(pod), client).spec

    return run


def test_pop25_a_bound_claim_leads_to_its_volume(api, claimed, resolve, data):
    claimed(api, volume={"metadata": {"annotations": {"pv.beta.kubernetes.io/gid": "1234"}}})
    spec = resolve()
    assert spec.persistent_volume.spec.nfs.path == data
    assert spec.read_only
    assert spec.name() == "pv-claim"
    assert group_of(spec) == 1234


def test_pop25_an_annotation_that_is_no_number_is_no_group(api, claimed, resolve):
    claimed(api, volume={"metadata": {"annotations": {"pv.beta.kubernetes.io/gid": "wheel"}}})
    assert group_of(resolve()) is None


def test_pop21_no_such_claim(resolve):
    with pytest.raises(FailedPreconditionError, match="error processing PVC default/claim") as caught:
        resolve()
    assert "failed to fetch PVC from API server" in str(caught.value)


def test_pop22_a_claim_that_is_being_deleted_may_be_used_while_it_is_protected(api, claimed, resolve, make_pod):
    from volumehost.api.objects import PersistentVolumeClaim

    api.create(make_pod(CLAIM, name="user", uid=""))
    claimed(api, claim={"metadata": {"finalizers": ["kubernetes.io/pvc-protection", "example.com/mine"]}})
    api.delete(PersistentVolumeClaim, "claim", "default")
    assert resolve().persistent_volume is not None
    api.patch(PersistentVolumeClaim, "claim", {"metadata": {"finalizers": ["example.com/mine"]}}, "default")
    with pytest.raises(FailedPreconditionError, match="PVC is being deleted"):
        resolve()


def test_pop23_a_claim_that_is_not_bound(api, claimed, resolve):
    claimed(api, phase="Pending")
    with pytest.raises(FailedPreconditionError, match="PVC is not bound"):
        resolve()


def test_pop23_a_claim_without_a_volume_name(api, claimed, resolve):
    claimed(api, claim={"volumeName": ""})
    with pytest.raises(FailedPreconditionError, match=r"PVC has empty pvc\.Spec\.VolumeName"):
        resolve()


def test_pop24_the_volume_must_be_there_and_refer_back(api, claimed, resolve):
    from volumehost.api.objects import PersistentVolume

    claimed(api, reference=False)
    with pytest.raises(FailedPreconditionError, match="claimRef is empty"):
        resolve()
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "claim", "uid": "another"}
    api.patch(PersistentVolume, "pv-claim", {"spec": {"claimRef": reference}})
    with pytest.raises(FailedPreconditionError, match="bound to another claim"):
        resolve()


def test_pop20_the_claim_of_an_ephemeral_volume_must_be_the_pods_own(api, claimed, resolve):
    volume = {
        "name": "v",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        },
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-1", "controller": True}
    claimed(api, "web-v", claim={"metadata": {"ownerReferences": [owner]}})
    assert resolve(volume).name() == "pv-web-v"
    with pytest.raises(FailedPreconditionError, match=r"was not created for pod default/web \(pod is not owner\)"):
        resolve(volume, uid="uid-2")


def test_pop27_a_block_volume_cannot_be_mounted(api, claimed, resolve):
    claimed(api, claim={"volumeMode": "Block"}, volume={"volumeMode": "Block"})
    with pytest.raises(SpecError, match="volume v has volumeMode Block, but is specified in volumeMounts"):
        resolve()


def test_pop27_and_a_filesystem_cannot_be_mapped(api, claimed, make_pod):
    claimed(api)
    pod = make_pod(CLAIM, mounts=[])
    pod.spec.containers[0] = to_object(
        type(pod.spec.containers[0]),
        {"name": "c", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]},
    )
    with pytest.raises(SpecError, match="volume v has volumeMode Filesystem, but is specified in volumeDevices"):
        source_of(pod.spec.volumes[0], pod, pods.used_volumes(pod), api)


def test_without_an_api_there_are_no_claims(resolve):
    with pytest.raises(FailedPreconditionError, match="no API"):
        resolve(client=None)
    assert resolve({"name": "v", "emptyDir": {}}, client=None).source() == "empty_dir"


# --- node affinity ----------------------------------------------------------------------------------------------


def _volume(*terms):
    from volumehost.api.objects import PersistentVolume

    affinity = {"required": {"nodeSelectorTerms": list(terms)}}
    return to_object(PersistentVolume, {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": affinity}})


def _term(operator, *values, key="zone"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([_term("In", "a", "b")], True),
        ([_term("In", "b")], False),
        ([_term("In", "b"), _term("Exists")], True),
        ([_term("NotIn", "a")], False),
        ([_term("NotIn", "a", key="other")], True),
        ([_term("DoesNotExist", key="other")], True),
        ([_term("Gt", "4", key="number")], True),
        ([_term("Lt", "5", key="number")], False),
        ([_term("Gt", "x", key="number")], False),
        ([_term("Gt", key="number")], False),
        ([{}], False),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}], True),
        ([{"matchFields": [{"key": "metadata.uid", "operator": "Exists"}]}], False),
        ([_term("Near", "a")], False),
    ],
)
def test_mountop02_node_affinity(terms, fits):
    node = _LabelledNode({"zone": "a", "number": "5"})
    if fits:
        check_node_affinity(_volume(*terms), node)
    else:
        with pytest.raises(FailedPreconditionError, match="no matching NodeSelectorTerms"):
            check_node_affinity(_volume(*terms), node)


def test_a_volume_is_refused_only_by_the_labels_that_the_node_has_now(tmp_path):
    """Its driver may have registered, and labelled the node, after the labels were read last."""
    store = EmbeddedStore(f"{tmp_path}/store.sqlite3")
    try:
        store.create(Node(metadata=ObjectMeta(name="n1")))
        host = NodeHost(str(tmp_path), api=store, node_name="n1", clock=lambda: 0)
        assert "zone" not in host.get_node_labels()
        store.patch(Node, "n1", {"metadata": {"labels": {"zone": "a"}}})
        check_node_affinity(_volume(_term("In", "a")), host)
    finally:
        store.close()


class _LabelledNode(NodeHost):
    def __init__(self, labels):
        super().__init__("/r", node_name="n1")
        self.labels = labels

    def get_node_labels(self):
        return self.labels


# --- names and pods ---------------------------------------------------------------------------------------------


def test_util10_to_12_unique_names():
    assert unique_volume_name("a.b/p", "x/y") == "a.b/p/x/y"
    assert unique_volume_name_of_pod("a.b/p", "uid", "v") == "a.b/p/uid-v"
    assert split_unique_volume_name("a.b/p/x/y") == ("a.b/p", "x/y")
    with pytest.raises(SpecError):
        unique_volume_name("a.b/p", "")
    with pytest.raises(SpecError, match="cannot split volume unique name a/b to plugin/volume components"):
        split_unique_volume_name("a/b")


def _containers(*users, pod_user=None):
    context = {"securityContext": {"runAsUser": pod_user}} if pod_user is not None else {}
    containers = [
        {"name": f"c{n}", "image": "i", **({"securityContext": {"runAsUser": user}} if user is not None else {})}
        for n, user in enumerate(users)
    ]
    return to_object(Pod, {"metadata": {"name": "p"}, "spec": {"containers": containers, **context}})


@pytest.mark.parametrize(
    ("users", "pod_user", "expected"),
    [((1, 1), None, 1), ((1, 2), None, None), ((1, None), None, None), ((None, None), 5, 5), ((1, None), 1, 1),
     ((0, 0), None, 0), ((7, None), 5, None)],
)  # fmt: skip
def test_util18_the_user_that_all_containers_share(users, pod_user, expected):
    assert pods.fs_user_of(_containers(*users, pod_user=pod_user)) == expected


def test_util17_init_and_ephemeral_containers_count():
    pod = to_object(
        Pod,
        {
            "metadata": {"name": "p"},
            "spec": {
                "initContainers": [{"name": "i", "image": "i", "volumeMounts": [{"name": "a", "mountPath": "/a"}]}],
                "containers": [{"name": "c", "image": "i", "volumeDevices": [{"name": "b", "devicePath": "/b"}]}],
                "ephemeralContainers": [{"name": "e", "volumeMounts": [{"name": "c", "mountPath": "/c"}]}],
                "volumes": [{"name": name, "emptyDir": {}} for name in "abcd"],
            },
        },
    )
    used = pods.used_volumes(pod)
    assert (used.mounts, used.devices) == ({"a", "c"}, {"b"})
    assert [name for name in "abcd" if name not in used] == ["d"]


@pytest.mark.parametrize(
    ("phase", "ended"), [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), ("", False)]
)
def test_br51_only_a_positive_word_ends_a_workload(make_pod, phase, ended):
    pod = make_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    pod.status.phase = phase
    assert pods.workload_has_ended(pod) is ended


def _limited(volume, containers=(), init=()):
    def container(index, limit, extra=None):
        resources = {"limits": {"ephemeral-storage": limit}} if limit else {}
        return {"name": f"c{index}", "image": "i", "resources": resources, **(extra or {})}

    spec = {
        "containers": [container(index, limit) for index, limit in enumerate(containers or [""])],
        "initContainers": [container(f"i{index}", limit, extra) for index, (limit, extra) in enumerate(init)],
        "volumes": [volume],
    }
    pod = to_object(Pod, {"metadata": {"name": "p"}, "spec": spec})
    return pods.local_ephemeral_size_limit(pod.spec.volumes[0], pod)


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("volume", "containers", "init", "expected"),
    [
        ({"emptyDir": {}}, [], [], None),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, [], [], GIB),
        ({"emptyDir": {"sizeLimit": "0"}}, [], [], None),
        ({"emptyDir": {}}, ["1Gi", "2Gi"], [], 3 * GIB),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, ["1Gi", "2Gi"], [], GIB),
        ({"emptyDir": {"sizeLimit": "9Gi"}}, ["1Gi", "2Gi"], [], 3 * GIB),
        ({"emptyDir": {}}, ["1Gi"], [("4Gi", None)], 4 * GIB),
        ({"emptyDir": {}}, ["1Gi"], [("2Gi", SIDECAR)], 3 * GIB),
        ({"emptyDir": {}}, ["1Gi"], [("2Gi", SIDECAR), ("4Gi", None)], 6 * GIB),
        ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, ["1Gi"], [], None),
        ({"configMap": {"name": "c"}}, ["1Gi"], [], GIB),
        ({"secret": {"secretName": "s"}}, ["1Gi"], [], None),
        ({"hostPath": {"path": "/x"}}, ["1Gi"], [], None),
    ],
)
def test_dsw03_util16_the_limit_of_local_ephemeral_volumes(volume, containers, init, expected):
    assert _limited({"name": "v", **volume}, containers, init) == expected
