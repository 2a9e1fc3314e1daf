"""Label selectors in the syntax of commands: ``app=web,tier!=cache,env in (dev, test),!legacy``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from volumehost.api.objects import LabelSelector
from volumehost.errors import InvalidObjectError

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"""\s*(?:
        !\s*(?P<absent>{_KEY})
      | (?P<set_key>{_KEY})\s+(?P<set_operator>in|notin)\s*\((?P<values>\s*{_VALUE}\s*(?:,\s*{_VALUE}\s*)*)\)
      | (?P<key>{_KEY})\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})
      | (?P<present>{_KEY})
    )\s*(?:,|$)""",
    re.VERBOSE | re.ASCII,
)


class Requirement(msgspec.Struct, frozen=True):
    """One condition: ``operator`` is ``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it. An absent label fulfils ``NotIn``."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class Selector(msgspec.Struct, frozen=True):
    """Requirements that must all hold; none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(labels: Mapping[str, str] | str | None) -> Selector:
    """A selector from required labels or from its text form.

    :raises InvalidObjectError: the text is no selector.
    """
    if labels is None:
        return Selector()
    if isinstance(labels, Mapping):
        return Selector(tuple(Requirement(key, "In", frozenset({value})) for key, value in labels.items()))
    found: list[Requirement] = []
    position = 0
    while position < len(labels) and labels[position:].strip():
        match = _REQUIREMENT.match(labels, position)
        if match is None:
            raise InvalidObjectError(
                subject="label selector",
                problems=[(labels, f"cannot be read from {labels[position:].strip()!r} on")],
            )
        found.append(_requirement(match))
        position = match.end()
    return Selector(tuple(found))


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent"], "DoesNotExist")
    if match["present"]:
        return Requirement(match["present"], "Exists")
    if match["set_key"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return Requirement(match["set_key"], "In" if match["set_operator"] == "in" else "NotIn", values)
    operator = "NotIn" if match["operator"] == "!=" else "In"
    return Requirement(match["key"], operator, frozenset({match["value"]}))


def selector_of(labels: LabelSelector | None) -> Selector | None:
    """The selector that an API object holds; None, which matches nothing, when there is none."""
    if labels is None:
        return None
    required = (Requirement(key, "In", frozenset({value})) for key, value in labels.match_labels.items())
    expressions = (Requirement(item.key, item.operator, frozenset(item.values)) for item in labels.match_expressions)
    return Selector((*required, *expressions))
