"""Plugin names as directory names: ``kubernetes.io/empty-dir`` and ``kubernetes.io~empty-dir`` (LAYOUT-05)."""

from __future__ import annotations


def escape_qualified_name(name: str) -> str:
    """The name as one path component: every ``/`` becomes ``~``.

    Reversible because a valid plugin name has no ``~`` (MGR-NAME-03).
    """
    return name.replace("/", "~")


def unescape_qualified_name(name: str) -> str:
    """The reverse of :func:`escape_qualified_name`, for names read from a directory."""
    return name.replace("~", "/")
