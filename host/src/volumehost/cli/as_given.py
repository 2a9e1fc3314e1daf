"""Commands that messages name, with the root directory that this one was given: they work when they are pasted.

Used wherever a command prints advice or an error.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from volumehost.cli.tables import printable

if TYPE_CHECKING:
    from volumehost.cli.options import Settings

#: Those that work on a root directory.
_COMMANDS: Final = (
    "agent|apply|delete|describe|drivers|expand|explain|export|get|inspect|mount|plan|repair|snapshot|status|unmount"
)


def as_given(line: object, settings: Settings) -> str:
    """The line, printable, with ``--root-dir`` in each command that it names.

    Only where this command has it on its command line: an environment variable is there for the next one too.
    """
    text = printable(line)
    if not settings.root_dir_given or "volumehost " not in text:
        return text
    option = printable(f"--root-dir {shlex.quote(settings.root)}")
    return re.sub(rf"(?<![\w./-])volumehost (?=(?:{_COMMANDS})\b)", lambda _: f"volumehost {option} ", text)
