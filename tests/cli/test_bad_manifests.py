"""Wrong input: each gets an error with object, cause and next step, the exit code as designed, and nothing is done."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

LONG = "n" * 300
HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
CONTAINER = "  containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]\n"


def pod(volume: str, containers: str = CONTAINER, head: str = HEAD) -> str:
    return f"{head}spec:\n{containers}  volumes: [{volume}]\n"


#: What is wrong: the manifest, and words that the error must have.
BAD: dict[str, tuple[str, list[str]]] = {
    "two sources": (
        pod("{name: v, emptyDir: {}, hostPath: {path: /srv}}"),
        ["pod default/web", "spec.volumes[0]", "more than 1 volume type"],
    ),
    "no source, unknown source": (pod("{name: v, emptyDri: {}}"), ["pod default/web", "spec.volumes[0]"]),
    "backsteps in a path": (pod("{name: v, hostPath: {path: /srv/../etc}}"), ["spec.volumes[0].hostPath.path", "'..'"]),
    "relative path": (pod("{name: v, hostPath: {path: srv}}"), ["spec.volumes[0].hostPath.path", "absolute path"]),
    "backsteps in a volume's name": (pod("{name: .., emptyDir: {}}"), ["spec.volumes[0].name", "'..'"]),
    "slash in a volume's name": (pod("{name: a/b, emptyDir: {}}"), ["spec.volumes[0].name", "'a/b'"]),
    "volume's name of 300 characters": (pod(f"{{name: {LONG}, emptyDir: {{}}}}"), ["spec.volumes[0].name", "63"]),
    "pod's name of 300 characters": (
        pod("{name: v, emptyDir: {}}", head=HEAD.replace("web", LONG)),
        ["metadata.name", "253"],
    ),
    "backsteps in the pod's name": (
        pod("{name: v, emptyDir: {}}", head=HEAD.replace("web", '"../../etc"')),
        ["metadata.name", "../../etc"],
    ),
    "backsteps in the namespace": (
        pod("{name: v, emptyDir: {}}", head=HEAD.replace("web}", "web, namespace: ..}")),
        ["metadata.namespace"],
    ),
    "two volumes with one name": (pod("{name: v, emptyDir: {}}, {name: v, emptyDir: {}}"), ["spec.volumes[1].name"]),
    "a mount of no volume": (pod("{name: other, emptyDir: {}}"), ["volumeMounts[0].name", "v"]),
    "bad quantity": (pod("{name: v, emptyDir: {sizeLimit: lots}}"), ["spec.volumes[0].emptyDir.sizeLimit", "lots"]),
    "negative size": (pod("{name: v, emptyDir: {sizeLimit: -1Mi}}"), ["spec.volumes[0].emptyDir.sizeLimit"]),
    "unknown hostPath type": (
        pod("{name: v, hostPath: {path: /srv, type: Folder}}"),
        ["spec.volumes[0].hostPath.type", "Folder"],
    ),
    "wrong type": (pod("{name: v, hostPath: /srv}"), ["spec.volumes[0].hostPath", "expected"]),
    "no containers": (pod("{name: v, emptyDir: {}}", containers=""), ["spec.containers"]),
    "no name": (pod("{name: v, emptyDir: {}}", head=HEAD.replace("{name: web}", "{}")), ["metadata.name"]),
    "unknown kind": ("apiVersion: v1\nkind: Podd\nmetadata: {name: web}\n", ["unknown kind Podd", "Pod"]),
    "wrong version": ("apiVersion: v2\nkind: Pod\nmetadata: {name: web}\n", ["apiVersion: v1"]),
    "no kind": ("apiVersion: v1\nmetadata: {name: web}\n", ["$.kind", "Required"]),
    "a list, not an object": ("- a\n- b\n", ["an object with apiVersion, kind and metadata is expected"]),
    "a word": ("hello\n", ["an object"]),
    "broken YAML": ("a: [\n", ["line 2"]),
    "broken JSON": ('{"apiVersion": "v1",', ["line"]),
    "a tag that would run code": ("!!python/object/apply:os.system ['touch pwned']\n", ["line 1"]),
    "an alias bomb": ("a: &a [x,x]\nb: &b [*a,*a]\n" + "c: [*b,*b]\n" * 3, []),
    "empty": ("", ["holds no objects"]),
    "nothing but comments": ("# nothing\n---\n---\n", ["holds no objects"]),
    "a key twice": (HEAD + "kind: Secret\n", ["kind"]),
}


@pytest.mark.parametrize(
    ("command", "name"), [*(("apply", name) for name in BAD), ("mount", "two sources"), ("mount", "unknown kind")]
)
def test_a_wrong_manifest_is_refused_whole(volumehost, manifest: Callable[..., Path], command: str, name: str) -> None:
    text, words = BAD[name]
    done = volumehost(command, "-f", manifest(text, "bad pod.yaml"))
    assert (done.code, done.out) == (1, ""), done.err
    assert any(line.startswith("error: ") for line in done.err.splitlines())
    assert "bad pod.yaml" in done.err
    assert "nothing was applied" in done.err
    for word in words:
        assert word in done.err, done.err
    assert all(len(line) < 1000 for line in done.err.splitlines())
    assert not volumehost.root_dir.exists()
    assert not (volumehost.cwd / "pwned").exists()


@pytest.mark.parametrize(
    "junk",
    [
        b"\0\1\2\3" * 100,
        b"\xff\xfe" + "kind: Pod".encode("utf-16-le"),
        b"\x80" * 10,
        b"\x1b[2J: \x07",
        os.urandom(4096),
    ],
    ids=["nulls", "utf-16", "not-utf-8", "escapes", "random"],
)
def test_binary_junk_is_refused_and_does_not_reach_the_terminal(volumehost, junk: bytes) -> None:
    done = volumehost("apply", "-f", "-", stdin=junk)
    assert (done.code, done.out) == (1, "")
    assert "standard input" in done.err
    assert all(char.isprintable() or char == "\n" for char in done.err)
    assert not volumehost.root_dir.exists()


def test_empty_standard_input(volumehost) -> None:
    for command in ("apply", "mount", "delete"):
        done = volumehost(command, "-f", "-", stdin="")
        assert done.code == 1
        assert "standard input: holds no objects" in done.err


@pytest.mark.parametrize("command", ["apply", "mount", "delete"])
def test_a_file_that_is_not_there_is_not_found(volumehost, command: str) -> None:
    done = volumehost(command, "-f", "absent/pod.yaml")
    assert (done.code, done.out) == (3, "")
    assert "absent/pod.yaml" in done.err
    assert not volumehost.root_dir.exists()


def test_what_is_no_manifest_file(volumehost, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    no_files = volumehost("apply", "-f", empty)
    assert no_files.code == 1
    assert ".yaml" in no_files.err
    device = volumehost("apply", "-f", "/dev/zero")
    assert device.code == 1
    assert "/dev/zero" in device.err


def test_one_bad_file_among_good_ones_stops_them_all(volumehost, manifest) -> None:
    good = manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "good.yaml")
    done = volumehost("apply", "-f", good, "-f", manifest("a: [", "bad.yaml"))
    assert done.code == 1
    assert "bad.yaml" in done.err
    assert not volumehost.root_dir.exists()


def test_a_manifest_from_a_pipe(volumehost) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    program = volumehost.start("apply", "-f", f"/dev/fd/{read}", pass_fds=[read])
    os.close(read)
    out, err = program.communicate(timeout=60)
    assert (program.returncode, out, err) == (0, "configmap/c created\n", "")


def test_names_on_the_command_line_are_only_names(volumehost, manifest) -> None:
    volumehost("apply", "-f", manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"))
    commands = (["get", "cm"], ["describe", "cm"], ["delete", "cm"], ["status"], ["mount"], ["unmount"])
    names = ("..", LONG, "a b", "\x1b[2J", "'; DROP TABLE objects", "-x")
    for name, command in zip(names, commands, strict=True):
        for each in (name, names[0]):
            done = volumehost(*command, "--", each)
            assert done.code == 3, (command, done)
            assert "\x1b" not in done.err
    assert volumehost("get", "cm", "c").code == 0


def test_an_argument_that_is_no_utf_8(volumehost) -> None:
    program = [volumehost.start.__globals__["PROGRAM"], "get", "cm", b"\xff\xfe"]
    done = subprocess.run(program, capture_output=True, env=volumehost.variables(), timeout=60, check=False)
    assert done.returncode == 2
    assert b"is not UTF-8 text" in done.stderr
    assert b"Traceback" not in done.stderr
