"""Does a distribution say that it can work with this host and this Python? Asked before it is imported (BR-82)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from volumehost._version import __version__
from volumehost.loader.scan import normalize

if TYPE_CHECKING:
    from volumehost.loader.installed import InstalledDistribution

_HOST = "volumehost"
_PYTHON = ".".join(map(str, sys.version_info[:3]))


def incompatibility(distribution: InstalledDistribution, *, host: str = __version__, python: str = _PYTHON) -> str:
    """What the distribution requires that is not so here, "" when all is well.

    pip checks the same, but not with ``--no-deps``, nor when the host is upgraded under its plugins.
    """
    for name, value in distribution.headers():
        if name == "requires-python":
            if not satisfies(value, python):
                return f"it requires Python {value}, this is {python}"
        elif name == "requires-dist" and normalize(value[: len(_HOST)]) == _HOST:
            wanted = _host_requirement(value)
            if wanted and not satisfies(wanted, host):
                return f"it requires {_HOST} {wanted}, this is {host}"
    return ""


def satisfies(specifiers: str, version: str) -> bool:
    """Whether a version lies in a range such as ``>=0.1,<1``.

    Plain ranges are compared here; anything else takes ``packaging``, whose import costs more than a scan. What
    cannot be read excludes nothing: it is for the installer to complain about.
    """
    plain = _compare_plain(specifiers, version)
    if plain is not None:
        return plain
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifiers).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def _host_requirement(value: str) -> str:
    """The version range of a requirement on the host, "" when it is another's or does not apply here."""
    rest = value[len(_HOST) :].strip()
    if not rest or (rest[0] in "<>=!~" and ";" not in rest):
        return rest
    if rest[0].isalnum() or rest[0] in "-_.":  # the name goes on: volumehost-csi-kit
        return ""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(value)
    except InvalidRequirement:
        return ""
    if normalize(requirement.name) != _HOST:
        return ""
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return ""
    return str(requirement.specifier)


def _compare_plain(specifiers: str, version: str) -> bool | None:
    """The answer for ranges of ``>=``, ``<=``, ``>`` and ``<`` with plain versions, None for all others."""
    actual = _numbers(version)
    if actual is None:
        return None
    result = True
    for part in specifiers.split(","):
        specifier = part.strip()
        operator = specifier[:2] if specifier[1:2] == "=" else specifier[:1]
        wanted = _numbers(specifier[len(operator) :].strip())
        if wanted is None or operator not in (">=", "<=", ">", "<"):
            return None
        if operator == ">=":
            result = result and actual >= wanted
        elif operator == "<=":
            result = result and actual <= wanted
        elif operator == ">":
            result = result and actual > wanted
        else:
            result = result and actual < wanted
    return result


def _numbers(version: str) -> tuple[int, ...] | None:
    """The release numbers without trailing zeros; None when the version has more than those."""
    parts = version.split(".")
    if not all(part.isdigit() and part.isascii() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
