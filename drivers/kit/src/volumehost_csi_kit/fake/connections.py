"""How many connections bring calls, as the kernel knows them: a grpc server does not tell one from another."""

from __future__ import annotations

import os
import threading

_CONNECTED = "03"


class Connections:
    """Counts the connections that have ever been open to the listening socket that was bound at ``path``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        self._names: tuple[str, ...] = ()

    def watch(self, bound_path: str) -> None:
        """Count those of this socket; connections of earlier ones stay counted."""
        with self._lock:
            self._names = (*self._names, os.path.basename(bound_path))

    def count(self) -> int:
        """Look again, and say how many there have been. A call that is being answered has its connection open."""
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as table:
            # Num RefCount Protocol Flags Type St Inode Path
            rows = [row for line in table if (row := line.split(None, 7)) and len(row) == 8]
        found = {
            row[6] for row in rows if row[5] == _CONNECTED and os.path.basename(row[7].rstrip("\n")) in self._names
        }
        with self._lock:
            self._seen |= found
            return len(self._seen)
