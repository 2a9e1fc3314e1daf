"""Pods are named as commands print them; whoever is not found is told where one is; advice works when it is pasted."""

from __future__ import annotations

import shlex

import pytest

pytestmark = pytest.mark.root


@pytest.fixture
def in_team(volumehost, manifest, pod_manifest):
    """A pod of another namespace than the default one, of which one volume is mounted."""
    text = pod_manifest(good="emptyDir: {}", bad="hostPath: {path: /nowhere, type: Directory}")
    path = manifest(text.replace("name: web", "name: web\n  namespace: team", 1))
    done = volumehost("mount", "-f", path, "--root-dir", volumehost.root_dir)
    assert done.code == 1
    return done


def test_a_namespace_may_stand_before_the_name(volumehost, in_team) -> None:
    for command in ("explain", "status", "plan", "mount"):
        assert "volume bad" in volumehost(command, "team/web").out + volumehost(command, "pod/web", "-n", "team").err
    assert volumehost("export", "team/web").code == 1
    done = volumehost("explain", "team/web", "-n", "other")
    assert done.code == 2
    assert "team/web is in namespace team, and -n says other" in done.err
    assert volumehost("unmount", "team/web").out == "pod team/web unmounted\n"


@pytest.mark.parametrize(
    "command", [["explain"], ["status"], ["plan"], ["plan", "--unmount"], ["mount"], ["export"], ["unmount"]]
)
def test_who_does_not_find_a_pod_is_told_where_one_is(volumehost, in_team, command) -> None:
    done = volumehost(*command, "web")
    assert done.code == 3
    assert done.err.splitlines()[-1] == "hint: namespace team has one: -n team"
    done = volumehost(*command, "none")
    assert done.code == 3
    assert done.err.splitlines()[-1].startswith("hint: 'volumehost status' lists what there is")


def test_advice_has_the_root_directory_and_the_namespace(volumehost, in_team) -> None:
    root = shlex.quote(str(volumehost.root_dir))
    again = f"'volumehost --root-dir {root} mount -n team web' tries again"
    assert in_team.err.splitlines()[-1].startswith(f"hint: the other volumes are mounted; {again}")
    told = volumehost("explain", "team/web", "--root-dir", volumehost.root_dir).out
    assert f"run 'volumehost --root-dir {root} mount -n team web', or the agent" in told
    assert "run 'volumehost mount -n team web', or the agent" in volumehost("explain", "team/web").out


def test_what_is_alone_has_no_other_volumes(volumehost, manifest, pod_manifest) -> None:
    done = volumehost("mount", "-f", manifest(pod_manifest(v="hostPath: {path: /nowhere, type: Directory}")))
    assert done.err.splitlines()[-1] == (
        "hint: 'volumehost mount web' tries again, 'volumehost unmount web' takes all away"
    )
