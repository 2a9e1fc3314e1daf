"""Names and settings that nobody means well: what the checks of bad specs hand to a plugin."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_type_hints

from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

#: Names of volumes and pods that must not become paths.
HOSTILE_NAMES = ("", ".", "..", "../escape", "../../../../escape", "a/b", "/escape", "a\0b", "x" * 300)

#: Values for settings of which none makes sense; no absolute path is among them, so that nothing real is hit.
NONSENSE = ("", "\0", "../../escape", "x" * 300, "-1")


def with_name(spec: Spec, name: str) -> Spec:
    """The spec under another name."""
    renamed = copy.deepcopy(spec)
    if renamed.volume is not None:
        renamed.volume.name = name
    elif renamed.persistent_volume is not None:
        renamed.persistent_volume.metadata.name = name
    return renamed


def with_uid(pod: Pod, uid: str) -> Pod:
    """The pod under another uid."""
    renamed = copy.deepcopy(pod)
    renamed.metadata.uid = uid
    return renamed


def source_of(spec: Spec) -> Any:
    """The struct of the spec's source."""
    holder: Any = spec.volume
    if holder is None and spec.persistent_volume is not None:
        holder = spec.persistent_volume.spec
    return getattr(holder, spec.source()) if holder is not None and spec.source() else None


def with_nonsense(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """The spec with each text of its source replaced by each nonsense, with words for it.

    Texts are fields of the source and the values of its maps (a driver's options). The driver's own name is left: with
    another it would be another plugin's spec.
    """
    source = source_of(spec)
    for path in _texts(source):
        for nonsense in NONSENSE:
            broken = replace(copy.deepcopy(spec))
            _set(source_of(broken), path, nonsense)
            shown = nonsense if len(nonsense) < 20 else f"{nonsense[:1]} {len(nonsense)} times"
            yield f"{spec.source()}.{'.'.join(path)} = {shown!r}", broken


def _texts(source: Any) -> Iterator[tuple[str, ...]]:
    hints = get_type_hints(type(source))
    for name in source.__struct_fields__:
        value = getattr(source, name)
        if name == "driver":
            continue
        if isinstance(value, dict):
            yield from ((name, key) for key, item in value.items() if isinstance(item, str))
        elif isinstance(value, str) or hints[name] == str | None:
            yield (name,)


def _set(source: Any, path: tuple[str, ...], value: str) -> None:
    if len(path) == 1:
        setattr(source, path[0], value)
    else:
        getattr(source, path[0])[path[1]] = value
