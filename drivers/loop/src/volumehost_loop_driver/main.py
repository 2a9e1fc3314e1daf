"""The loop driver's program."""

from __future__ import annotations


def main() -> int:
    """Serve until told to stop."""
    return 0
