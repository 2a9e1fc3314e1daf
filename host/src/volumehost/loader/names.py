"""The rule for plugin names (MGR-NAME-01 to -08), checked when a plugin loads."""

from __future__ import annotations

#: The namespace that only distributions listed by the trust policy may use.
RESERVED_PREFIX = "kubernetes.io"

_PREFIX_MAX = 253
_NAME_MAX = 63
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_EITHER = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def plugin_name_faults(name: str) -> list[str]:
    """Everything that is wrong with a plugin name, empty when it is good.

    Stricter than the Go original in one point: a name without a slash is refused, because the name of a volume is
    split at it later (MGR-NAME-07).
    """
    prefix, slash, rest = name.partition("/")
    if not slash:
        return [*_name_part_faults(name), "must have a prefix, as in example.com/name"]
    if "/" in rest:
        return ["must have exactly one slash, as in example.com/name"]
    return [*_prefix_faults(prefix), *_name_part_faults(rest)]


def is_reserved(name: str) -> bool:
    """Whether the name lies in the reserved namespace."""
    return name.partition("/")[0] == RESERVED_PREFIX


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must not be empty"]
    faults = []
    if len(prefix.encode()) > _PREFIX_MAX:
        faults.append(f"prefix part must be no more than {_PREFIX_MAX} bytes")
    if not all(_is_word(label, _LOWER, "-") for label in prefix.split(".")):
        faults.append(
            "prefix part must be a lowercase DNS name: letters, digits, '-' and '.', each label starting and ending "
            "with a letter or digit"
        )
    return faults


def _name_part_faults(name: str) -> list[str]:
    if not name:
        return ["name part must not be empty"]
    faults = []
    if len(name.encode()) > _NAME_MAX:
        faults.append(f"name part must be no more than {_NAME_MAX} bytes")
    if not _is_word(name, _EITHER, "-_."):
        faults.append(
            "name part must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
        )
    return faults


def _is_word(text: str, ends: frozenset[str], also_inside: str) -> bool:
    """Whether the text begins and ends with one of ``ends``, and has only those and some others inside."""
    return bool(text) and text[0] in ends and text[-1] in ends and ends.union(also_inside).issuperset(text)
