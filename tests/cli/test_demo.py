"""The tour: it keeps its promises, and leaves nothing, whatever happens to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from volumehost.cli.kernel_view import loop_devices_below
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table

pytestmark = pytest.mark.root


@pytest.fixture
def temporary(volumehost, tmp_path: Path) -> Path:
    """Where the demo makes its directory: on a path with spaces."""
    directory = tmp_path / "temp dir"
    directory.mkdir()
    volumehost.environment["TMPDIR"] = str(directory)
    return directory


def left(temporary: Path) -> list[str]:
    mounts = [entry.path for entry in read_mount_table() if entry.path.startswith(f"{temporary}/")]
    return mounts + loop_devices_below(str(temporary)) + [str(path) for path in temporary.rglob("*")]


def test_the_tour_shows_mounts_data_and_limit_and_leaves_nothing(volumehost, temporary: Path) -> None:
    done = volumehost("demo")
    assert done.code == 0, done.err
    assert done.err == ""
    for words in (
        r"scratch +kubernetes.io/empty-dir +mounted",
        r"cache +kubernetes.io/empty-dir +mounted",
        r"site +kubernetes.io/host-path +mounted",
        r"config +kubernetes.io/host-path +mounted",
        r"fstype:   tmpfs\n +options:  \S*size=4096k\S*\n +size:     4M",
        r"source:   \S+\[.*/host/app.conf\]",
        r"ok  /scratch/hello is .*: hello from scratch",
        r"ok  /srv/site/hello is .*: hello from site",
        r"ok  /cache takes 4M and no more: No space left on device",
        r"ok  /etc/app.conf cannot be written: Read-only file system",
        r"ok  the mount table has nothing of it",
        r"ok  the root directory has nothing of the pod",
        r"data +Bound +\$VOLUME +320Mi",
        r"data +kubernetes.io/csi +mounted",
        r"data +Bound +\$VOLUME +512Mi",
        r"ok  it grew while it was mounted",
        r"ok  no loop device is left",
        r"ok  the driver's process has ended",
        r"All as promised",
    ):
        assert re.search(words, done.out), words
    assert left(temporary) == []
    assert not volumehost.root_dir.exists()


def test_the_tour_says_the_same_each_time(volumehost, temporary: Path) -> None:
    first, second = (re.sub(r"/dev/loop\d+", "/dev/loop", volumehost("demo").out).splitlines() for _ in range(2))
    assert first[0] != second[0]
    assert first[1:] == second[1:]


@pytest.mark.parametrize(
    "at", ["What the kernel says", "volumehost apply", "volumehost expand", "volumehost unmount da"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_tour_cleans_up(volumehost, temporary: Path, number: signal.Signals, at: str) -> None:
    process = volumehost.start("demo", bufsize=1)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(at):
                break
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in {0, 130}  # 0: it was done before the signal came
    assert "Traceback" not in err
    assert left(temporary) == []


def test_a_tour_whose_reader_goes_away_cleans_up(volumehost, temporary: Path) -> None:
    process = volumehost.start("demo")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert left(temporary) == []


def test_a_tour_without_the_plugins_says_what_to_install_and_cleans_up(volumehost, temporary: Path) -> None:
    done = volumehost("demo", environment={"VOLUMEHOST_PLUGINS": "none"})
    assert done.code == 1
    assert "no volume plugin matched" in done.err
    assert "pip install volumehost-emptydir volumehost-hostpath" in done.err
    assert left(temporary) == []


def test_a_tour_that_finds_a_promise_broken_says_so_and_cleans_up(
    volumehost, temporary: Path, site, plugin_source
) -> None:
    """A plugin that claims to mount and mounts nothing: the kernel's view gives it away."""
    source = plugin_source("kubernetes.io/empty-dir", can_support="return spec.source() == 'empty_dir'", top=LIAR)
    source = source.replace("raise NotImplementedError", "return Liar()", 1)
    site.install(
        "volumehost-emptydir", source, version="9.0", entry_points=["emptydir = volumehost_emptydir_liar:Plugin"]
    )
    (site.path / "volumehost_emptydir.py").rename(site.path / "volumehost_emptydir_liar.py")
    liar_dir = temporary.parent / "not a tmpfs"
    liar_dir.mkdir()
    done = volumehost("demo", environment={**site.environment, "LIAR_DIR": str(liar_dir)})
    assert done.code == 1
    assert "the cache has another type or size" in done.err
    assert left(temporary) == []


LIAR = """
import os
from volumehost import Attributes


class Liar:
    def set_up(self, args):
        pass

    def get_path(self):
        return os.environ["LIAR_DIR"]

    def get_attributes(self):
        return Attributes()
"""


def test_a_full_disk_is_told_and_nothing_is_left(volumehost, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounter = LinuxMounter()
    mounter.mount("tmpfs", str(small), "tmpfs", ["size=32k"])
    try:
        done = volumehost("demo", environment={"TMPDIR": str(small)})
        assert done.code == 1
        assert done.err.startswith("error: ")
        assert os.listdir(small) == []
    finally:
        mounter.unmount(str(small))


def test_make_demo_runs_the_installed_program() -> None:
    repository = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        ["make", "--dry-run", "demo"], cwd=repository, capture_output=True, text=True, timeout=60, check=True
    )
    assert "volumehost demo" in done.stdout
