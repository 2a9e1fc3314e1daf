"""Commands that messages name, with the root directory and the cluster that this one was given: to be pasted as is.

Used wherever a command prints advice or an error.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from volumehost.cli.tables import printable

if TYPE_CHECKING:
    from volumehost.cli.options import Settings

#: Those that work on a root directory.
_COMMANDS: Final = (
    "agent|apply|controller|delete|describe|drivers|expand|explain|export|get|inspect|mount|plan|repair|snapshot"
    "|status|unmount"
)


def as_given(line: object, settings: Settings) -> str:
    """The line, printable, with ``--root-dir``, ``--kubeconfig`` and ``--context`` in each command that it names.

    Only where this command has it on its command line: an environment variable is there for the next one too.
    """
    text = printable(line)
    options = " ".join(_options(settings))
    if not options or "volumehost " not in text:
        return text
    return re.sub(rf"(?<![\w./-])volumehost (?=(?:{_COMMANDS})\b)", lambda _: f"volumehost {options} ", text)


def _options(settings: Settings) -> Iterator[str]:
    if settings.root_dir_given:
        yield printable(f"--root-dir {shlex.quote(settings.root)}")
    if settings.kubeconfig_given:
        yield printable(f"--kubeconfig {shlex.quote(settings.kubeconfig or '')}")
    if settings.context is not None:
        yield printable(f"--context {shlex.quote(settings.context)}")
    if settings.in_cluster:
        yield "--in-cluster"
