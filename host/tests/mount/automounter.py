"""A directory that mounts something when it is entered, as autofs does it: the kernel asks this process, which mounts.

Run as a program: ``automounter.py DIRECTORY``; says "ready", mounts a tmpfs with a file on the first question, ends.
"""

import fcntl
import os
import struct
import sys

from volumehost.mount import syscalls

#: protocol version, kind of question, token, and what this daemon does not ask about
PACKET = struct.Struct("iiI")
READY = 0x9360  # ioctl: the question with this token is answered


def main() -> None:
    directory = sys.argv[1]
    os.setpgid(0, 0)  # what this process group looks up does not mount
    questions, kernel = os.pipe()
    options = f"fd={kernel},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    syscalls.mount("automounter", directory, "autofs", 0, options)
    control = os.open(directory, os.O_RDONLY)
    os.close(kernel)
    print("ready", flush=True)
    _, _, token = PACKET.unpack_from(os.read(questions, 4096))
    syscalls.mount("tmpfs", directory, "tmpfs", 0, "size=64k")
    with open(f"{directory}/inside", "w") as file:
        file.write("mounted")
    fcntl.ioctl(control, READY, token)
    print("mounted", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
