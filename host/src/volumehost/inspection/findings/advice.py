"""Advice that several findings give: the command that goes on with a pod, as it is to be typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.node.explaining.facts import argument_of

if TYPE_CHECKING:
    from volumehost.inspection.report import PodReport


def command_on(verb: str, pod: PodReport) -> str:
    """``'volumehost mount -n team web'``."""
    return f"'volumehost {verb} {argument_of(pod.label)}'"
