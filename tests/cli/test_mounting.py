"""``mount``, ``unmount``, ``status`` and ``delete`` of mounted pods, with real mounts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.hosts.lock import RootDirLock
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root

MEMORY = "emptyDir: {medium: Memory, sizeLimit: 1Mi}"


def paths(done) -> dict[str, str]:
    """Volume name to host path, from JSON."""
    return {volume["volume"]: volume["path"] for pod in done.json()["pods"] for volume in pod["volumes"]}


def left_under(root_dir: Path) -> list[str]:
    return [str(path) for path in (root_dir / "pods").rglob("*")]


def test_mount_prints_volume_plugin_state_and_path_and_unmount_goes_to_the_last_directory(
    volumehost, manifest, pod_manifest, mounts_below, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    text = pod_manifest(disk="emptyDir: {}", memory=MEMORY, site=f"hostPath: {{path: {site}, type: Directory}}")
    path = manifest(text)
    done = volumehost("mount", "-f", path)
    assert done.code == 0, done.err
    assert done.err == ""
    head, *rows = [line.split(maxsplit=3) for line in done.lines()]
    assert head == ["VOLUME", "PLUGIN", "STATE", "PATH"]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("disk", "kubernetes.io/empty-dir", "mounted"),
        ("memory", "kubernetes.io/empty-dir", "mounted"),
        ("site", "kubernetes.io/host-path", "mounted"),
    ]
    where = {row[0]: row[3] for row in rows}
    assert mounts_below(volumehost.root_dir) == [where["memory"]]
    assert where["site"] == str(site)
    Path(where["disk"], "file").write_text("x")

    status = volumehost("status")
    assert status.code == 0
    assert [line.split()[:4] for line in status.lines()[1:]] == [
        ["default/web", name, plugin, "mounted"]
        for name, plugin in (
            ("disk", "kubernetes.io/empty-dir"),
            ("memory", "kubernetes.io/empty-dir"),
            ("site", "kubernetes.io/host-path"),
        )
    ]
    described = volumehost("describe", "pod", "web").out
    assert "Volumes on this node (mounted):" in described
    assert where["memory"] in described

    gone = volumehost("unmount", "web")
    assert (gone.code, gone.out) == (0, "pod default/web unmounted\n")
    assert mounts_below(volumehost.root_dir) == []
    assert left_under(volumehost.root_dir) == []
    assert site.is_dir()
    assert volumehost("get", "pod", "web").code == 3
    assert volumehost("unmount", "web").code == 3


def test_mount_twice_is_mount_once(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(pod_manifest(memory=MEMORY, disk="emptyDir: {}"))
    first = volumehost("mount", "-f", path, "-o", "json")
    Path(paths(first)["memory"], "kept").write_text("x")
    for arguments in (["-f", path], ["web"], ["pod/web"]):
        again = volumehost("mount", *arguments, "-o", "json")
        assert again.code == 0
        assert paths(again) == paths(first)
    assert mounts_below(volumehost.root_dir) == [paths(first)["memory"]]
    assert Path(paths(first)["memory"], "kept").read_text() == "x"


def test_the_shape_of_mount_and_status_in_json(volumehost, manifest, pod_manifest, mounts_below) -> None:
    mounted = volumehost("mount", "-f", manifest(pod_manifest(memory=MEMORY)), "-o", "json")
    mounts_below(volumehost.root_dir)
    (pod,) = mounted.json()["pods"]
    assert list(pod) == ["namespace", "name", "uid", "state", "ready", "note", "volumes"]
    assert (pod["namespace"], pod["name"], pod["state"], pod["ready"]) == ("default", "web", "mounted", True)
    (volume,) = pod["volumes"]
    assert list(volume) == [
        "volume",
        "state",
        "ready",
        "plugin",
        "distribution",
        "version",
        "path",
        "mounted",
        "uniqueName",
        "operation",
        "step",
        "age",
        "attempts",
        "error",
        "retryIn",
        "progress",
        "where",
        "selinux",
        "failedStep",
    ]
    status = volumehost("status", "-o", "json").json()
    assert list(status) == ["rootDir", "managerPid", "notes", "pods"]
    assert status["rootDir"] == str(volumehost.root_dir)
    assert status["managerPid"] is None
    assert status["pods"][0]["volumes"][0]["path"] == volume["path"]
    assert status["pods"][0]["volumes"][0]["mounted"] is True
    assert volumehost("mount", "web", "-o", "name").out == "pod/web\n"
    assert volumehost("status", "-o", "name").out == "pod/web\n"


def test_a_volume_that_fails_keeps_no_other_from_being_mounted(
    volumehost, manifest, pod_manifest, mounts_below, tmp_path: Path
) -> None:
    text = pod_manifest(
        good=MEMORY,
        missing=f"hostPath: {{path: {tmp_path}/absent, type: Directory}}",
        alien="nfs: {server: nfs.example.com, path: /}",
    )
    done = volumehost("mount", "-f", manifest(text))
    assert done.code == 1
    states = {line.split()[0]: line.split(maxsplit=3) for line in done.lines()[1:]}
    assert states["good"][2] == "mounted"
    assert mounts_below(volumehost.root_dir) == [states["good"][3]]
    assert "volume missing (kubernetes.io/host-path" in done.err
    assert "is not a directory" in done.err
    assert "volume alien" in done.err
    assert "no volume plugin matched" in done.err
    assert "'volumehost mount web' tries again" in done.err
    why = volumehost("status", "web")
    assert why.code == 0
    assert "is not a directory" in why.out
    assert "no volume plugin matched" in why.out
    (tmp_path / "absent").mkdir()
    assert volumehost("unmount", "web").code == 0
    assert mounts_below(volumehost.root_dir) == []


def test_a_volume_that_two_plugins_support_is_refused_and_the_rest_mounted(
    volumehost, manifest, pod_manifest, mounts_below, site, plugin_source
) -> None:
    for name in ("one", "two"):
        body = "return spec.volume is not None and spec.volume.nfs is not None"
        site.install(f"acme-{name}", plugin_source(f"acme.example.com/{name}", can_support=body))
    text = pod_manifest(good=MEMORY, both="nfs: {server: nfs.example.com, path: /}")
    done = volumehost("mount", "-f", manifest(text), environment=site.environment)
    assert done.code == 1
    assert "multiple volume plugins matched: acme.example.com/one,acme.example.com/two" in done.err
    assert len(mounts_below(volumehost.root_dir)) == 1


@pytest.mark.parametrize(
    "body", ["raise OSError('away')", "raise SystemExit(5)", "return 'yes'", "threading.Event().wait()"]
)
def test_a_plugin_that_misbehaves_does_not_disturb_the_others(
    volumehost, manifest, pod_manifest, mounts_below, site, plugin_source, body: str
) -> None:
    site.install("acme-bad", plugin_source("acme.example.com/bad", top="import threading", can_support=body))
    done = volumehost("mount", "-f", manifest(pod_manifest(good=MEMORY)), environment=site.environment)
    assert done.code == 0, done.err
    assert len(mounts_below(volumehost.root_dir)) == 1


def test_volumes_that_no_container_uses_are_not_mounted_and_status_says_so(
    volumehost, manifest, pod_manifest, mounts_below
) -> None:
    text = pod_manifest(used=MEMORY) + "    - name: spare\n      emptyDir: {medium: Memory}\n"
    done = volumehost("mount", "-f", manifest(text))
    assert done.code == 0
    assert "unused: no container uses it" in done.out
    assert len(mounts_below(volumehost.root_dir)) == 1


def test_several_pods_of_one_manifest(volumehost, manifest, pod_manifest, mounts_below) -> None:
    text = f"{pod_manifest('one', a=MEMORY)}---\n{pod_manifest('two', b=MEMORY)}"
    done = volumehost("mount", "-f", manifest(text))
    assert done.code == 0
    assert [line.split()[:2] for line in done.lines()[1:]] == [["default/one", "a"], ["default/two", "b"]]
    assert len(mounts_below(volumehost.root_dir)) == 2
    assert len(volumehost("unmount", "--all").lines()) == 2
    assert mounts_below(volumehost.root_dir) == []
    assert left_under(volumehost.root_dir) == []


def test_one_pod_of_a_manifest_with_several(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(f"{pod_manifest('one', a=MEMORY)}---\n{pod_manifest('two', b=MEMORY)}")
    assert volumehost("mount", "two", "-f", path).code == 0
    assert volumehost("get", "pods", "-o", "name").lines() == ["pod/two"]
    assert len(mounts_below(volumehost.root_dir)) == 1


def test_a_pod_that_was_applied_can_be_mounted_by_name(volumehost, manifest, pod_manifest, mounts_below) -> None:
    assert volumehost("apply", "-f", manifest(pod_manifest(a=MEMORY)), "-n", "mine").code == 0
    assert volumehost("mount", "web").code == 3
    assert volumehost("mount", "web", "-n", "mine").code == 0
    assert len(mounts_below(volumehost.root_dir)) == 1
    assert volumehost("apply", "-f", volumehost.cwd / "pod.yaml", "-n", "mine").out == "pod/web unchanged\n"
    assert volumehost("status", "-n", "default").err.startswith("No pods")
    assert volumehost("status", "web").code == 3
    assert volumehost("status", "web", "-n", "mine").code == 0
    assert volumehost("delete", "pod", "web", "-n", "mine").out == "pod/web deleted\n"
    assert mounts_below(volumehost.root_dir) == []
    assert left_under(volumehost.root_dir) == []


def test_apply_of_a_mounted_pod_does_not_make_it_forget_its_volumes(
    volumehost, manifest, pod_manifest, mounts_below
) -> None:
    path = manifest(pod_manifest(a=MEMORY))
    for command in ("apply", "mount", "apply"):
        assert volumehost(command, "-f", path).code == 0
    assert "volumehost.io/volumes" in volumehost("get", "pod", "web", "-o", "yaml").out
    assert volumehost("delete", "-f", path).code == 0
    assert mounts_below(volumehost.root_dir) == []


def test_other_objects_of_the_manifest_are_applied_first(volumehost, manifest, pod_manifest, mounts_below) -> None:
    text = pod_manifest(a=MEMORY) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    done = volumehost("mount", "-f", manifest(text))
    assert done.code == 0
    assert done.err == "configmap/c created\n"
    assert len(mounts_below(volumehost.root_dir)) == 1


def test_no_wait_begins_and_the_next_command_finds_it(volumehost, manifest, pod_manifest, mounts_below) -> None:
    done = volumehost("mount", "-f", manifest(pod_manifest(a=MEMORY)), "--no-wait")
    assert done.code == 0
    assert done.lines()[1].split()[0] == "a"
    assert volumehost("mount", "web").code == 0
    assert len(mounts_below(volumehost.root_dir)) == 1


@pytest.mark.parametrize("timeout", ["5x", "-1s", "", "soon"])
def test_a_timeout_that_is_no_duration_is_a_usage_error(volumehost, timeout: str) -> None:
    done = volumehost("mount", "web", f"--timeout={timeout}")
    assert done.code == 2
    assert "30s" in done.err


WITHOUT_PRIVILEGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
CAP_SYS_ADMIN, PR_CAPBSET_DROP = 21, 24
assert libc.prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_without_the_privilege_to_mount_nothing_is_stored_or_done(volumehost, manifest, pod_manifest) -> None:
    path = manifest(pod_manifest(a=MEMORY))
    program = Path(sys.executable).with_name("volumehost")
    for arguments in (["mount", "-f", str(path)], ["demo"]):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_PRIVILEGE, str(program), *arguments],
            capture_output=True,
            text=True,
            env=volumehost.variables(),
            cwd=volumehost.cwd,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert "CAP_SYS_ADMIN" in done.stderr
        assert "hint: " in done.stderr
        assert "Traceback" not in done.stderr
        assert not volumehost.root_dir.exists()
    assert list(Path(volumehost.environment["TMPDIR"]).iterdir()) == []


def test_unmount_of_nothing(volumehost) -> None:
    done = volumehost("unmount", "--all")
    assert (done.code, done.out, done.err) == (0, "", "Nothing was unmounted.\n")
    assert volumehost("unmount", "--all", "-o", "json").json() == {"unmounted": []}
    missing = volumehost("unmount", "web")
    assert missing.code == 3
    assert str(volumehost.root_dir) in missing.err
    assert not volumehost.root_dir.exists()


@pytest.mark.parametrize("arguments", [["mount"], ["unmount"], ["unmount", "web", "--all"]], ids=" ".join)
def test_usage_errors(volumehost, arguments: list[str]) -> None:
    done = volumehost(*arguments)
    assert (done.code, done.out) == (2, "")
    assert not volumehost.root_dir.exists()


def test_a_manifest_without_a_pod_cannot_be_mounted(volumehost, manifest) -> None:
    path = manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    done = volumehost("mount", "-f", path)
    assert done.code == 2
    assert "volumehost apply" in done.err
    assert not volumehost.root_dir.exists()


def test_an_interrupted_mount_ends_quietly_and_leaves_the_rest_mounted(
    volumehost, manifest, pod_manifest, mounts_below, tmp_path: Path
) -> None:
    text = pod_manifest(good=MEMORY, slow="nfs: {server: nfs.example.com, path: /}")
    path = manifest(text)
    lock = RootDirLock(prepare_root_dir(str(volumehost.root_dir)))
    lock.acquire()
    process = volumehost.start("mount", "-f", path)
    try:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("waiting: ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        lock.release()
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "interrupted"
    assert mounts_below(volumehost.root_dir) == []


def test_what_else_is_mounted_below_a_pod_is_not_taken_away(
    volumehost, manifest, pod_manifest, mounts_below, tmp_path: Path
) -> None:
    """BR-62: data behind a foreign mount survives, and the user is told what holds the pod."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "precious").write_text("x")
    done = volumehost("mount", "-f", manifest(pod_manifest(disk="emptyDir: {}")), "-o", "json")
    inside = Path(paths(done)["disk"], "inside")
    inside.mkdir()
    LinuxMounter().mount(str(data), str(inside), "", ["bind"])
    assert mounts_below(volumehost.root_dir) == [str(inside)]
    refused = volumehost("unmount", "web", "--timeout", "3s")
    assert refused.code in {1, 4}
    assert str(inside) in refused.err
    assert (data / "precious").read_text() == "x"
    LinuxMounter().unmount(str(inside))
    assert volumehost("unmount", "web").code == 0
    assert (data / "precious").read_text() == "x"
    assert left_under(volumehost.root_dir) == []


@pytest.mark.parametrize("how", ["by name", "by uid", "all"])
def test_volumes_of_a_pod_that_only_the_journal_knows_can_be_unmounted(
    volumehost, manifest, pod_manifest, mounts_below, how: str
) -> None:
    mounted = volumehost("mount", "-f", manifest(pod_manifest(a=MEMORY, b="emptyDir: {}")), "-o", "json")
    uid = mounted.json()["pods"][0]["uid"]
    (volumehost.root_dir / "store.sqlite3").unlink()
    status = volumehost("status")
    assert status.code == 0
    assert "the pod is not in the API" in status.out
    assert len(mounts_below(volumehost.root_dir)) == 1
    arguments = {"by name": ["web"], "by uid": [uid], "all": ["--all"]}[how]
    done = volumehost("unmount", *arguments)
    assert done.code == 0, done.err
    assert mounts_below(volumehost.root_dir) == []
    assert left_under(volumehost.root_dir) == []


def test_selinux_options_are_told_as_not_applicable_where_the_kernel_has_none(
    volumehost, manifest, pod_manifest, mounts_below
) -> None:
    if Path("/sys/fs/selinux/enforce").exists():
        pytest.skip("this kernel has SELinux on")
    options = "spec:\n  securityContext: {seLinuxOptions: {level: s0:c1}}\n"
    text = pod_manifest(good=MEMORY).replace("spec:\n", options, 1)
    words = "not applicable: this kernel has no SELinux"
    (pod,) = volumehost("mount", "-f", manifest(text), "-o", "json").json()["pods"]
    assert [volume["selinux"] for volume in pod["volumes"]] == [words]
    (pod,) = volumehost("status", "-o", "json").json()["pods"]
    assert [volume["selinux"] for volume in pod["volumes"]] == [words]
    (volume,) = volumehost("explain", "web", "-o", "json").json()["volumes"]
    assert volume["selinux"] == words
    volumehost("unmount", "web")


@pytest.mark.parametrize("name", ["../x", "a" * 254, "-a"])
def test_a_name_that_no_node_can_have_is_a_mistake_of_usage(volumehost, manifest, pod_manifest, name: str) -> None:
    done = volumehost(f"--node-name={name}", "mount", "-f", manifest(pod_manifest(v=MEMORY)))
    assert done.code == 2
    assert "invalid value for '--node-name'" in done.err
    assert "a letter or digit at both ends" in done.err


def test_a_pod_of_another_node_is_refused_and_explained(volumehost, manifest, pod_manifest) -> None:
    path = manifest(pod_manifest(v=MEMORY).replace("spec:\n", "spec:\n  nodeName: there\n", 1))
    done = volumehost("mount", "-f", path, "--node-name", "here")
    assert done.code == 1
    assert "mounting pod default/web: it is for node there, and this is here" in done.err
    assert volumehost("status", "web").code == 3
    assert volumehost("apply", "-f", path).code == 0
    assert "it is for node there, and this is here" in volumehost("mount", "web").err
    told = volumehost("explain", "web").out
    assert "waits for: node there, which the pod is for; this is here" in told
    assert "volumehost mount" not in told
