"""``apply``, ``get``, ``describe`` and ``delete`` on the embedded store."""

from __future__ import annotations

import json
import sqlite3

import pytest

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{more}}}\ndata: {{a: {value}}}\n"


def config(name: str = "c", value: str = '"1"', more: str = "") -> str:
    return CONFIG.format(name=name, value=value, more=more)


def test_apply_says_created_unchanged_configured(volumehost, manifest) -> None:
    path = manifest(config())
    assert volumehost("apply", "-f", path).out == "configmap/c created\n"
    assert volumehost("apply", "-f", path).out == "configmap/c unchanged\n"
    manifest(config(value='"2"'))
    done = volumehost("apply", "-f", path)
    assert (done.code, done.out, done.err) == (0, "configmap/c configured\n", "")


def test_apply_takes_files_directories_json_lists_and_standard_input(volumehost, manifest) -> None:
    one = manifest(config("one") + "---\n" + config("two"), "one.yaml")
    directory = volumehost.cwd / "many"
    (directory / "deeper").mkdir(parents=True)
    (directory / "three.yml").write_text(config("three"))
    (directory / "four.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "four"}}]}))  # fmt: skip
    (directory / "notes.txt").write_text("not a manifest")
    (directory / "deeper" / "five.yaml").write_text(config("five"))
    done = volumehost("apply", "-f", one, "-f", directory, "-f", "-", stdin=config("six"))
    assert done.code == 0
    names = ["one", "two", "four", "three", "six"]
    assert done.lines() == [f"configmap/{name} created" for name in names]
    assert volumehost("apply", "-R", "-f", directory).lines()[-1] != ""
    assert "configmap/five" in volumehost("get", "cm", "-o", "name").lines()


def test_apply_in_each_output(volumehost, manifest) -> None:
    path = manifest(config())
    (shape,) = volumehost("apply", "-f", path, "-o", "json").json()["objects"]
    assert (shape["kind"], shape["namespace"], shape["name"], shape["outcome"]) == (
        "ConfigMap",
        "default",
        "c",
        "created",
    )
    assert list(shape) == ["kind", "namespace", "name", "uid", "outcome"]
    assert volumehost("apply", "-f", path, "-o", "name").out == "configmap/c\n"


def test_the_namespace_of_the_command_is_for_objects_that_name_none(volumehost, manifest) -> None:
    path = manifest(config("a") + "---\n" + config("b", more=", namespace: mine"))
    assert volumehost("apply", "-f", path).code == 0
    assert volumehost("get", "cm", "-A", "-o", "name").lines() == ["configmap/a", "configmap/b"]
    assert volumehost("get", "cm", "-n", "mine", "-o", "name").lines() == ["configmap/b"]
    refused = volumehost("apply", "-f", path, "-n", "other")
    assert refused.code == 1
    assert "the object is in mine, the command in other" in refused.err
    assert "pod.yaml, document 2" in refused.err
    assert "nothing was applied" in refused.err


def test_when_one_document_is_invalid_nothing_is_applied_and_all_that_is_wrong_is_told(volumehost, manifest) -> None:
    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NOT_A_NAME}\n---\n"
    path = manifest(config("good") + "---\n" + bad + config("worse", more=', labels: {"no label!": x}'))
    done = volumehost("apply", "-f", path)
    assert (done.code, done.out) == (1, "")
    assert "NOT_A_NAME" in done.err
    assert "document 2" in done.err
    assert "document 3" in done.err
    assert "nothing was applied" in done.err
    assert not volumehost.root_dir.exists()


def test_a_change_that_is_not_allowed_stops_only_its_own_object(volumehost, manifest, pod_manifest) -> None:
    path = manifest(pod_manifest("web", data="emptyDir: {}"))
    assert volumehost("apply", "-f", path).code == 0
    manifest(pod_manifest("web", data="hostPath: {path: /srv}") + "---\n" + config("after"))
    done = volumehost("apply", "-f", path)
    assert done.code == 1
    assert done.out == "configmap/after created\n"
    assert "web" in done.err
    assert "spec" in done.err


def test_an_unknown_field_is_warned_of_and_kept(volumehost, manifest) -> None:
    path = manifest(config() + "dtaa: {}\n")
    done = volumehost("apply", "-f", path)
    assert done.code == 0
    assert "warning: " in done.err
    assert "unknown field" in done.err
    assert "dtaa" in done.err


def test_get_in_each_output(volumehost, manifest) -> None:
    volumehost("apply", "-f", manifest(config("a") + "---\n" + config("b")))
    table = volumehost("get", "configmaps").lines()
    assert [line.split()[:2] for line in table] == [["NAME", "DATA"], ["a", "1"], ["b", "1"]]
    listed = volumehost("get", "cm", "-o", "json").json()
    assert (listed["apiVersion"], listed["kind"], len(listed["items"])) == ("v1", "List", 2)
    single = volumehost("get", "cm", "a", "-o", "json").json()
    assert (single["kind"], single["metadata"]["name"], single["data"]) == ("ConfigMap", "a", {"a": "1"})
    assert "managedFields" not in single["metadata"]
    full = volumehost("get", "cm/a", "-o", "json", "--show-managed-fields").json()
    assert full["metadata"]["managedFields"]
    assert volumehost("get", "cm", "b", "a", "-o", "name").lines() == ["configmap/b", "configmap/a"]
    applied = volumehost("get", "cm", "a", "-o", "yaml").out
    assert volumehost("apply", "-f", "-", stdin=applied).code == 0


def test_get_by_label_by_kinds_and_everywhere(volumehost, manifest, pod_manifest) -> None:
    volumehost("apply", "-f", manifest(config("a", more=", labels: {app: web}") + "---\n" + config("b")))
    volumehost("apply", "-f", manifest(pod_manifest("p", data="emptyDir: {}")), "-n", "mine")
    assert volumehost("get", "cm", "-l", "app=web", "-o", "name").lines() == ["configmap/a"]
    assert volumehost("get", "cm", "-l", "app!=web", "-o", "name").lines() == ["configmap/b"]
    assert volumehost("get", "po,cm", "-A", "-o", "name").lines() == ["pod/p", "configmap/a", "configmap/b"]
    everywhere = volumehost("get", "po,cm", "-A").out
    assert everywhere.count("NAMESPACE") == 2
    assert "mine" in everywhere
    bad = volumehost("get", "cm", "-l", "a b c")
    assert bad.code == 1
    assert "a b c" in bad.err


def test_get_of_nothing_is_told_on_stderr_and_is_no_failure(volumehost) -> None:
    done = volumehost("get", "pods")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No pods found in the namespace default.\n"
    assert volumehost("get", "nodes").err == "No nodes found.\n"
    assert volumehost("get", "pods", "-o", "json").json()["items"] == []
    assert not volumehost.root_dir.exists()


@pytest.mark.parametrize("arguments", [["get", "pod", "nope"], ["describe", "pod/nope"], ["delete", "pod", "nope"]])
@pytest.mark.parametrize("with_store", [False, True])
def test_an_object_that_is_not_there_is_not_found(volumehost, manifest, arguments: list[str], with_store: bool) -> None:
    if with_store:
        volumehost("apply", "-f", manifest(config()))
    done = volumehost(*arguments)
    assert (done.code, done.out) == (3, "")
    assert "pod default/nope" in done.err


@pytest.mark.parametrize("command", ["get", "describe", "delete"])
def test_an_unknown_kind_is_a_usage_error_with_the_nearest(volumehost, command: str) -> None:
    done = volumehost(command, "podz", "x")
    assert done.code == 2
    assert "unknown kind 'podz'" in done.err
    assert "did you mean Pod?" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["get"],
        ["get", "pods,cm", "x"],
        ["get", "pod/x", "y"],
        ["get", "pod", "x/y"],
        ["get", "pod", "x", "-A"],
        ["get", "pod", "x", "-l", "a=b"],
        ["apply"],
        ["delete"],
        ["delete", "pod"],
        ["delete", "pod", "x", "-f", "y.yaml"],
        ["describe"],
    ],
    ids=" ".join,
)
def test_usage_errors(volumehost, arguments: list[str]) -> None:
    done = volumehost(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert f"'volumehost {arguments[0]} --help' tells more" in done.err


def test_describe_masks_private_content_and_shows_events(volumehost, manifest) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n---\n"
    event = (
        "apiVersion: v1\nkind: Event\nmetadata: {name: s.1}\ntype: Warning\nreason: Odd\nmessage: it is odd\n"
        "involvedObject: {kind: Secret, name: s, namespace: default}\n"
    )
    applied = volumehost("apply", "-f", manifest(secret + event))
    assert applied.code == 0, applied.err
    done = volumehost("describe", "secret", "s")
    assert done.code == 0
    assert "password: 7 bytes" in done.out
    assert "hunter2" not in done.out
    assert "Warning" in done.out
    assert "it is odd" in done.out
    assert "aHVudGVyMg==" in volumehost("get", "secret", "s", "-o", "yaml").out


def test_describe_of_a_kind_describes_all_of_it(volumehost, manifest) -> None:
    volumehost("apply", "-f", manifest(config("a") + "---\n" + config("b")))
    assert volumehost("describe", "cm").out.count("Kind:       ConfigMap (v1)") == 2
    assert volumehost("describe", "pods").err == "No pods found.\n"


def test_delete_by_name_and_by_manifest(volumehost, manifest) -> None:
    path = manifest(config("a") + "---\n" + config("b") + "---\n" + config("c"))
    volumehost("apply", "-f", path)
    assert volumehost("delete", "cm", "a").out == "configmap/a deleted\n"
    done = volumehost("delete", "-f", path)
    assert done.code == 3
    assert done.lines() == ["configmap/b deleted", "configmap/c deleted"]
    assert "configmap default/a" in done.err
    assert volumehost("get", "cm", "-o", "name").out == ""


def test_an_object_that_others_still_need_is_marked(volumehost, manifest) -> None:
    volumehost("apply", "-f", manifest(config("kept", more=", finalizers: [example.com/keep]")))
    done = volumehost("delete", "cm", "kept", "-o", "json")
    assert done.code == 0
    assert done.json()["objects"][0]["outcome"] == "marked, kept by example.com/keep"
    assert volumehost("get", "cm", "kept").code == 0


def test_reading_changes_nothing(volumehost, manifest) -> None:
    volumehost("apply", "-f", manifest(config()))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in volumehost.root_dir.iterdir())
    for arguments in (["get", "cm"], ["describe", "cm", "c"], ["status"]):
        assert volumehost(*arguments).code == 0
    assert sorted((path.name, path.stat().st_mtime_ns) for path in volumehost.root_dir.iterdir()) == before


@pytest.mark.slow
def test_while_the_store_is_locked_reading_works_and_writing_says_who_to_look_for(volumehost, manifest) -> None:
    path = manifest(config())
    assert volumehost("apply", "-f", path).code == 0
    other = sqlite3.connect(volumehost.root_dir / "store.sqlite3", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert volumehost("get", "cm", "-o", "name").out == "configmap/c\n"
        done = volumehost("apply", "-f", manifest(config(value='"2"')))
    finally:
        other.close()
    assert done.code == 1
    assert "locked" in done.err
    assert "hint: another process keeps it locked" in done.err
    assert volumehost("apply", "-f", path).code == 0
