"""``volumehost plan``: what would be done, with nothing done; and that it agrees with what is done then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

CLAIM = """\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 64Mi}}}
"""
CLASS = """\
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: loop.csi.volumehost
"""


def _tree(directory: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for parent, _, names in os.walk(directory):
        for path in (parent, *(os.path.join(parent, name) for name in names)):
            content = Path(path).read_bytes() if os.path.isfile(path) else b""
            found[path] = os.lstat(path).st_mtime_ns, content
    return found


def test_nothing_is_made_and_the_exit_code_tells(volumehost, manifest, pod_manifest) -> None:
    path = manifest(pod_manifest(data="persistentVolumeClaim: {claimName: data}") + CLAIM)
    done = volumehost("plan", "-f", path)
    assert done.code == 1
    assert done.err == ""
    lines = done.lines()
    assert lines[0] == "plan to mount pod default/web: 1 of 1 volume would not work as things are"
    assert lines[-1].startswith(
        "  in the way: no persistent volume suits claim default/data, and there is no storageclass"
    )
    works = volumehost("plan", "-f", manifest(path.read_text() + CLASS))
    assert works.code == 0, works.out
    assert "1. provision a volume for it, by driver loop.csi.volumehost" in works.out
    assert "attach it to node" in works.out
    assert not os.path.exists(volumehost.root_dir)


def test_a_mounted_pod_needs_nothing_and_nothing_changes(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(pod_manifest(cache="emptyDir: {medium: Memory, sizeLimit: 1Mi}"))
    planned = volumehost("plan", "-f", path, "-o", "json").json()["plans"][0]
    status = volumehost("mount", "-f", path, "-o", "json").json()["pods"][0]
    (text,) = [step["text"] for step in planned["volumes"][0]["steps"] if step["phase"] == "set-up"]
    assert status["volumes"][0]["path"].replace(status["uid"], "<uid of the pod>") in text
    before, mounted = _tree(volumehost.root_dir), mounts_below(volumehost.root_dir)
    again = volumehost("plan", "web")
    assert (again.code, again.lines()[0]) == (0, "plan to mount pod default/web: nothing is left to do")
    away = volumehost("plan", "--unmount", "web")
    assert (away.code, away.lines()[0]) == (0, "plan to unmount pod default/web: nothing is in the way")
    assert (_tree(volumehost.root_dir), mounts_below(volumehost.root_dir)) == (before, mounted)
    assert volumehost("unmount", "web").code == 0


def test_of_the_manifests_only_the_pod_that_is_named(volumehost, manifest, pod_manifest) -> None:
    two = manifest(pod_manifest("one", a="emptyDir: {}") + "---\n" + pod_manifest("two", b="emptyDir: {}"))
    assert [plan["name"] for plan in volumehost("plan", "-f", two, "-o", "json").json()["plans"]] == ["one", "two"]
    assert [plan["name"] for plan in volumehost("plan", "two", "-f", two, "-o", "json").json()["plans"]] == ["two"]
    assert volumehost("plan", "-f", two, "-o", "name").lines() == ["pod/one", "pod/two"]


def test_what_cannot_be_planned(volumehost, manifest, pod_manifest) -> None:
    assert volumehost("plan").code == 2
    assert volumehost("plan", "--unmount").code == 2
    assert volumehost("plan", "--unmount", "web", "-f", "x").code == 2
    absent = volumehost("plan", "web")
    assert (absent.code, absent.out) == (3, "")
    assert volumehost("plan", "--unmount", "web").code == 3
    assert volumehost("plan", "-f", "absent.yaml").code == 3
    wrong = volumehost("plan", "-f", manifest(pod_manifest(a="hostPath: {path: ''}")))
    assert wrong.code == 1
    assert "hostPath.path" in wrong.err
    assert not os.path.exists(volumehost.root_dir)


def test_no_plugin_and_a_plugin_that_does_not_load(volumehost, manifest, pod_manifest, site, plugin_source) -> None:
    site.install("acme-bad", plugin_source("acme.example.com/bad", top="import missing_dep"))
    path = manifest(pod_manifest(v="nfs: {server: s, path: /}"))
    done = volumehost("plan", "-f", path, environment=site.environment)
    assert done.code == 1
    assert "in the way: failed to get Plugin" in done.out
    assert "note: a plugin could not be loaded:" in done.out
    assert "acme-bad" in done.out
