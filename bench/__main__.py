"""``python -m bench [ROOM ...]``: measure every room, or those named, and print the tables."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench import csi, csi_node, isolation, kubernetes, loading, loop, memory, mounting, node, restart, scale, starting
from bench.measuring import Figure
from bench.report import table
from volumehost.testing.namespaces import enter_private_mount_namespace, why_not_private

ROOMS: dict[str, tuple[str, Callable[[], list[Figure]], bool]] = {
    "lookup": ("Plugin look-up", loading.lookup, False),
    "probe": ("Probe with nothing changed", loading.probe, False),
    "discovery": ("First discovery in a fresh process", loading.discovery, False),
    "start": ("Start-up, whole process", starting.figures, False),
    "mount": ("Mount room", mounting.figures, True),
    "node": ("Volume manager", node.figures, True),
    "restart": ("Restart", restart.figures, True),
    "scale": ("Many pods", scale.figures, True),
    "csi": ("CSI", csi.figures, True),
    "csi-node": ("CSI volumes through the volume manager", csi_node.figures, True),
    "isolation": ("One hung driver among ten", isolation.figures, True),
    "kubernetes": ("On an API server", lambda: list(kubernetes.figures()), True),
    "memory": ("Memory", memory.figures, True),
    "loop": ("Loop driver", loop.figures, True),
}


def main(names: list[str]) -> int:
    """Print the tables; 2 for an unknown name, 0 otherwise, also when a bound is missed: figures are for reading."""
    unknown = [name for name in names if name not in ROOMS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are: {', '.join(ROOMS)}", file=sys.stderr)
        return 2
    reason = why_not_private()
    if not reason:
        enter_private_mount_namespace()
    for name, (title, measure, mounts) in ROOMS.items():
        if names and name not in names:
            continue
        if mounts and reason:
            print(f"{title}: skipped, {reason}\n")
            continue
        print(table(title, measure()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
