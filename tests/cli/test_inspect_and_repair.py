"""``volumehost inspect`` and ``volumehost repair``: what they print, and with which exit codes they end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from volumehost.hosts.lock import RootDirLock
from volumehost.mount import syscalls

pytestmark = pytest.mark.root

UID = "00000001-aaaa-4bbb-8ccc-dddddddddddd"
ORPHAN = "00000002-aaaa-4bbb-8ccc-dddddddddddd"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli-output.md"


@pytest.fixture
def kubelet(tmp_path: Path, mounts_below: Callable[[Path], list[str]]) -> Iterator[Path]:
    """A kubelet's directory: a pod with a bound volume, an orphan with another and an empty directory."""
    root = tmp_path / "kubelet"
    for uid, name in ((UID, "a"), (ORPHAN, "b")):
        target = root / "pods" / uid / "volumes" / "kubernetes.io~nfs" / name
        target.mkdir(parents=True)
        data = tmp_path / "data" / name
        data.mkdir(parents=True)
        (data / "file").write_text(name)
        syscalls.mount(str(data), str(target), "", syscalls.MS_BIND, "")
    (root / "pods" / ORPHAN / "volumes" / "kubernetes.io~empty-dir" / "scratch").mkdir(parents=True)
    yield root
    mounts_below(root)


def pods(*uids: str) -> str:
    """What kubectl prints."""
    items = [{"kind": "Pod", "metadata": {"uid": uid, "namespace": "shop", "name": "web"}, "spec": {}} for uid in uids]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


# --- inspect --------------------------------------------------------------------------------------------------------


def test_inspect_shows_what_is_mounted_for_whom(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(pod_manifest(scratch="emptyDir: {medium: Memory, sizeLimit: 1Mi}"))
    volumehost("mount", "-f", path)
    done = volumehost("inspect")
    assert done.code == 0
    assert "the root directory of volumehost; pods are known from: store (1 pod), journal (1 pod)" in done.out
    assert re.search(
        r"^default/web +scratch +kubernetes.io/empty-dir +mounted +tmpfs from tmpfs +/", done.out, re.MULTILINE
    )
    assert done.lines()[-1] == "Nothing is wrong."
    assert volumehost("inspect", "-o", "name").out == ""
    volumehost("unmount", "web")
    assert mounts_below(volumehost.root_dir) == []


def test_inspect_tells_what_it_means_and_what_repair_would_do(volumehost, kubelet) -> None:
    done = volumehost("inspect", "--root-dir", kubelet, "--pods", "-", stdin=pods(UID))
    assert done.code == 0
    assert "the root directory of a kubelet" in done.out
    assert f"warning: orphaned-pod {ORPHAN}" in done.out
    assert "  repair: unmounts what is mounted below it" in done.out
    names = volumehost("inspect", "--root-dir", kubelet, "--pods", "-", "-o", "name", stdin=pods(UID))
    assert names.lines() == [f"orphaned-pod/{ORPHAN}"]


def test_without_pods_it_says_that_nobody_was_asked(volumehost, kubelet) -> None:
    done = volumehost("inspect", "--root-dir", kubelet)
    assert "pods are known from: nowhere" in done.out
    assert "info: unknown-pod" in done.out
    assert "to do: give the pods with --pods" in done.out


def test_a_root_directory_that_is_none_has_its_exit_code(volumehost, tmp_path) -> None:
    absent = volumehost("inspect", "--root-dir", tmp_path / "absent")
    assert (absent.code, absent.out) == (3, "")
    assert "there is no such directory" in absent.err
    (tmp_path / "empty").mkdir()
    other = volumehost("repair", "--root-dir", tmp_path / "empty")
    assert other.code == 1
    assert "neither this host's root directory nor a kubelet's" in other.err


def test_a_list_of_pods_that_is_none_has_its_exit_code(volumehost, kubelet) -> None:
    assert volumehost("inspect", "--root-dir", kubelet, "--pods", "absent.json").code == 3
    done = volumehost("inspect", "--root-dir", kubelet, "--pods", "-", stdin="kind: Service\n")
    assert done.code == 1
    assert "not a list of pods" in done.err
    assert "--all-namespaces" in done.err


# --- repair ---------------------------------------------------------------------------------------------------------


def test_br84_a_dry_run_by_default_then_done_and_then_there_is_nothing_to_do(volumehost, kubelet, mounts_below) -> None:
    (kubelet.parent / "pods.json").write_text(pods(UID))
    arguments = ("repair", "--root-dir", kubelet, "--pods", kubelet.parent / "pods.json")
    before = mounts_below(kubelet)
    dry = volumehost(*arguments)
    assert dry.code == 0
    assert f"  1. unpublish volume b from pod {ORPHAN}; the plugin kubernetes.io/nfs is not told" in dry.lines()
    assert dry.lines()[-1] == "This was a dry run: nothing was changed. --apply does it."
    assert mounts_below(kubelet) == before
    done = volumehost(*arguments, "--apply")
    assert done.code == 0
    assert f"  1. done: unpublish volume b from pod {ORPHAN}; the plugin kubernetes.io/nfs is not told" in done.lines()
    assert os.listdir(kubelet / "pods") == [UID]
    again = volumehost(*arguments, "--apply")
    assert (again.code, again.out) == (0, "There is nothing to repair.\n")
    assert (kubelet.parent / "data" / "b" / "file").read_text() == "b"


def test_what_is_left_alone_is_explained_and_exits_with_1(volumehost, kubelet) -> None:
    target = kubelet / "pods" / ORPHAN / "volumes" / "kubernetes.io~nfs" / "b"
    with (target / "file").open():
        done = volumehost("repair", "--root-dir", kubelet, "--pods", "-", "--apply", stdin=pods(UID))
    assert done.code == 1
    assert f"left alone: orphaned-pod {ORPHAN}" in done.lines()
    assert re.search(
        rf"^  - {re.escape(str(target))} is in use by process {os.getpid()} \(.*\): open file", done.out, re.MULTILINE
    )
    assert "  to do: end what uses it" in done.lines()


def test_only_some_of_it(volumehost, kubelet) -> None:
    arguments = ("repair", "--root-dir", kubelet, "--pods", "-", "-o", "name")
    assert volumehost(*arguments, ORPHAN, stdin=pods(UID)).lines() == [f"orphaned-pod/{ORPHAN}"]
    assert volumehost(*arguments, "other", stdin=pods(UID)).lines() == []
    assert volumehost(*arguments, "--only", "leaked-mount", stdin=pods(UID)).lines() == []
    wrong = volumehost(*arguments, "--only", "orphan-pod", stdin=pods(UID))
    assert wrong.code == 2
    assert "did you mean orphaned-pod" in wrong.err


def test_beside_an_agent_or_a_command_it_is_refused(volumehost, manifest, pod_manifest, mounts_below) -> None:
    volumehost("mount", "-f", manifest(pod_manifest(scratch="emptyDir: {medium: Memory, sizeLimit: 1Mi}")))
    lock = RootDirLock(str(volumehost.root_dir))
    lock.acquire()
    try:
        done = volumehost("repair", "--apply")
        assert done.code == 1
        assert f"process {os.getpid()}" in done.err
        assert volumehost("repair").code == 0  # a dry run takes no lock
    finally:
        lock.release()
    volumehost("unmount", "web")
    assert mounts_below(volumehost.root_dir) == []


def test_names_from_disk_cannot_steer_a_terminal(volumehost, kubelet) -> None:
    evil = b"evil\x1b[2J\nroot: fine\xff"
    os.makedirs(os.path.join(os.fsencode(kubelet), b"pods", evil))
    for command in ("inspect", "repair"):
        done = volumehost(command, "--root-dir", kubelet, "--pods", "-", stdin=pods(UID))
        assert "\x1b" not in done.out
        assert not any(line.startswith("root: fine") for line in done.lines())
        data = volumehost(command, "--root-dir", kubelet, "--pods", "-", "-o", "json", stdin=pods(UID)).json()
        assert "evil\x1b[2J\nroot: fine\\xff" in json.dumps(data, ensure_ascii=False).encode().decode("unicode_escape")


# --- for programs ---------------------------------------------------------------------------------------------------


def shape(value: Any) -> Any:
    """The names of fields, in order, and of lists the first item that says something."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value and isinstance(value[0], dict) else []
    return None


def test_the_shapes_are_as_documented(volumehost, kubelet) -> None:
    found = re.findall(r"^## `([^`]+)`$.*?^```json\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    documented = {heading: json.loads(text) for heading, text in found}
    device = kubelet / "plugins" / "kubernetes.io" / "csi" / "csi.example.com" / ("0" * 64)
    device.mkdir(parents=True)
    (device / "vol_data.json").write_text('{"driverName": "csi.example.com", "volumeHandle": "v"}')
    (kubelet / "pods" / ORPHAN / "volumes" / "kubernetes.io~empty-dir" / "scratch" / "file").write_text("mine")
    for command in ("inspect", "repair"):
        done = volumehost(command, "--root-dir", kubelet, "--pods", "-", "-o", "json", stdin=pods(UID))
        assert shape(done.json()) == shape(documented[command]), command
        yaml = volumehost(command, "--root-dir", kubelet, "--pods", "-", "-o", "yaml", stdin=pods(UID))
        assert yaml.out.startswith("rootDir: ")
