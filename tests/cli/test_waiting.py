"""What is shown while a command waits, and what it says when the time is over: a plugin mounts when it is told to."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

GATED = """
import os, time
from volumehost import Attributes, hookimpl


class Gated:
    def __init__(self, path):
        self.path = path

    def get_path(self):
        return self.path

    def get_attributes(self):
        return Attributes()

    def set_up(self, args):
        deadline = time.monotonic() + float(os.environ["GATE_SECONDS"])
        while not os.path.exists(os.environ["GATE"]) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.makedirs(self.path, exist_ok=True)

    def tear_down(self):
        if os.path.isdir(self.path):
            os.rmdir(self.path)


class Plugin:
    @hookimpl
    def init(self, host):
        self.host = host

    @hookimpl
    def get_plugin_name(self):
        return "acme.example.com/gated"

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return spec.source() == "nfs"

    @hookimpl
    def new_mounter(self, spec, pod):
        return Gated(self.host.get_pod_volume_dir(pod.metadata.uid, "acme.example.com/gated", spec.name()))

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        return Gated(self.host.get_pod_volume_dir(pod_uid, "acme.example.com/gated", volume_name))

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError
"""


@pytest.fixture
def gate(volumehost, site, tmp_path: Path) -> Path:
    """The file that lets the plugin mount; the plugin waits for it for a minute."""
    site.install("acme-gated", GATED)
    path = tmp_path / "gate"
    volumehost.environment.update(site.environment, GATE=str(path), GATE_SECONDS="60")
    return path


@pytest.fixture
def waiting_pod(manifest, pod_manifest) -> Path:
    return manifest(pod_manifest(slow="nfs: {server: nfs.example.com, path: /}", quick="emptyDir: {}"))


def read_until(terminal: int, words: str, seconds: float = 30) -> str:
    """What the terminal shows, up to the words."""
    text, deadline = "", time.monotonic() + seconds
    while words not in text:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{words!r} did not come: {text!r}"
        text += os.read(terminal, 4096).decode()
    return text


def read_rest(terminal: int) -> str:
    text = ""
    try:
        while select.select([terminal], [], [], 0)[0]:
            text += os.read(terminal, 4096).decode()
    except OSError:  # the other side has gone
        pass
    return text


def test_on_a_terminal_it_shows_what_it_waits_for_and_takes_it_away_again(volumehost, waiting_pod, gate: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [volumehost.start.__globals__["PROGRAM"], "mount", "-f", str(waiting_pod)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**volumehost.variables(), "TERM": "xterm"},
        cwd=volumehost.cwd,
        text=True,
    )
    os.close(theirs)
    try:
        shown = read_until(ours, "default/web slow: mounting")
        assert "mounting default/web" in shown
        assert "default/web quick" not in shown.rpartition("mounting default/web")[2]
        gate.touch()
        out, _ = process.communicate(timeout=60)
        rest = read_rest(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == 0
    assert [line.split()[2] for line in out.splitlines()[1:]] == ["mounted", "mounted"]
    assert "\x1b[2K" in rest  # the lines are erased
    assert volumehost("unmount", "web").code == 0


def test_without_a_terminal_nothing_is_shown_while_waiting(volumehost, waiting_pod, gate: Path) -> None:
    gate.touch()
    done = volumehost("mount", "-f", waiting_pod)
    assert (done.code, done.err) == (0, "")


def test_br83_when_the_time_is_over_it_says_what_is_missing_and_where_it_stands(
    volumehost, waiting_pod, gate: Path
) -> None:
    volumehost.environment["GATE_SECONDS"] = "4"
    done = volumehost("mount", "-f", waiting_pod, "--timeout", "3s")
    assert done.code == 4
    assert "waiting for the volumes of pod default/web" in done.err
    assert "volume slow (acme.example.com/gated, acme-gated 1.0): mounting" in done.err
    assert "volume quick" not in done.err
    states = {line.split()[0]: line.split()[2] for line in done.lines()[1:]}
    assert states == {"slow": "mounting", "quick": "mounted"}
    gate.touch()
    assert volumehost("mount", "web").code == 0


def test_status_tells_what_another_process_is_doing(volumehost, waiting_pod, gate: Path) -> None:
    process = volumehost.start("mount", "-f", waiting_pod)
    try:
        deadline = time.monotonic() + 30
        states: dict[str, str] = {}
        while states != {"slow": "mounting", "quick": "mounted"} and time.monotonic() < deadline:
            found = volumehost("status", "-o", "json").json()
            states = {volume["volume"]: volume["state"] for pod in found["pods"] for volume in pod["volumes"]}
        assert states == {"slow": "mounting", "quick": "mounted"}
        assert found["managerPid"] == process.pid
        assert volumehost("status", "web").code == 0
        assert volumehost("unmount", "web", "--timeout", "100ms").code == 4
        gate.touch()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")
    assert "mounting" not in out


def test_an_interrupted_wait_leaves_what_is_mounted_and_can_be_gone_on_with(
    volumehost, waiting_pod, gate: Path
) -> None:
    process = volumehost.start("mount", "-f", waiting_pod)
    try:
        deadline = time.monotonic() + 30
        while "mounting" not in volumehost("status", "web").out and time.monotonic() < deadline:
            pass
        process.send_signal(signal.SIGINT)
        gate.touch()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (130, "")
    assert err == "interrupted\n"
    assert volumehost("mount", "web").code == 0
    assert volumehost("unmount", "web").code == 0
    assert list((volumehost.root_dir / "pods").iterdir()) == []
