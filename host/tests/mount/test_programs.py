"""Running programs with a deadline, and mount(8) with what it needs around it (MOUNT-02 to -08, -15)."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import MountError
from volumehost.mount.mount_program import (
    MASK,
    MountCommand,
    MountProgram,
    make_mount_args,
    mask_secrets,
    needs_program,
    split_bind_options,
)
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.programs import MissingProgramError, Programs


@pytest.fixture
def scripts(tmp_path: Path) -> Callable[[str, str], Programs]:
    """Puts a script in front of the PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()

    def add(name: str, body: str) -> Programs:
        script = directory / name
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        return Programs(f"{directory}:{os.environ['PATH']}")

    return add


def test_status_and_both_streams_come_back_apart(scripts) -> None:
    result = scripts("tool", "echo out; echo err >&2; exit 3").run(["tool"], timeout=30)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.output == "out\nerr"
    assert result.describe() == "exit status 3"
    assert scripts("tool", "kill -TERM $$").run(["tool"], timeout=30).describe() == "killed by signal 15"


def test_a_missing_program_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingProgramError, match="the program nonsense is not installed"):
        Programs().run(["nonsense"], timeout=30)
    assert Programs(str(tmp_path)).find("sh") is None


def test_a_program_that_cannot_be_started(scripts, tmp_path: Path) -> None:
    programs = scripts("tool", "")
    (tmp_path / "bin" / "tool").write_bytes(b"\x7fELF garbage")
    with pytest.raises(MountError, match="Exec format error"):
        programs.run(["tool"], timeout=30)


def test_at_the_deadline_the_whole_session_is_killed_mount15(scripts, tmp_path: Path, until: Callable) -> None:
    programs = scripts("tool", f"sleep 300 & echo $! > {tmp_path}/child; echo begun; wait")
    result = programs.run(["tool"], timeout=1.5)
    assert result.timed_out
    assert result.stdout == "begun\n"
    assert result.describe() == "it did not end in time and was killed"
    child = int((tmp_path / "child").read_text())
    until(lambda: not is_running(child), what="the end of the child")


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_daemon_that_keeps_the_streams_open_does_not_hold_up_the_end_mount15(scripts, tmp_path: Path) -> None:
    programs = scripts("tool", f"setsid sleep 300 & echo $! > {tmp_path}/daemon; echo done")
    result = programs.run(["tool"], timeout=60)
    assert (result.returncode, result.stdout, result.timed_out) == (0, "done\n", False)
    with subprocess.Popen(["true"]):
        os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)


def test_programs_speak_plain_english_and_read_nothing(scripts) -> None:
    assert scripts("tool", 'echo "$LC_ALL"; cat').run(["tool"], timeout=30).stdout == "C\n"


# --- arguments --------------------------------------------------------------------------------------------


def test_empty_parts_are_left_out_mount02() -> None:
    assert make_mount_args("", "/t", "", []) == ["--", "/t"]
    assert make_mount_args("s:/x", "/t", "nfs", ["ro", "a=b"], ["--verbose"]) == [
        "--verbose", "-t", "nfs", "-o", "ro,a=b", "--", "s:/x", "/t",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sensitive", "expected"),
    [
        (["ro"], [], (False, ["bind"], ["bind", "remount", "ro"], [])),
        (["bind"], [], (True, ["bind"], ["bind", "remount"], [])),
        (["bind", "ro"], [], (True, ["bind"], ["bind", "remount", "ro"], [])),
        (["remount", "bind", "ro"], [], (True, ["bind"], ["bind", "remount", "ro"], [])),
        (["bind", "_netdev"], [], (True, ["bind", "_netdev"], ["bind", "remount", "_netdev"], [])),
        (["ro"], ["bind", "pw=x"], (True, ["bind"], ["bind", "remount", "ro"], ["pw=x"])),
        (
            ["bind"],
            ["_netdev", "remount", "pw=x"],
            (True, ["bind", "_netdev"], ["bind", "remount", "_netdev"], ["pw=x"]),
        ),
        (["rbind"], [], (False, ["bind"], ["bind", "remount", "rbind"], [])),
    ],
)
def test_bind_options_are_split_mount07_mount11(options: list[str], sensitive: list[str], expected: object) -> None:
    assert split_bind_options(options, sensitive) == expected


@pytest.mark.parametrize(
    "fs_type", ["nfs", "nfs4", "cifs", "glusterfs", "ceph", "fuse", "fuse.sshfs", "", "auto", "zfs"]
)
def test_what_takes_a_program(fs_type: str) -> None:
    assert needs_program(fs_type, "source")


@pytest.mark.parametrize("fs_type", ["tmpfs", "ext4", "xfs", "hugetlbfs", "overlay", "proc"])
def test_what_the_kernel_mounts_by_itself(fs_type: str) -> None:
    assert not needs_program(fs_type, "source")


def test_tags_take_a_program() -> None:
    assert needs_program("squash", "UUID=1234")
    assert not needs_program("squash", "/dev/sda")


def test_secrets_and_their_values_are_masked() -> None:
    text = mask_secrets("bad option password=hunter2 and hunter2, not n", ["password=hunter2", "x=n"])
    assert text == f"bad option {MASK} and {MASK}, not n"


# --- mount(8) ---------------------------------------------------------------------------------------------


def record(scripts, tmp_path: Path, result: str = "exit 0") -> Programs:
    scripts("systemd-run", "exit 1")
    scripts("umount", f'echo "umount $*" >> {tmp_path}/calls')
    return scripts("mount", f'echo "mount $*" >> {tmp_path}/calls; {result}')


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_a_network_filesystem_is_one_command(scripts, tmp_path: Path) -> None:
    program = MountProgram(record(scripts, tmp_path))
    program.mount(MountCommand("s:/x", "/t", "nfs", ["ro"], ["pw=secret"]), 30)
    assert calls(tmp_path) == ["mount -t nfs -o ro,pw=secret -- s:/x /t"]


def test_a_bind_is_two_commands_mount08(scripts, tmp_path: Path) -> None:
    program = MountProgram(record(scripts, tmp_path))
    program.mount(MountCommand("/s", "/t", "", ["bind", "ro"], [], ["--no-canonicalize"]), 30)
    assert calls(tmp_path) == [
        "mount --no-canonicalize -o bind -- /s /t",
        "mount --no-canonicalize -o bind,remount,ro -- /s /t",
    ]


def test_a_failed_second_command_is_undone_mount10(scripts, tmp_path: Path) -> None:
    program = MountProgram(record(scripts, tmp_path, 'case "$*" in *remount*) exit 32;; esac'))
    with pytest.raises(MountError, match="exit status 32"):
        program.mount(MountCommand("/s", "/t", "", ["bind", "ro"], []), 30)
    assert calls(tmp_path)[-1] == "umount -- /t"


def test_a_failure_shows_the_command_masked_and_its_output_mount03_mount06(
    scripts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    program = MountProgram(record(scripts, tmp_path, 'echo "wrong: $*" >&2; exit 32'))
    with pytest.raises(MountError) as caught:
        program.mount(MountCommand("//s/x", "/t", "cifs", ["ro"], ["password=hunter2", "seal"]), 30)
    text = str(caught.value)
    assert "mount failed: exit status 32" in text
    assert "Mounting command: mount\nMounting arguments: -t cifs -o ro,<masked>,<masked> -- //s/x /t" in text
    assert "Output: wrong: -t cifs -o ro,<masked>,<masked> -- //s/x /t" in text
    assert "hunter2" not in text + caplog.text + repr(caught.value)


def test_a_command_does_not_show_secrets_in_its_repr() -> None:
    assert "hunter2" not in repr(MountCommand("s", "/t", "cifs", [], ["password=hunter2"]))


def test_systemd_keeps_helpers_in_a_scope_of_their_own_mount04(scripts, tmp_path: Path) -> None:
    record(scripts, tmp_path)
    body = (
        f'echo "systemd-run $*" >> {tmp_path}/calls\n'
        'while [ "$1" != -- ]; do [ $# = 0 ] && exit 0; shift; done; shift; exec "$@"'
    )
    program = MountProgram(scripts("systemd-run", body))
    program.mount(MountCommand("s:/x", "/t", "nfs", [], []), 30)
    probe, scope, mount = calls(tmp_path)
    assert probe.endswith("--scope true")
    assert scope == "systemd-run --description=Volume mount for /t --scope -- mount -t nfs -- s:/x /t"
    assert mount == "mount -t nfs -- s:/x /t"
    program.mount(MountCommand("s:/y", "/t", "nfs", [], [], systemd=False), 30)
    assert calls(tmp_path)[-1] == "mount -t nfs -- s:/y /t"
    assert sum("--scope true" in line for line in calls(tmp_path)) == 1, "found out once"


def test_an_alternative_mounter_serves_some_types_only_mount05(scripts, tmp_path: Path) -> None:
    record(scripts, tmp_path)
    programs = scripts("other", f'echo "other $*" >> {tmp_path}/calls')
    program = MountProgram(programs, mounter_path="other")
    program.mount(MountCommand("s:/x", "/t", "nfs", [], []), 30)
    program.mount(MountCommand("s", "/t", "fuse.x", [], []), 30)
    program.mount(MountCommand("/s", "/t", "nfs", ["bind"], []), 30)
    assert [line.split()[0] for line in calls(tmp_path)] == ["other", "mount", "mount", "mount"]
    assert calls(tmp_path)[0] == "other mount -t nfs -- s:/x /t"


@pytest.mark.root
def test_the_mounter_takes_the_program_where_one_is_needed(scripts, tmp_path: Path, area: Path) -> None:
    programs = record(scripts, tmp_path, f"/bin/mount -t tmpfs none {area}")
    mounter = LinuxMounter(programs=programs)
    mounter.mount("s:/x", str(area), "nfs", ["hard"])
    assert calls(tmp_path) == [f"mount -t nfs -o hard -- s:/x {area}"]
    assert mounter.is_mount_point(str(area))


@pytest.mark.root
def test_a_program_that_lies_about_its_success_is_not_believed_mount06(scripts, tmp_path: Path, area: Path) -> None:
    mounter = LinuxMounter(programs=record(scripts, tmp_path))
    with pytest.raises(MountError, match="reported success, but nothing is mounted"):
        mounter.mount("s:/x", str(area), "nfs")


@pytest.mark.root
def test_a_helper_that_hangs_is_killed_at_the_deadline(scripts, tmp_path: Path, area: Path) -> None:
    mounter = LinuxMounter(programs=record(scripts, tmp_path, "sleep 300"))
    with pytest.raises(MountError, match="it did not end in time and was killed"):
        mounter.mount("s:/x", str(area), "nfs", timeout=0.5)


@pytest.mark.root
def test_the_real_program_works_for_what_is_left_to_it(area: Path) -> None:
    mounter = LinuxMounter()
    mounter.mount("none", str(area), "tmpfs", ["ro"], mount_flags=["--verbose"])
    assert mounter.is_mount_point(str(area))
