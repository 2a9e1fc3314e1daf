"""``python -m storm [STORM ...]``: let all storms rage, or those named, and print what came of them.

Exit code 1 when a promise was broken: the seed and the evidence are told.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable

from storm import corrupt, drivers, full_disk, kill, reboot, scale
from storm.crew import Options, end_in_good_order
from storm.report import Findings
from volumehost.testing.namespaces import enter_private_mount_namespace, why_not_private

#: Each with the minutes that it may take.
STORMS: dict[str, tuple[Callable[[Options], Findings], float]] = {
    "kill": (kill.run, 7.5),
    "drivers": (drivers.run, 3.0),
    "reboot": (reboot.run, 0.5),
    "scale": (scale.run, 1.5),
    "full-disk": (full_disk.run, 3.0),
    "corrupt": (corrupt.run, 4.5),
}


def main(arguments: list[str]) -> int:
    """Print the tables; 1 when a promise was broken, 2 for a wrong use."""
    parser = argparse.ArgumentParser(prog="storm", description="Prove that the node survives. Needs root.")
    parser.add_argument("storms", nargs="*", metavar="STORM", help=f"of {', '.join(STORMS)}; all by default")
    parser.add_argument("--seed", type=int, default=None, help="of what happens by chance; another one each time")
    parser.add_argument("--rounds", type=int, default=None, help="so many kills, lives and so on, instead of all")
    parser.add_argument("--minutes", type=float, default=None, help="at most so many for each storm")
    parser.add_argument("--evidence", default="/tmp/volumehost-storm", help="where to keep what tells of failures")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.storms if name not in STORMS]
    reason = why_not_private()
    if unknown or reason:
        parser.error(reason or f"unknown: {', '.join(unknown)}; there are: {', '.join(STORMS)}")
    enter_private_mount_namespace()
    end_in_good_order()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is cached, as where it is installed
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 1 << 30)
    began, broken = time.monotonic(), False
    for name, (run, minutes) in STORMS.items():
        if not given.storms or name in given.storms:
            findings = run(Options(seed, given.rounds, given.minutes or minutes, given.evidence))
            print(findings.text(), flush=True)
            broken = broken or bool(findings.broken)
    print(f"seed {seed}, {(time.monotonic() - began) / 60:.1f} minutes, {'BROKEN' if broken else 'all promises kept'}")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
