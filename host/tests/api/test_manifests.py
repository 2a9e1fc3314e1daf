"""Manifests: files, directories, standard input; documents, lists, JSON; errors that name file, document and line."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from volumehost.api.manifests import load_manifests, parse_manifests
from volumehost.api.objects import ConfigMap, PersistentVolumeClaim, Pod
from volumehost.api.store import EmbeddedStore
from volumehost.errors import InvalidObjectError, ManifestError, UnknownKindError

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: main
    volumeMounts:
    - {name: data, mountPath: /data}
  volumes:
  - name: data
    hostPath:
      path: /srv/data
      type: Directory
"""


def test_a_pod() -> None:
    (manifest,) = parse_manifests(POD, "pod.yaml")
    assert isinstance(manifest.obj, Pod)
    assert manifest.kind.kind == "Pod"
    assert manifest.obj.spec.volumes[0].host_path is not None
    assert manifest.place == "pod.yaml, document 1"
    assert manifest.line_of("spec.volumes[0].hostPath.path") == 13
    assert manifest.line_of("$.spec.volumes[0].hostPath.absent.deeper") == 13
    assert manifest.line_of("metadata.namespace") == 4
    assert repr(manifest) == "<Manifest pod web from pod.yaml, document 1>"


def test_several_documents_keep_their_numbers() -> None:
    manifests = parse_manifests(f"# nothing here\n---\n{POD}---\n{POD.replace('web', 'db')}", "all.yaml")
    assert [(found.obj.metadata.name, found.document_number) for found in manifests] == [("web", 1), ("db", 2)]


def test_json_alone_and_one_after_the_other() -> None:
    one = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}'
    found = parse_manifests(f"{one}\n\n\t{one.replace('one', 'two')}")
    assert [manifest.obj.metadata.name for manifest in found] == ["one", "two"]
    assert found[1].line_of("metadata.name") == 3


def test_lists_of_any_and_of_one_kind() -> None:
    text = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: b}
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: c}
"""
    found = parse_manifests(text, "list.yaml")
    assert [type(manifest.obj) for manifest in found] == [ConfigMap, PersistentVolumeClaim, ConfigMap]
    assert [manifest.place for manifest in found] == [
        "list.yaml, document 1, item 1",
        "list.yaml, document 1, item 2",
        "list.yaml, document 2, item 1",
    ]
    assert found[1].line_of("metadata.name") == 9


def test_the_document_is_kept_whole() -> None:
    (manifest,) = parse_manifests(POD + "    novel: {x: 1}\n  hostpid: true\n")
    assert manifest.document["spec"]["volumes"][0]["novel"] == {"x": 1}
    assert dict(manifest.unknown_fields) == {
        "$.spec.volumes[0].novel": "",
        "$.spec.hostpid": "did you mean hostPID?",
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["holds no objects"]),
        ("# only a comment\n---\n", ["holds no objects"]),
        ("just text", ["document 1 (line 1)", "an object with apiVersion, kind and metadata is expected"]),
        ("- a\n- b", ["an object with"]),
        ("kind: Pod", ["$.apiVersion: Required value"]),
        ("apiVersion: v1", ["$.kind: Required value"]),
        ("apiVersion: v1\nkind: 5", ["$.kind: Required value"]),
        ("apiVersion: v1\nkind: List", ["$.items: Required value"]),
        ("apiVersion: v1\nkind: List\nitems:\n- just text", ["item 1 (line 4)"]),
        ("apiVersion: v1\nkind: Pod\nkind: Pod", ["line 3", "occurs twice"]),
        ('{"apiVersion": "v1", "apiVersion": "v1"}', ["occurs twice"]),
        ('{"apiVersion": "v1", "kind": "Pod", "x": NaN}', ["NaN"]),
        ("{apiVersion: v1, kind: Pod, spec: [}", ["line 1"]),
        (
            POD.replace("path: /srv/data", "path: 5"),
            ["Pod web in f.yaml, document 1", "$.spec.volumes[0].hostPath.path", "(line 13)"],
        ),
        (POD.replace("type: Directory", "type: yes"), ["expected string, got boolean", "YAML reads yes", "(line 14)"]),
    ],
)
def test_what_is_wrong_names_its_place(text: str, parts: list[str]) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, "f.yaml")
    assert caught.value.source == "f.yaml"
    assert "f.yaml" in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "version"), [("Deployment", "apps/v1"), ("Service", "v1"), ("StorageClas", "storage.k8s.io/v1")]
)
def test_kinds_of_others_are_explained(kind: str, version: str) -> None:
    with pytest.raises(UnknownKindError) as caught:
        parse_manifests(f"{POD}---\napiVersion: {version}\nkind: {kind}\n", "app.yaml")
    message = str(caught.value)
    assert "app.yaml, document 2 (line 16)" in message
    assert f"unknown kind {kind} ({version})" in message
    assert "PersistentVolumeClaim" in message


def test_octal_modes_and_quantities_as_numbers() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  volumes:
  - {name: a, secret: {secretName: s, defaultMode: 0400}}
  - {name: b, emptyDir: {sizeLimit: 1000}}
  - {name: c, emptyDir: {sizeLimit: 1e3}}
"""
    (manifest,) = parse_manifests(text)
    assert isinstance(manifest.obj, Pod)
    volumes = manifest.obj.spec.volumes
    assert volumes[0].secret is not None
    assert volumes[0].secret.default_mode == 0o400
    assert [volume.empty_dir.size_limit for volume in volumes[1:] if volume.empty_dir] == ["1k", "1k"]


def test_problems_found_later_get_their_lines_too(tmp_path: Path) -> None:
    (manifest,) = parse_manifests(POD.replace("/srv/data", "../etc"), "pod.yaml")
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as store, pytest.raises(InvalidObjectError) as caught:
        store.create(manifest.document)
    explained = manifest.explain(caught.value)
    assert isinstance(explained, ManifestError)
    assert "pod.yaml, document 1" in str(explained)
    assert "spec.volumes[0].hostPath.path" in str(explained)
    assert "(line 13)" in str(explained)


# --- where manifests come from -----------------------------------------------------------------------------


def test_files_in_the_order_given(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text(POD.replace("web", name))
    found = load_manifests([str(tmp_path / "b.yaml"), str(tmp_path / "a.yaml")])
    assert [manifest.obj.metadata.name for manifest in found] == ["b", "a"]
    assert found[0].source == str(tmp_path / "b.yaml")


def test_a_directory_by_name_and_not_deeper(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    for name in ("2.yml", "1.yaml", "3.json", "deeper/4.yaml", "README.md"):
        stem = name.replace("/", "-").split(".")[0].lower()
        (tmp_path / name).write_text(
            POD.replace("web", f"pod-{stem}")
            if name != "3.json"
            else ('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pod-3"}}')
        )
    names = [manifest.obj.metadata.name for manifest in load_manifests([str(tmp_path)])]
    assert names == ["pod-1", "pod-2", "pod-3"]
    names = [manifest.obj.metadata.name for manifest in load_manifests([str(tmp_path)], recursive=True)]
    assert names == ["pod-1", "pod-2", "pod-3", "pod-deeper-4"]


def test_a_directory_without_manifests(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="directories in it are not searched"):
        load_manifests([str(tmp_path)])


def test_standard_input() -> None:
    (manifest,) = load_manifests(["-"], stdin=io.BytesIO(POD.encode()))
    assert manifest.place == "standard input, document 1"
    with pytest.raises(ManifestError, match="standard input"):
        load_manifests(["-"], stdin=io.BytesIO(b"\xff\xfe"))


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, POD.encode())
    os.close(write_end)
    try:
        (manifest,) = load_manifests([f"/dev/fd/{read_end}"])
    finally:
        os.close(read_end)
    assert manifest.obj.metadata.name == "web"


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbf" + POD.encode())
    assert load_manifests([str(tmp_path / "bom.yaml")])[0].obj.metadata.name == "web"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a: \xff", "line 1: is not UTF-8"),
        (b"ok: 1\nb: \xe4", "line 2: is not UTF-8"),
        (POD.encode("utf-16"), "is not UTF-8"),
        (b"x" * (16 * 1024 * 1024 + 1), "is larger than"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file with spaces.yaml"
    path.write_bytes(content)
    with pytest.raises(ManifestError, match=reason) as caught:
        load_manifests([str(path)])
    assert caught.value.source == str(path)


@pytest.mark.parametrize("path", ["/dev/zero", "/proc/self/mem", "absent.yaml", "nul\0byte"])
def test_what_is_no_file(path: str) -> None:
    with pytest.raises(ManifestError):
        load_manifests([path])


def test_one_bad_file_returns_nothing(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(POD)
    (tmp_path / "2.yaml").write_text("broken: [")
    with pytest.raises(ManifestError, match=r"2\.yaml"):
        load_manifests([str(tmp_path)])
