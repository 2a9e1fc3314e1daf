"""Containers of crun and sandboxes of bwrap read and write the volumes that ``volumehost export`` gave them."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import replace

import pytest

from volumehost import VolumeManager
from volumehost.api.objects import Pod
from volumehost.errors import ContainerRuntimeError
from volumehost.runtimes.bwrap import bwrap_arguments

pytestmark = pytest.mark.root


@pytest.fixture(params=["crun", "bwrap"])
def run(request):
    """A container of each runtime in turn."""
    return request.getfixturevalue(request.param)


def test_data_of_every_kind_of_volume_goes_in_and_comes_out(run, world):
    (world.path("scratch") / "note").write_text("from the host")
    (world.path("files") / "note").write_text("on the disk")
    ran = run(
        "app",
        """
        set -e
        cat /data/file; cat '/one file'
        cat /data/scratch/note; echo; cat /files/note; echo
        echo inside > /data/scratch/out; echo inside > /data/out; echo inside > /files/out; echo inside > /data/part/out
        """,
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "of the host\nof the host\nfrom the host\non the disk\n"
    scratch = world.path("scratch")
    for written in (scratch / "out", world.host / "out", world.path("files") / "out", scratch / "logs/web/out"):
        assert written.read_text() == "inside\n", written
        written.unlink()


def test_mounts_lie_in_one_another_in_the_right_order(run):
    """/data is given after /data/scratch and /data/part in the manifest, and must not hide them."""
    ran = run("app", "grep -c ' /data/scratch ' /proc/self/mountinfo; stat -f -c %T /data/scratch /data")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[:2] == ["1", "tmpfs"]
    assert ran.out.splitlines()[2] != "tmpfs"


def test_sockets_and_paths_of_odd_characters_arrive(run):
    ran = run("app", """stat -c '%F' '/pa,th/so"cket' '/one file'""")
    assert ran.out == "socket\nregular file\n", ran.err


@pytest.mark.parametrize("path", ["/one file", "/tree/new", "/whole tree/new", "/whole tree/below/new"])
def test_what_is_read_only_cannot_be_written(run, path):
    ran = run("app", f"echo x > '{path}'")
    assert ran.code != 0
    assert "Read-only file system" in ran.err


def test_a_container_that_may_only_read_reads(run, world):
    (world.path("files") / "note").write_text("on the disk")
    ran = run("reader", "cat /files/note; echo x > /files/new")
    assert ran.out == "on the disk"
    assert "Read-only file system" in ran.err


def test_read_only_without_recursion_leaves_what_is_mounted_below(crun):
    """As in Kubernetes; bwrap knows no other than the recursive one."""
    ran = crun("app", "echo x > /tree/below/new && rm /tree/below/new && echo done")
    assert ran.out == "done\n", ran.err


def test_a_raw_block_device_is_read_and_written(run, world):
    ran = run("app", "printf 'in a container' | dd of=/dev/xvda conv=fsync,notrunc status=none && stat -c %F /dev/xvda")
    assert ran.out == "block special file\n", ran.err
    device = os.path.realpath(world.path("disk"))
    assert stat.S_ISBLK(os.stat(device).st_mode)
    with open(device, "rb") as file:
        assert file.read(14) == b"in a container"


READS, WRITES = "head -c4 /dev/xvda | wc -c", "printf x | dd of=/dev/xvda conv=notrunc status=none && echo written"


def test_the_device_can_be_opened_because_a_rule_says_so(merged, run_config):
    config = merged("app", READS)
    assert run_config(config).out == "4\n"
    assert config["linux"]["resources"]["devices"].pop()["access"] == "rwm"
    refused = run_config(config)
    assert "Operation not permitted" in refused.err, refused


def test_a_device_that_may_only_be_read_cannot_be_written(world, run_config, merge):
    with VolumeManager(world.root_dir) as manager:
        app = manager.container_mounts(manager.api.get(Pod, "web", "default"))[0]
    app = replace(app, devices=tuple(replace(device, read_only=True) for device in app.devices))
    assert run_config(merge(app, READS)).out == "4\n"
    refused = run_config(merge(app, WRITES))
    assert (refused.out, "Operation not permitted" in refused.err) == ("", True)
    with pytest.raises(ContainerRuntimeError, match="cannot keep a sandbox from writing"):
        bwrap_arguments(app)
    device = app.devices[0].host_path
    subprocess.run(["blockdev", "--setro", device], check=True)
    try:
        assert bwrap_arguments(app)[-3:] == ["--dev-bind", device, "/dev/xvda"]
    finally:
        subprocess.run(["blockdev", "--setrw", device], check=True)


def test_vm13_processes_have_the_groups_of_the_volumes(crun):
    assert crun("app", "grep Groups /proc/self/status").out.split() == ["Groups:", "4242"]


def test_a_container_that_starts_again_finds_what_it_wrote_in_its_subpath(run):
    for number in ("1", "12"):
        ran = run("app", f"printf {number[-1]} >> /data/part/counter; cat /data/part/counter", again=True)
        assert ran.out == number, ran.err
    assert run("app", "rm /data/part/counter").code == 0
