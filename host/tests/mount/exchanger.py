"""Plays the workload that attacks: exchanges two names in a tight loop, each time in one step.

Run as a program: ``exchanger.py ONE OTHER``. Says "ready" after the first exchange, and ends with its parent.
"""

import ctypes
import os
import sys

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def main() -> None:
    one, other = (os.fsencode(path) for path in sys.argv[1:3])
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    parent = os.getppid()
    told = False
    while os.getppid() == parent:
        for _ in range(100):
            if rename(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) != 0:
                sys.exit(os.strerror(ctypes.get_errno()))
        if not told:
            print("ready", flush=True)
            told = True


if __name__ == "__main__":
    main()
