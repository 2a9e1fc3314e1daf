"""YAML out: plain data as one document that every reader understands in the same way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

#: Plain text that other YAML readers take for a number or a boolean, besides what PyYAML quotes by itself.
_READ_OTHERWISE = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?0o?[0-9_]+|[yYnN]")
#: Characters that readers take for line breaks or drop, unless they are escaped.
_FOLDED_BY_READERS = re.compile("[\x85\u2028\u2029\ufeff]")


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper with more quotes and literal blocks for texts of several lines."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class decides by the data
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if _FOLDED_BY_READERS.search(text):
        style = '"'
    elif "\n" in text.rstrip("\n") and not re.search(r"[^\S\n]\n|\t|\r", text):
        style = "|"
    elif _READ_OTHERWISE.fullmatch(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(data: Mapping[str, Any]) -> str:
    """One YAML document, keys in the order given."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120)
