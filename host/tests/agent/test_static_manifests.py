"""What becomes of the file of a static pod (IDENT-01)."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.agent.static_manifests import LONGEST_FILE, is_manifest_name, read_static_pods
from volumehost.errors import ManifestError, VolumeHostError


@pytest.fixture
def read(tmp_path):
    """Writes a file and reads its pods."""

    def write_and_read(content, name="web.yaml", node="node-1"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(read_static_pods(str(path), node)[0].values())

    return write_and_read


def test_the_pod_is_named_and_numbered_as_the_kubelet_does(read, pod_document, tmp_path):
    (pod,) = read(json.dumps(pod_document()))
    metadata = pod.metadata
    assert (metadata.name, metadata.namespace, pod.spec.node_name) == ("web-node-1", "default", "node-1")
    assert len(metadata.uid) == 32
    assert metadata.annotations == {
        "kubernetes.io/config.hash": metadata.uid,
        "kubernetes.io/config.source": "file",
        "volumehost.io/static-manifest": str(tmp_path / "web.yaml"),
    }


def test_the_uid_is_that_of_the_content(read, pod_document):
    (pod,) = read(json.dumps(pod_document()))
    same = "# with a comment\n" + json.dumps(pod_document(), indent=4)
    assert [each.metadata.uid for each in read(same)] == [pod.metadata.uid]
    others = [
        read(json.dumps(pod_document(labels={"a": "b"}))),
        read(json.dumps(pod_document()), name="other.yaml"),
        read(json.dumps(pod_document()), node="node-2"),
    ]
    assert len({pod.metadata.uid, *(each.metadata.uid for (each,) in others)}) == 4


def test_what_the_api_assigns_is_not_the_manifests_to_say(read, pod_document):
    document = pod_document(
        uid="../../x", resourceVersion="7", finalizers=["a.b/c"], deletionTimestamp="2020-01-01T00:00:00Z"
    )
    (pod,) = read(json.dumps({**document, "status": {"phase": "Succeeded"}}))
    metadata = pod.metadata
    assert (metadata.finalizers, metadata.deletion_timestamp, pod.status.phase) == ([], None, "Pending")
    assert len(metadata.uid) == 32


def test_several_documents_and_lists(read, pod_document):
    documents = "\n---\n".join(json.dumps(pod_document(name)) for name in "ab")
    assert [pod.metadata.name for pod in read(documents)] == ["a-node-1", "b-node-1"]
    items = {"apiVersion": "v1", "kind": "List", "items": [pod_document(name) for name in "ab"]}
    assert len(read(json.dumps(items), name="list.json")) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no objects"),
        ("{", "line 2"),
        (b"\xff\xfe", "line 1: is not UTF-8 text"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", "is a Secret, not a Pod"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {}\n", "containers"),
        ("apiVersion: v1\nkind: Pod\nmetadata: []\nspec: {}\n", "metadata"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}\n", "name"),
        ("x" * (LONGEST_FILE + 1), "is larger than"),
    ],
)
def test_what_is_no_pod_is_refused_with_its_place(read, content, words):
    with pytest.raises(ManifestError) as caught:
        read(content)
    assert words in str(caught.value)
    assert "web.yaml" in str(caught.value)


def test_one_bad_document_is_reason_to_take_none(read, pod_document):
    with pytest.raises(ManifestError):
        read(json.dumps(pod_document()) + "\n---\nkind: Pod\n")


def test_a_pipe_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ManifestError, match="is not a file"):
        read_static_pods(str(tmp_path / "pipe.yaml"), "node")


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_whatever_is_in_the_file_it_is_pods_or_an_error(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        pods, _ = read_static_pods(str(path), "node")
    except VolumeHostError:
        return
    assert pods


@pytest.mark.parametrize(
    ("name", "expected"),
    [("web.yaml", True), ("web.yml", True), ("web.json", True), (".web.yaml", False), ("web.yaml~", False),
     ("web.yaml.swp", False), ("web.yaml.tmp", False), ("web", False), ("..data", False)],
)  # fmt: skip
def test_names(name, expected):
    assert is_manifest_name(name) is expected
