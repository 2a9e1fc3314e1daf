"""The ``volumehost`` program. The console script calls :func:`main`; ``python -m volumehost`` does too.

Only what the command at hand needs is imported: ``--help`` loads nothing but click.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.cli.options import Settings
    from volumehost.cli.root_group import COMMANDS as COMMANDS
    from volumehost.cli.root_group import program as program

__all__ = ["COMMANDS", "main", "program"]

#: Objects after which the collector runs while commands start: imports make many and leave no garbage behind.
_GC_THRESHOLD = 50_000

#: The completion scripts ask through this variable, in click's way.
COMPLETE_VARIABLE = "_VOLUMEHOST_COMPLETE"


def main(args: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; prints every error itself.

    :param args: the arguments after the program's name; those of the process, which is about to end then, when None.
    """
    if args is None and None in (sys.stdin, sys.stdout, sys.stderr):
        from volumehost.cli.streams import open_missing_streams

        open_missing_streams()
    thresholds = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        return _run(args)
    finally:
        gc.set_threshold(*thresholds)
        if args is None:
            gc.freeze()  # the end of the process frees everything anyhow: no need to look for garbage first


def _run(args: Sequence[str] | None) -> int:
    settings: Settings | None = None
    try:
        from click.exceptions import Exit

        from volumehost.cli.options import Settings
        from volumehost.cli.root_group import PROGRAM, complete, program

        if COMPLETE_VARIABLE in os.environ:
            return complete(os.environ[COMPLETE_VARIABLE])
        settings = Settings()
        code = 0
        # Not click's own main: it makes 1 of every exit code when the reader of the output has gone.
        try:
            with program.make_context(PROGRAM, sys.argv[1:] if args is None else list(args), obj=settings) as ctx:
                program.invoke(ctx)
        except Exit as end:
            code = end.exit_code
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place where errors become exit codes
        from volumehost.cli.errors import report

        return report(error, settings)
    return code


def __getattr__(name: str) -> Any:
    """``program`` is the click group, ``COMMANDS`` its table: for tests and the documentation (PEP 562)."""
    if name in {"COMMANDS", "program"}:
        from volumehost.cli import root_group

        return getattr(root_group, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
