"""What an API server warns of in the headers of its answers: old versions, fields that it does not know, policies.

Logged by ``caller``, as kubectl prints it.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable

logger = logging.getLogger(__name__)

#: 299 is the one code that Kubernetes uses.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_LONGEST = 500
#: So many different ones are told, once each: daemons ask for the same things for months.
_MOST = 100


class ServerWarnings:
    """Warnings of one server. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def note(self, headers: Iterable[str], action: str) -> None:
        """Log those of an answer that are new; ``action`` says what was asked."""
        for text in (found for header in headers for found in _WARNING.findall(header)):
            plain = "".join(char if char.isprintable() else " " for char in re.sub(r"\\(.)", r"\1", text))[:_LONGEST]
            with self._lock:
                new = plain not in self._told and len(self._told) < _MOST
                if new:
                    self._told.add(plain)
            if new:
                logger.warning("%s: the API server warns: %s", action, plain)
