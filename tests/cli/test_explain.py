"""``volumehost explain``: by the agent that works on the root directory, or from the records (BR-83)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.testing.agents import AgentProcess

pytestmark = pytest.mark.root

BAD = """
from volumehost import hookimpl
from volumehost.errors import OperationError


class Plugin:
    @hookimpl
    def get_plugin_name(self):
        return "acme.example.com/keys"

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return spec.source() == "nfs"

    @hookimpl
    def new_mounter(self, spec, pod):
        raise OperationError("PERMISSION_DENIED: bad key\\x1b[2J\\nsecond line", hint="look at the key")

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError
"""


@pytest.fixture
def keys(volumehost, site, manifest, pod_manifest) -> Path:
    """A pod with one volume whose plugin refuses, and one that works."""
    site.install("acme-keys", BAD)
    volumehost.environment.update(site.environment)
    return manifest(pod_manifest(keys="nfs: {server: nfs.example.com, path: /}", cache="emptyDir: {}"))


@pytest.fixture
def agent(volumehost, tmp_path) -> Iterator[Callable[[], AgentProcess]]:
    """Starts an agent on the root directory."""
    started: list[AgentProcess] = []

    def start() -> AgentProcess:
        made = AgentProcess(
            volumehost.root_dir, environment=dict(volumehost.environment), log_file=tmp_path / "agent.log"
        )
        started.append(made)
        made.start()
        made.wait_ready()
        return made

    yield start
    for each in started:
        each.kill()


def test_br83_the_records_explain_what_a_command_gave_up_on(volumehost, keys, mounts_below) -> None:
    failed = volumehost("mount", "-f", keys)
    assert failed.code == 1
    for words in ("volume keys (acme.example.com/keys, acme-keys 1.0): failed", "operation volume_mount",
                  "attempts failed at step check", "PERMISSION_DENIED: bad key", "to do: look at the key"):  # fmt: skip
        assert words in failed.err
    told = volumehost("explain", "web")
    assert told.code == 0, told.err
    lines = told.lines()
    assert lines[0] == "pod default/web: 1 of 2 volumes is not mounted"
    assert f"nobody works on this root directory, {volumehost.root_dir}" in lines[1]
    assert "  here     check what the pod asks for" in lines
    assert "  what to do: look at the key" in lines
    assert lines[-1] == "the others: cache (mounted)"
    # An error keeps its lines, and cannot steer the terminal.
    assert "\x1b" not in told.out
    assert "bad key\\x1b[2J\n" in told.out
    assert "\n      second line" in told.out
    data = volumehost("explain", "pod/web", "-o", "json").json()
    assert (data["name"], data["ready"], data["live"]) == ("web", False, False)
    volume = data["volumes"][0]
    assert (volume["attempts"], volume["step"], volume["advice"]) == (3, "check", ["look at the key"])
    assert [point["state"] for point in volume["sequence"]] == ["done", "here", "to-come", "to-come"]
    assert volumehost("explain", "web", "-o", "name").out == "pod/web\n"
    assert "summary: 1 of 2 volumes is not mounted" in volumehost("explain", "web", "-o", "yaml").out
    mounts_below(volumehost.root_dir)


def test_a_pod_that_is_ready_and_one_that_is_not_there(volumehost, manifest, pod_manifest, mounts_below) -> None:
    assert volumehost("mount", "-f", manifest(pod_manifest(cache="emptyDir: {}"))).code == 0
    told = volumehost("explain", "web")
    assert (told.code, told.out, told.err) == (0, "pod default/web: all volumes are mounted\n", "")
    absent = volumehost("explain", "other")
    assert (absent.code, absent.out) == (3, "")
    assert "there is no pod default/other" in absent.err
    assert volumehost("explain", "-n", "other", "web").code == 3
    assert volumehost("explain").code == 2
    mounts_below(volumehost.root_dir)


def test_a_root_directory_that_is_not_there_is_not_made(volumehost) -> None:
    assert volumehost("explain", "web").code == 3
    assert not os.path.exists(volumehost.root_dir)


def test_a_store_that_cannot_be_read_leaves_the_rest(volumehost, manifest, pod_manifest, mounts_below) -> None:
    mounted = volumehost("mount", "-f", manifest(pod_manifest(cache="emptyDir: {}")), "-o", "json").json()
    for name in os.listdir(volumehost.root_dir):
        if name.startswith("store.sqlite3"):
            os.unlink(volumehost.root_dir / name)
    (volumehost.root_dir / "store.sqlite3").write_bytes(b"this is no database" * 100)
    told = volumehost("explain", mounted["pods"][0]["uid"])
    assert told.code == 0, told.err
    assert "the pods cannot be read" in told.err
    assert told.out.startswith("pod default/web: all volumes are mounted")
    mounts_below(volumehost.root_dir)


def test_the_agent_is_asked_while_it_works(volumehost, keys, agent, mounts_below) -> None:
    running = agent()
    applied = volumehost("apply", "-f", keys)
    assert applied.code == 0, applied.err
    deadline = time.monotonic() + 60
    while not (volume := volumehost("explain", "web", "-o", "json").json()["volumes"][0])["attempts"]:
        assert time.monotonic() < deadline, volume
    told = volumehost("explain", "web", "-o", "json").json()
    assert told["live"]
    assert told["waitsFor"] == []
    volume = told["volumes"][0]
    assert any("the next attempt" in line for line in volume["waitsFor"]) or volume["age"] is not None
    assert any("PERMISSION_DENIED: bad key" in line for line in volume["error"])
    late = volumehost("mount", "web", "--timeout", "1s")
    assert late.code in {1, 4}
    assert "PERMISSION_DENIED: bad key" in late.err
    assert "here     check what the pod asks for" in late.err
    running.kill()
    left = volumehost("explain", "web", "-o", "json").json()
    assert not left["live"]
    assert any("nobody works on this root directory" in line for line in left["waitsFor"])
    mounts_below(volumehost.root_dir)
