"""Makes this process believe that it runs on an old kernel: the newer system calls answer "not implemented".

Run as a program: ``old_kernel.py COMMAND...`` starts the command with the filter installed, which it inherits.
"""

import ctypes
import os
import struct
import sys

#: open_tree, move_mount, fsopen, fsconfig, openat2, mount_setattr, statmount: the same on every architecture.
NEW_CALLS = (428, 429, 430, 431, 437, 442, 457)
ENOSYS = 38


def forget_new_system_calls():
    load, jump_if_equal, give_back = 0x20, 0x15, 0x06
    code = [struct.pack("HBBI", load, 0, 0, 0)]
    for position, number in enumerate(NEW_CALLS):
        code.append(struct.pack("HBBI", jump_if_equal, len(NEW_CALLS) - position, 0, number))
    code.append(struct.pack("HBBI", give_back, 0, 0, 0x7FFF0000))
    code.append(struct.pack("HBBI", give_back, 0, 0, 0x50000 | ENOSYS))
    buffer = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    forget_new_system_calls()
    os.execv(sys.argv[1], sys.argv[1:])
