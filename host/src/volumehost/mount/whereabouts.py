"""Where a thread of this process is, in one line: in which call of the kernel, in which program, in whose code.

For operations that do not come back, and only then asked: by the node's status and by the control plane. Nothing here
waits for anything.
"""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Final, NamedTuple

from volumehost.mount.deadline import helper_of

#: A local variable of this name, with a text, tells what the code below waits for ("NodeStageVolume of driver x").
MARK: Final = "__waits_for__"

#: System calls that can hang on a filesystem, a device, a server or a daemon, with their numbers. What waits for
#: another thread of this process (futex) or for a message (poll) says nothing by itself.
_CALLS: Final = {
    "x86_64": (
        "0:read 1:write 2:open 3:close 4:stat 5:fstat 6:lstat 8:lseek 16:ioctl 17:pread64 18:pwrite64 21:access "
        "42:connect 72:fcntl 73:flock 74:fsync 75:fdatasync 76:truncate 77:ftruncate 78:getdents 80:chdir "
        "82:rename 83:mkdir 84:rmdir 86:link 87:unlink 88:symlink 89:readlink 90:chmod 92:chown 137:statfs "
        "138:fstatfs 162:sync 165:mount 166:umount2 191:getxattr 217:getdents64 257:openat 258:mkdirat "
        "260:fchownat 262:newfstatat 263:unlinkat 264:renameat 266:symlinkat 267:readlinkat 268:fchmodat "
        "269:faccessat 306:syncfs 316:renameat2 332:statx 428:open_tree 429:move_mount 430:fsopen 431:fsconfig "
        "432:fsmount 437:openat2 439:faccessat2 442:mount_setattr 457:statmount"
    ),
    "aarch64": (
        "8:getxattr 25:fcntl 29:ioctl 32:flock 34:mkdirat 35:unlinkat 36:symlinkat 37:linkat 38:renameat "
        "39:umount2 40:mount 43:statfs 44:fstatfs 45:truncate 46:ftruncate 48:faccessat 49:chdir 53:fchmodat "
        "54:fchownat 56:openat 57:close 61:getdents64 62:lseek 63:read 64:write 67:pread64 68:pwrite64 "
        "78:readlinkat 79:newfstatat 80:fstat 81:sync 82:fsync 83:fdatasync 203:connect 267:syncfs 276:renameat2 "
        "291:statx 428:open_tree 429:move_mount 430:fsopen 431:fsconfig 432:fsmount 437:openat2 439:faccessat2 "
        "442:mount_setattr 457:statmount"
    ),
}

#: Packages whose frames say less than those of who called them; their parts below the dot likewise.
_PASSED_OVER: Final = frozenset({"grpc", "pluggy", "volumehost"})
_LONGEST_MARK: Final = 200


class _Found(NamedTuple):
    """What the frames of a thread tell; ``thread`` is the kernel's number of who does the call."""

    thread: int
    waits_for: str
    program: int
    code: str


def _frame_of(thread: threading.Thread) -> FrameType | None:
    """Where the thread is, without the garbage collector.

    Some Pythons (3.11.7 is one) let it run while they hold the lock of their list of threads; what it calls may let
    another thread run, and when that one starts or ends a thread both wait for ever.
    """
    with _looking:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - the documented way to look at another
        finally:
            if collects:
                gc.enable()


#: One at a time, so that nobody takes the other's pause for the way it was.
_looking = threading.Lock()


def whereabouts(thread: threading.Thread) -> str:
    """Where the thread is now: ``in umount2() of the kernel (D, request_wait_answer), called by acme/nfs.py:88 undo``.

    "" for a thread that has ended, or that is nowhere in particular.
    """
    frame = _frame_of(thread)
    if frame is None:
        return ""
    try:
        found = _read(frame, thread.native_id or 0)
    finally:
        del frame
    places = [found.waits_for, _program(found.program) if found.program else _kernel(found.thread)]
    place = ": ".join(part for part in places if part)
    if place and found.code:
        return f"in {place}, called by {found.code}"
    return f"in {place or found.code}" if place or found.code else ""


def _read(frame: FrameType, thread: int) -> _Found:
    waits_for, program, foreign, own = "", 0, "", ""
    for each in _outwards(frame):
        helper = helper_of(each)
        if helper is not None:
            thread = helper.native_id or thread
        elif not program and each.f_code is _popen_wait():
            program = getattr(each.f_locals.get("self"), "pid", 0) or 0
        if not waits_for and MARK in each.f_code.co_varnames:
            mark = each.f_locals.get(MARK)
            waits_for = " ".join(mark.split())[:_LONGEST_MARK] if isinstance(mark, str) else ""
        if not foreign and not _is_of_python(each):
            if str(each.f_globals.get("__name__", "")).partition(".")[0] in _PASSED_OVER:
                own = own or _named(each)
            else:
                foreign = _named(each)
    return _Found(thread, waits_for, program, foreign or own)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _popen_wait() -> CodeType | None:
    """The code that waits for a program, where such a module was loaded at all."""
    subprocess = sys.modules.get("subprocess")
    return subprocess.Popen.wait.__code__ if subprocess is not None else None


def _is_of_python(frame: FrameType) -> bool:
    """Whether the code comes with Python itself."""
    file = frame.f_code.co_filename
    if file.startswith("<"):
        return True
    library = sysconfig.get_path("stdlib")
    return file.startswith(f"{library}/") and not file.startswith((f"{library}/site-packages", f"{library}/dist-pack"))


def _named(frame: FrameType) -> str:
    module = str(frame.f_globals.get("__name__", "")).replace(".", "/")
    file = os.path.basename(frame.f_code.co_filename)
    place = f"{module}/{file}" if file == "__init__.py" else f"{module}.py"
    return f"{place}:{frame.f_lineno} {frame.f_code.co_name}"


# --- what the kernel tells --------------------------------------------------------------------------------------------


def _kernel(thread: int) -> str:
    """``umount2() of the kernel (D, request_wait_answer)``; "" for a thread that is not in a call that can hang."""
    directory = f"/proc/self/task/{thread}"
    number = _text(f"{directory}/syscall").partition(" ")[0]
    calls = (each.partition(":") for each in _CALLS.get(os.uname().machine, "").split())
    name = next((name for known, _, name in calls if known == number), "")
    return f"{name}() of the kernel ({_state(directory)})" if name else ""


def _program(process: int) -> str:
    """``the program mount.nfs (process 4711, D, rpc_wait_bit_killable)``."""
    directory = f"/proc/{process}"
    name = _text(f"{directory}/comm").strip()
    return f"the program {name or '?'} (process {process}, {_state(directory)})" if name else ""


def _state(directory: str) -> str:
    """Its state letter, and the kernel's function in which it waits where that may be seen."""
    letter = _text(f"{directory}/stat").rpartition(")")[2].split(maxsplit=1)[:1]
    function = _text(f"{directory}/wchan").strip()
    if function in {"", "0"}:
        function = _text(f"{directory}/stack").partition("\n")[0].partition("] ")[2].partition("+")[0]
    return ", ".join(part for part in (*letter, function) if part)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
