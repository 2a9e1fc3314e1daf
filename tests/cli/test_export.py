"""``volumehost export``: what it prints for people, shells and programs, and how it says no."""

from __future__ import annotations

import json
import os
import shlex

import pytest
import yaml

from volumehost.testing.agents import AgentProcess

pytestmark = pytest.mark.root

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - {name: setup, image: i, volumeMounts: [{name: v, mountPath: /v}]}
  containers:
  - {name: app, image: i, volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: "/my part", subPath: part}]}
  - {name: idle, image: i}
  volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]
"""


@pytest.fixture
def mounted(volumehost, manifest, mounts_below):
    """The pod, mounted; the path of its volume."""
    done = volumehost("mount", "-f", manifest(POD), "-o", "json")
    assert done.code == 0, done.err
    yield done.json()["pods"][0]["volumes"][0]["path"]
    mounts_below(volumehost.root_dir)


def part_of(path):
    return path.replace("volumes/kubernetes.io~empty-dir/v", "volume-subpaths/v/app/1")


def test_lines_for_a_shell(volumehost, mounted):
    done = volumehost("export", "web", "--format", "bwrap")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == [
        "## init container setup",
        f"--bind '{mounted}' /v",
        "## regular container app",
        f"--bind '{mounted}' /v --bind '{part_of(mounted)}' '/my part'",
        "## regular container idle",
        "",
    ]
    alone = volumehost("export", "pod/web", "--container", "app", "--format", "podman")
    assert len(alone.lines()) == 1, "it can be used as it is"
    assert shlex.split(alone.out) == [
        *("--mount", f"type=bind,src={mounted},dst=/v"),
        *("--mount", f"type=bind,src={part_of(mounted)},dst=/my part"),
    ]


def test_lists_and_data_for_programs(volumehost, mounted):
    made = volumehost("export", "web", "--format", "docker", "-o", "json").json()
    assert made["format"] == "docker"
    assert [(each["container"], each["kind"]) for each in made["containers"]] == [
        ("setup", "init"),
        ("app", "regular"),
        ("idle", "regular"),
    ]
    assert made["containers"][0]["arguments"] == ["--mount", f"type=bind,src={mounted},dst=/v"]
    assert made["containers"][2]["arguments"] == []
    assert yaml.safe_load(volumehost("export", "web", "--format", "docker", "-o", "yaml").out) == made
    assert volumehost("export", "web", "-o", "name").lines() == ["setup", "app", "idle"]
    data = volumehost("export", "web").json()
    assert data == volumehost("export", "web", "--format", "json", "-o", "json").json()
    app = data["containers"][1]
    assert app["mounts"][1] == {
        "volume": "v",
        "hostPath": part_of(mounted),
        "containerPath": "/my part",
        "readOnly": False,
        "recursiveReadOnly": "",
        "propagation": "None",
        "hostPropagation": "",
        "subPath": "part",
        "selinuxRelabel": app["mounts"][1]["selinuxRelabel"],
    }
    assert (app["devices"], app["supplementalGroups"]) == ([], [])


def test_oci_alone_by_container_and_in_a_configuration(volumehost, mounted):
    alone = volumehost("export", "web", "--container", "app", "--format", "oci").json()
    assert [mount["destination"] for mount in alone["mounts"]] == ["/v", "/my part"]
    assert volumehost("export", "web", "--format", "oci").json() == {
        "setup": {"mounts": alone["mounts"][:1]},
        "app": alone,
        "idle": {"mounts": []},
    }
    config = {"ociVersion": "1.0.0", "mounts": [{"destination": "/proc"}]}
    arguments = ("export", "web", "--container", "app", "--config")
    merged = volumehost(*arguments, "-", stdin=json.dumps(config)).json()
    assert merged == {"ociVersion": "1.0.0", "mounts": [{"destination": "/proc"}, *alone["mounts"]]}
    for text, told in (
        ("{", "it is no JSON"),
        ("[]", "expected an object"),
        ('{"mounts": 1}', "$.mounts: expected a list of objects"),
    ):
        done = volumehost(*arguments, "-", stdin=text)
        assert (done.code, done.out) == (1, "")
        assert told in done.err
    absent = volumehost(*arguments, "absent.json")
    assert absent.code == 3
    assert "absent.json: No such file" in absent.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--config", "c.json"),
        ("--config", "c.json", "--container", "app", "--format", "bwrap"),
        ("--format", "lxc"),
        (),
    ],
)
def test_usage(volumehost, arguments):
    done = volumehost("export", *(("web", *arguments) if arguments else ()))
    assert (done.code, done.out) == (2, "")


def test_what_is_not_there_and_what_is_not_mounted(volumehost, manifest, mounts_below):
    done = volumehost("export", "web")
    assert done.code == 3
    assert "root directory" in done.err
    assert not volumehost.root_dir.exists()
    assert volumehost("apply", "-f", manifest(POD)).code == 0
    assert volumehost("export", "other").code == 3
    assert volumehost("export", "web", "-n", "else").code == 3
    done = volumehost("export", "web")
    assert (done.code, done.out) == (1, "")
    assert 'cannot find volume "v" to mount into container "setup"' in done.err
    assert "hint: mount the pod first" in done.err
    assert mounts_below(volumehost.root_dir) == [], "it mounts nothing by itself"


def test_one_mount_that_cannot_be_said_is_an_error_and_nothing_is_printed(volumehost, manifest, mounts_below):
    text = POD.replace("{name: v, mountPath: /v}]}\n  containers", "{name: v, mountPath: /}]}\n  containers")
    assert volumehost("mount", "-f", manifest(text)).code == 0
    done = volumehost("export", "web", "--format", "podman")
    assert (done.code, done.out) == (1, "")
    assert "exporting volume v at / of container setup: podman cannot mount a volume in place" in done.err
    assert volumehost("export", "web", "--format", "bwrap").code == 0
    mounts_below(volumehost.root_dir)


def test_subpath03_details_of_the_host_do_not_show(volumehost, mounted):
    os.symlink("/etc/passwd", f"{mounted}/part")
    done = volumehost("export", "web")
    assert (done.code, done.out) == (1, "")
    error, hint = done.err.splitlines()
    assert error == 'error: failed to prepare subPath for volumeMount "v" of container "app"'
    assert hint.startswith("hint: no part of a subPath may be a link that leads out of the volume")
    assert "/etc" not in done.err


def test_an_agent_is_asked_where_one_has_the_root_directory(volumehost, mounted):
    before = volumehost("export", "web").json()
    with AgentProcess(volumehost.root_dir):
        done = volumehost("export", "web")
        assert (done.code, done.err) == (0, "")
        assert done.json() == before
        failed = volumehost("export", "web", "--container", "db")
        assert failed.code == 3
        assert "pod default/web has no container db" in failed.err
        assert "hint: it has setup, app, idle" in failed.err
        assert volumehost("unmount", "web").code == 0
        gone = volumehost("export", "web")
        assert gone.code == 3
