"""podman runs with exported volumes, and docker's command line understands them, where those programs are installed."""

from __future__ import annotations

import http.server
import json
import shlex
import shutil
import socketserver
import subprocess
import threading

import pytest

pytestmark = pytest.mark.root


# --- docker ---------------------------------------------------------------------------------------------------------


class _Daemon(http.server.BaseHTTPRequestHandler):
    """As much of docker's daemon as ``docker create`` talks to; remembers what was to be created."""

    def do_HEAD(self):
        self._answer(b"")

    def do_GET(self):
        self._answer(b"{}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "/containers/create" in self.path:
            self.server.created.append(json.loads(body))
        self._answer(b'{"Id": "made", "Warnings": []}', code=201)

    def _answer(self, body, code=200):
        self.send_response(code)
        for name, value in (("Api-Version", "1.44"), ("OSType", "linux"), ("Content-Type", "application/json")):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "docker"

    def log_message(self, *arguments):
        """Say nothing."""


@pytest.fixture
def docker_reads(tmp_path):
    """What docker's command line makes of its arguments, asked of itself."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    address = str(tmp_path / "docker.sock")
    with socketserver.ThreadingUnixStreamServer(address, _Daemon) as server:
        server.created = []
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def read(arguments):
            command = ["docker", "--host", f"unix://{address}", "create", *arguments, "image"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            return server.created.pop()["HostConfig"]

        yield read
        server.shutdown()


def test_docker_understands_what_is_exported(world, docker_reads):
    read = docker_reads(shlex.split(world.export("app", "--format", "docker")))
    (exported,) = json.loads(world.export("app"))["containers"]
    assert {(mount["Source"], mount["Target"], mount.get("ReadOnly", False)) for mount in read["Mounts"]} == {
        (mount["hostPath"], mount["containerPath"], mount["readOnly"]) for mount in exported["mounts"]
    }
    options = {mount["Target"]: mount.get("BindOptions", {}) for mount in read["Mounts"]}
    assert options["/whole tree"] == {"Propagation": "rprivate", "ReadOnlyForceRecursive": True}
    assert options["/tree"] == {}
    (device,) = exported["devices"]
    assert [(each["PathOnHost"], each["PathInContainer"], each["CgroupPermissions"]) for each in read["Devices"]] == [
        (device["hostPath"], "/dev/xvda", "rwm")
    ]
    assert read["GroupAdd"] == ["4242"]


def test_docker_understands_propagation(world, docker_reads):
    for container, expected in (("follower", "rslave"), ("both", "rshared")):
        read = docker_reads(shlex.split(world.export(container, "--format", "docker")))
        propagations = {mount["Target"]: mount.get("BindOptions", {}).get("Propagation") for mount in read["Mounts"]}
        assert propagations["/tree"] == expected


# --- podman ---------------------------------------------------------------------------------------------------------


def test_podman_runs_with_what_is_exported(world, crun_works, rootfs):
    """Without an image: in the directory of a root. Recursive read-only is what it refuses, so another container."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    (world.path("files") / "note").write_text("on the disk")
    command = [
        *(
            "podman",
            "--root",
            str(world.base / "p1"),
            "--runroot",
            str(world.base / "p2"),
            "--tmpdir",
            str(world.base / "p3"),
        ),
        *("--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", "crun"),
        *("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),
        *("--volume", "/usr:/usr:ro"),
        *shlex.split(world.export("reader", "--format", "podman")),
        *("--rootfs", str(rootfs), "/bin/bash", "-c", "cat /files/note; echo; id -G; touch /files/new"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["on the disk", "0 4242"], done.stderr
    assert "Read-only file system" in done.stderr


def test_podman_says_what_it_cannot_do(world):
    told = world("export", "web", "--container", "app", "--format", "podman", code=1)
    assert "podman cannot make a mount read-only with all that is mounted below it" in told
