"""What is missing is said precisely, before anything is done."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.errors import MissingPrivilegeError
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.privileges import check_mount_privileges, explain_refusal, has_capability, in_user_namespace

CHECK = (
    "from volumehost.mount.privileges import check_mount_privileges\n"
    "from volumehost.errors import MissingPrivilegeError\n"
    "import sys\n"
    "try: check_mount_privileges(private_namespace=True)\n"
    "except MissingPrivilegeError as error: print(error)\n"
    "else: print('fine')\n"
)


def check_in_a_process(*wrapper: str, prepare: str = "") -> str:
    run = subprocess.run(
        [*wrapper, sys.executable, "-c", prepare + CHECK], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.root
def test_root_may_mount_and_nothing_is_changed_by_the_question() -> None:
    before = read_mount_table()
    check_mount_privileges()
    check_mount_privileges(private_namespace=True)
    assert read_mount_table() == before


@pytest.mark.root
def test_another_user_lacks_the_capability() -> None:
    # The first check loads what the user could not read, where Python lies in a home directory.
    answer = check_in_a_process(prepare=f"import os\n{CHECK}os.setuid(12345)\n").removeprefix("fine\n")
    assert "the process runs as user 12345 without the capability CAP_SYS_ADMIN" in answer
    assert answer.endswith("(run it as root)")


@pytest.mark.root
def test_root_without_the_capability_as_in_a_container() -> None:
    drop = (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "header = (ctypes.c_uint32 * 2)(0x20080522, 0)\ndata = (ctypes.c_uint32 * 6)()\n"
        "libc.capget(header, data)\n"
        "data[0] &= ~(1 << 21)\ndata[1] &= ~(1 << 21)\n"
        "assert libc.capset(header, data) == 0\n"
    )
    answer = check_in_a_process(prepare=drop)
    assert "runs as root without the capability CAP_SYS_ADMIN" in answer
    assert "--cap-add SYS_ADMIN" in answer


@pytest.mark.root
def test_a_user_namespace_that_does_not_own_the_mounts() -> None:
    answer = check_in_a_process("unshare", "--user", "--map-root-user")
    assert "inside this user namespace, which does not own the mount namespace" in answer
    assert "unshare --user --map-root-user --mount" in answer


@pytest.mark.root
def test_a_user_namespace_with_mounts_of_its_own_is_fine() -> None:
    assert check_in_a_process("unshare", "--user", "--map-root-user", "--mount") == "fine"


@pytest.mark.root
def test_a_seccomp_filter_is_named() -> None:
    """A filter that answers EPERM to mount(2) on this architecture."""
    numbers = {"x86_64": (0xC000003E, 165), "aarch64": (0xC00000B7, 40)}
    if os.uname().machine not in numbers:
        pytest.skip("the filter is written for x86_64 and aarch64")
    _, number = numbers[os.uname().machine]
    install = (
        "import ctypes, struct\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"code = struct.pack('HBBI', 0x20, 0, 0, 0) + struct.pack('HBBI', 0x15, 0, 1, {number})"
        " + struct.pack('HBBI', 0x6, 0, 0, 0x50001) + struct.pack('HBBI', 0x6, 0, 0, 0x7fff0000)\n"
        "buffer = ctypes.create_string_buffer(code)\n"
        "program = struct.pack('HxxxxxxQ', 4, ctypes.addressof(buffer))\n"
        "assert libc.prctl(38, 1, 0, 0, 0) == 0\n"
        "assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0, ctypes.get_errno()\n"
    )
    answer = check_in_a_process(prepare=install)
    assert "a seccomp filter refuses mount(2): Operation not permitted" in answer


def test_no_proc_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingPrivilegeError, match="cannot be read: No such file"):
        check_mount_privileges(proc=str(tmp_path))


def test_capabilities_are_read_from_the_effective_set() -> None:
    status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000200000\nSeccomp:\t0\n"
    assert has_capability(status, 21)
    assert not has_capability(status, 0)
    assert not has_capability("", 21)


def test_user_namespaces_are_told_from_the_first_one() -> None:
    assert not in_user_namespace("         0          0 4294967295\n")
    assert in_user_namespace("         0       1000          1\n")
    assert in_user_namespace("")


@pytest.mark.parametrize(
    ("number", "status", "confined", "text"),
    [
        (errno.EACCES, "Seccomp:\t2", False, "a security module"),
        (errno.EPERM, "Seccomp:\t2", False, "a seccomp filter"),
        (errno.EPERM, "Seccomp:\t0", True, "user namespace"),
        (errno.ENOSYS, "Seccomp:\t0", False, "the kernel refuses mount"),
    ],
)
def test_refusals_are_explained(number: int, status: str, confined: bool, text: str) -> None:
    reason, _ = explain_refusal(number, "mount(2)", status, confined)
    assert text in reason
    assert os.strerror(number) in reason
