"""A volume manager in a process of its own, for tests that kill it. Run as a program.

Usage: driver.py ROOT ACTION MANIFEST [OPERATION STEP [COUNT]]. ACTION is mount, unmount or hold. The process kills
itself before the COUNTth time (1 by default) that the named operation takes the named step. Prints "done" at the end.
"""

import json
import os
import signal
import sys

from volumehost import VolumeManager


class KillAt:
    """A StepObserver that ends the process as ``kill -9`` does."""

    def __init__(self, operation, step, count):
        self.operation, self.step, self.left = operation, step, count

    def __call__(self, operation, step, volume, pod_uid):
        if (operation, step) == (self.operation, self.step):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main():
    root, action, manifest, *kill = sys.argv[1:]
    observer = KillAt(kill[0], kill[1], int(kill[2]) if len(kill) > 2 else 1) if kill else None
    with open(manifest) as file:
        pod = json.load(file)
    with VolumeManager(root, observer=observer) as manager:
        if action in ("mount", "hold"):
            manager.mount_pod(pod, timeout=60)
        else:
            manager.unmount_pod(pod["metadata"]["name"], timeout=60)
        print("done", flush=True)
        if action == "hold":
            sys.stdin.read()


if __name__ == "__main__":
    main()
