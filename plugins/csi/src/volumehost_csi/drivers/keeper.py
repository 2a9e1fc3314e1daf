"""The keeper of one driver process: a program of its own, ``python -I -S keeper.py JOB``; imports only the stdlib.

It stands between host and driver so that neither end of a process leaks the other, whoever is killed and when:

- it writes down which process the driver is before the driver's program begins;
- it ends the driver when no host needs it any more, also when the last one was killed (a lock that all hosts share);
- the driver dies with it, unless mounts need the driver alive;
- it keeps the log within bounds, and tells how the driver ended when no host was there to see it.

Hosts end a driver by SIGTERM to its keeper. Standard output and error are the log; standard input is a pipe into which
a byte goes once the driver is written down.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from typing import Any

#: Seconds between two looks at the users' lock and at the size of the log.
TICK = 1.0

#: Begins the line of the log that a driver's start leaves; the instance and the time follow.
LOG_MARK = "=== started "

_PR_SET_PDEATHSIG = 1
_WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main() -> None:
    """Run one driver to its end."""
    job = json.loads(sys.argv[1])
    with contextlib.suppress(OSError):
        os.setsid()
    os.closerange(3, 1 << 16)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    users = os.open(job["users_lock"], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if nobody_holds(users):
        return  # the host that wanted the driver has ended
    rotate_log(job["log"], job["log_bytes"], job["log_parts"])
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    os.write(1, f"{LOG_MARK}{job['instance']} {moment}\n".encode())
    pid = _start(job)
    ended_by = _watch(job, pid, users)
    # The driver is a zombie still, so that its number names its group and no other: what is left of the group goes.
    _signal_group(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    ending = {"instance": job["instance"], "status": code, "time": time.time(), "ended_by": ended_by}
    with contextlib.suppress(OSError):
        replace(job["exit_file"], json.dumps(ending).encode())


def nobody_holds(descriptor: int) -> bool:
    """Whether nobody holds that lock; if so, this process holds it exclusively from now on."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def rotate_log(path: str, limit: int, parts: int) -> None:
    """Move what the log holds to ``<path>.1`` when it has reached ``limit`` bytes; keep at most ``parts`` old ones.

    The driver goes on writing to the same file (it appends), which is why it is copied and emptied.
    """
    try:
        if os.stat(path, follow_symlinks=False).st_size < limit:
            return
        for number in range(parts - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{path}.{number}", f"{path}.{number + 1}")
        with open(path, "rb+", buffering=0) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - limit))
            with open(f"{path}.1", "wb", opener=_private) as old:
                old.write(log.read(limit + (1 << 16)))
            log.truncate(0)
    except OSError:
        return  # a full disk, say: the next tick tries again


def replace(path: str, data: bytes) -> None:
    """Write a file so that a crash leaves the old content or the new one. (The host's own is not importable here.)"""
    temporary = f"{path}.new"
    try:
        with open(temporary, "wb", opener=_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except OSError:  # the disk is full, say
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def start_time(pid: int) -> int:
    """When the process began, in clock ticks since the boot."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def _start(job: dict[str, Any]) -> int:
    """Fork the driver, write down which process it is, and only then let it begin."""
    import ctypes  # before the fork: the child only calls

    libc = ctypes.CDLL(None, use_errno=True)
    keeper = os.getpid()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(write_end)
            _become_driver(job, read_end, keeper, libc)
        finally:
            os._exit(127)
    os.close(read_end)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    record = {
        **job["record"],
        "instance": job["instance"],
        "boot_id": boot,
        "keeper_pid": keeper,
        "keeper_start_time": start_time(keeper),
        "pid": pid,
        "start_time": start_time(pid),
        "started_at": time.time(),
    }
    try:
        replace(job["process_file"], json.dumps(record).encode())
    except OSError:
        os.kill(pid, signal.SIGKILL)
        raise
    os.write(write_end, b"g")
    os.close(write_end)
    with contextlib.suppress(BrokenPipeError):  # the host has ended meanwhile: the next tick sees it
        os.write(0, b"g")
    os.dup2(2, 0)
    return pid


def _become_driver(job: dict[str, Any], go: int, keeper: int, libc: Any) -> None:
    os.setsid()
    if not job["keep_alive"]:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != keeper or os.read(go, 1) != b"g":
        return  # the keeper is gone: what nobody has written down must not run
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.chdir(job["directory"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    try:
        os.execve(job["program"][0], job["program"], os.environ)  # noqa: S606 - there is no shell
    except OSError as error:
        os.write(2, f"cannot run {job['program'][0]}: {error}\n".encode())


def _watch(job: dict[str, Any], pid: int, users: int) -> str:
    """Until the driver has ended; tells who ended it: "stopped", "unused", "" when it did so itself."""
    ended_by, kill_at = "", 0.0
    while not _has_ended(pid):
        if kill_at and time.monotonic() >= kill_at:
            _signal_group(pid, signal.SIGKILL)
            kill_at = time.monotonic() + TICK
        pause = min(TICK, max(0.0, kill_at - time.monotonic())) if kill_at else TICK
        received = signal.sigtimedwait(_WATCHED, pause)
        rotate_log(job["log"], job["log_bytes"], job["log_parts"])
        if ended_by:
            continue
        if received is not None and received.si_signo in {signal.SIGTERM, signal.SIGINT}:
            ended_by = "stopped"
        elif not job["keep_alive"] and nobody_holds(users):
            ended_by = "unused"
        if ended_by and not _has_ended(pid):
            _signal_group(pid, signal.SIGTERM)
            kill_at = time.monotonic() + job["grace"]
    return ended_by


def _has_ended(pid: int) -> bool:
    """Whether the driver is a zombie: it stays one until its group was ended too."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the driver's group, or the driver itself while it has none of its own yet."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, number)
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


if __name__ == "__main__":
    main()
