"""A FUSE filesystem with an empty root directory, for tests that kill or stop its daemon. Run as a program.

Usage: fuse_daemon.py MOUNT_POINT [BLOCK_DEVICE]. Writes "ready" and a newline to stdout once it is mounted. With a
block device it is of the kind whose unmount waits for the daemon's farewell.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
import time

IN_HEADER = struct.Struct("<IIQQIIII")
OUT_HEADER = struct.Struct("<IiQ")
LOOKUP, FORGET, GETATTR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS = 1, 2, 3, 17, 26, 27, 28, 29, 34
INTERRUPT, DESTROY, BATCH_FORGET = 36, 38, 42
SILENT = {FORGET, INTERRUPT, BATCH_FORGET}


def attributes():
    now = int(time.time())
    # inode, size, blocks, times, their nanoseconds, mode, links, uid, gid, rdev, block size, flags
    return struct.pack("<QQQQQQIIIIIIIIII", 1, 0, 0, now, now, now, 0, 0, 0, stat.S_IFDIR | 0o755, 2, 0, 0, 0, 4096, 0)


def answer(opcode, body):
    if opcode == INIT:
        _, minor = struct.unpack_from("<II", body)
        return struct.pack("<IIIIHHIIHH28x", 7, min(minor, 31), 65536, 0, 0, 0, 65536, 1, 0, 0)
    if opcode == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes()  # valid for no time: every question comes here
    if opcode == OPENDIR:
        return struct.pack("<QII", 1, 0, 0)
    if opcode == STATFS:
        return struct.pack("<QQQQQIIII24x", 1000, 900, 900, 100, 90, 4096, 255, 4096, 0)
    if opcode in {READDIR, RELEASEDIR, ACCESS, DESTROY}:
        return b""
    return -errno.ENOENT if opcode == LOOKUP else -errno.ENOSYS


def main(mount_point, device=None):
    fd = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fd},rootmode={stat.S_IFDIR | 0o755:o},user_id=0,group_id=0,allow_other"
    source, kind = (device.encode(), b"fuseblk") if device else (b"test", b"fuse.test")
    if libc.mount(source, mount_point.encode(), kind, 0, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("ready", flush=True)
    while True:
        try:
            request = os.read(fd, 1 << 20)
        except OSError as error:
            if error.errno in {errno.EINTR, errno.EAGAIN, errno.ENOENT}:
                continue
            return  # ENODEV: unmounted
        _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
        if opcode in SILENT:
            continue
        result = answer(opcode, request[IN_HEADER.size :])
        code, payload = (result, b"") if isinstance(result, int) else (0, result)
        os.write(fd, OUT_HEADER.pack(OUT_HEADER.size + len(payload), code, unique) + payload)


if __name__ == "__main__":
    main(*sys.argv[1:])
