"""Who keeps a volume from being unmounted, for explanations: processes, mounts on top, loop devices."""

from __future__ import annotations

import os

from volumehost.mount.busy import find_holders, find_other_reasons
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner

#: How long is looked, in seconds: a mount that hangs must not hold up who asks.
LOOK_SECONDS = 3.0


def busy_words(path: str, runner: DeadlineRunner) -> tuple[list[str], list[str]]:
    """Sentences about what uses the mount, and what to do; both empty when nothing is found.

    :param path: where it is mounted, as the mount table has it.
    """
    if not path:
        return [], []
    try:
        holders = runner.run(find_holders, path, timeout=LOOK_SECONDS, what=f"who uses {path}")
        others = runner.run(find_other_reasons, path, timeout=LOOK_SECONDS, what=f"what keeps {path}")
    except (DeadlineExceededError, OSError):
        return [], []
    # Whoever asks may stand in the mount too, and will have left by the next attempt.
    holders = [holder for holder in holders if holder.pid != os.getpid()]
    words = [f"{holder}, which uses the mount" for holder in holders] + list(others)
    advice = []
    if holders:
        pids = " ".join(str(holder.pid) for holder in holders)
        advice.append(f"end what uses it (process {pids}) or have it leave; it is unmounted at the next attempt")
    return words, advice
