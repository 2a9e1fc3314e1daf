"""``volumehost export``: what it prints for people, shells and programs, and how it says no."""

from __future__ import annotations

import json
import shlex
import subprocess

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


def test_a_line_for_each_container_quoted_for_a_shell(volumehost, mounted):
    done = volumehost("export", "web", "--format", "bwrap")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == [
        "# init container setup",
        f"--bind '{mounted}' /v",
        "# regular container app",
        f"--bind '{mounted}' /v --bind '{part_of(mounted)}' '/my part'",
        "# regular container idle",
        "",
    ]


def test_one_container_alone_is_a_line_that_can_be_used_as_it_is(volumehost, mounted):
    done = volumehost("export", "pod/web", "--container", "app", "--format", "podman")
    assert shlex.split(done.out) == [
        "--mount",
        f"type=bind,src={mounted},dst=/v",
        "--mount",
        f"type=bind,src={part_of(mounted)},dst=/my part",
    ]
    assert len(done.lines()) == 1


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_arguments_for_a_program(volumehost, mounted, output, read):
    done = volumehost("export", "web", "--format", "docker", "-o", output)
    data = read(done.out)
    assert data["format"] == "docker"
    assert [(each["container"], each["kind"]) for each in data["containers"]] == [
        ("setup", "init"),
        ("app", "regular"),
        ("idle", "regular"),
    ]
    assert data["containers"][0]["arguments"] == ["--mount", f"type=bind,src={mounted},dst=/v"]
    assert data["containers"][2]["arguments"] == []


def test_names(volumehost, mounted):
    assert volumehost("export", "web", "-o", "name").lines() == ["setup", "app", "idle"]


def test_data_are_the_default(volumehost, mounted):
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
    arguments = ("export", "web", "--container", "app", "--config", "-")
    merged = volumehost(*arguments, stdin=json.dumps(config)).json()
    assert merged == {"ociVersion": "1.0.0", "mounts": [{"destination": "/proc"}, *alone["mounts"]]}


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "it is no JSON"),
        ("[]", "expected an object"),
        ('{"mounts": 1}', "$.mounts: expected a list of objects"),
        ("\0", "it is no JSON"),
    ],
)
def test_a_configuration_that_is_none(volumehost, mounted, text, told):
    done = volumehost("export", "web", "--container", "app", "--config", "-", stdin=text)
    assert (done.code, done.out) == (1, "")
    assert told in done.err


def test_a_configuration_that_is_not_there(volumehost, mounted):
    done = volumehost("export", "web", "--container", "app", "--config", "absent.json")
    assert done.code == 3
    assert "absent.json: No such file" in done.err


def test_what_is_not_there(volumehost, manifest):
    done = volumehost("export", "web")
    assert done.code == 3
    assert "root directory" in done.err
    assert not volumehost.root_dir.exists()
    assert volumehost("apply", "-f", manifest(POD)).code == 0
    assert volumehost("export", "other").code == 3
    assert volumehost("export", "web", "-n", "else").code == 3


def test_a_container_that_the_pod_does_not_have(volumehost, mounted):
    done = volumehost("export", "web", "--container", "db")
    assert done.code == 3
    assert "pod default/web has no container db" in done.err
    assert "hint: it has setup, app, idle" in done.err


def test_a_pod_that_is_not_mounted_is_not_mounted_by_it(volumehost, manifest, mounts_below):
    assert volumehost("apply", "-f", manifest(POD)).code == 0
    done = volumehost("export", "web")
    assert (done.code, done.out) == (1, "")
    assert 'cannot find volume "v" to mount into container "setup"' in done.err
    assert "hint: mount the pod first" in done.err
    assert mounts_below(volumehost.root_dir) == []


def test_one_mount_that_cannot_be_said_is_an_error_and_nothing_is_printed(volumehost, manifest, mounts_below):
    text = POD.replace("{name: v, mountPath: /v}]}\n  containers", "{name: v, mountPath: /}]}\n  containers")
    assert volumehost("mount", "-f", manifest(text)).code == 0
    done = volumehost("export", "web", "--format", "podman")
    assert (done.code, done.out) == (1, "")
    assert "exporting volume v at / of container setup: podman cannot mount a volume in place" in done.err
    assert volumehost("export", "web", "--format", "bwrap").code == 0
    mounts_below(volumehost.root_dir)


def test_subpath03_details_of_the_host_do_not_show(volumehost, mounted):
    subprocess.run(["ln", "-s", "/etc/passwd", f"{mounted}/part"], check=True)
    done = volumehost("export", "web")
    assert (done.code, done.out) == (1, "")
    assert done.err == 'error: failed to prepare subPath for volumeMount "v" of container "app"\n'


def test_an_agent_is_asked_where_one_has_the_root_directory(volumehost, mounted):
    before = volumehost("export", "web").json()
    with AgentProcess(volumehost.root_dir):
        done = volumehost("export", "web")
        assert (done.code, done.err) == (0, "")
        assert done.json() == before
        failed = volumehost("export", "web", "--container", "db")
        assert (failed.code, "has no container db" in failed.err) == (3, True)
        assert volumehost("unmount", "web").code == 0
        gone = volumehost("export", "web")
        assert gone.code == 3
