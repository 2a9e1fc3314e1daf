"""The one place where errors become text on stderr and an exit code; ``main`` calls :func:`report`.

0 done, 1 the operation failed, 2 usage, 3 not found, 4 timed out, 130 interrupted, 141 the reader of the output
went away.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence

import click

from volumehost import errors
from volumehost.cli.as_given import as_given
from volumehost.cli.options import Settings
from volumehost.cli.tables import printable

FAILED = 1
USAGE = 2
NOT_FOUND = 3
TIMED_OUT = 4
INTERRUPTED = 130
BROKEN_PIPE = 141

_NOT_FOUND = (errors.ObjectNotFoundError, errors.PluginNotFoundError)
_TIMED_OUT = (errors.WaitTimeoutError, errors.MountTimeoutError, errors.UnmountTimeoutError)


def exit_code(error: BaseException) -> int:
    """The exit code for an error; that of a group is the one that all its errors share, else 1."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(error, BaseExceptionGroup):
        codes = {exit_code(each) for each in error.exceptions}
        return codes.pop() if len(codes) == 1 else FAILED
    if isinstance(error, _NOT_FOUND):
        return NOT_FOUND
    if isinstance(error, errors.ManifestError) and isinstance(error.__cause__, FileNotFoundError):
        return NOT_FOUND
    return TIMED_OUT if isinstance(error, _TIMED_OUT) else FAILED


def report(error: BaseException, settings: Settings | None = None) -> int:
    """Print the error as ``error: ...`` and ``hint: ...``, from ``-vv`` on with its traceback; return the exit code."""
    settings = settings if settings is not None else Settings()
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()
        return BROKEN_PIPE
    quiet = (click.ClickException, click.Abort, click.exceptions.Exit, KeyboardInterrupt)
    if settings.verbosity > 1 and not isinstance(error, quiet):
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            click.echo(printable(line), err=True)
    try:
        for line in error_lines(error):
            click.echo(as_given(line, settings), err=True)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return BROKEN_PIPE if isinstance(error, click.exceptions.Exit) else exit_code(error)
    except OSError:
        _abandon_stdout()
        return exit_code(error) or FAILED
    return exit_code(error)


def error_lines(error: BaseException) -> Iterator[str]:
    """The lines that tell one error, or each error of a group, with the notes that were added to it."""
    yield from _lines(error)
    yield from (printable(note) for note in getattr(error, "__notes__", ()))


def _lines(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from error_lines(each)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        yield error.format_message()
    elif isinstance(error, click.UsageError):
        yield from _usage_lines(error)
    elif isinstance(error, click.ClickException):
        yield f"error: {error.format_message()}"
    elif isinstance(error, click.Abort | KeyboardInterrupt):
        yield "interrupted"
    elif isinstance(error, errors.VolumeHostError):
        yield from _own_lines(error)
    elif isinstance(error, OSError):
        yield f"error: {_os_error(error)}"
    elif not isinstance(error, click.exceptions.Exit):
        yield f"error: unexpected {type(error).__name__}: {printable(error)}"
        yield "hint: this is a defect of volumehost or of a plugin; -vv shows where it happened"


def _own_lines(error: errors.VolumeHostError) -> Iterator[str]:
    details = _details(error)
    if isinstance(error, errors.InvalidObjectError | errors.ManifestError) and details:
        yield f"error: {printable(error.action or error.subject)}:"
    else:
        action = f"{printable(error.action)}: " if error.action else ""
        yield f"error: {action}{printable(error.reason)}"
    yield from (f"  {printable(detail)}" for detail in details)
    if error.hint:
        yield f"hint: {printable(error.hint)}"


def _details(error: errors.VolumeHostError) -> Sequence[str]:
    """What gets a line of its own below the error."""
    match error:
        case errors.InvalidObjectError():
            return [f"{field}: {message}" for field, message in error.problems]
        case errors.ManifestError():
            return error.problems
        case errors.WaitTimeoutError() | errors.VolumesFailedError():
            return [line for detail in error.details for line in detail.splitlines()]
        case errors.RemovalError():
            return error.paths
    return ()


def _usage_lines(error: click.UsageError) -> Iterator[str]:
    # click puts each choice on a line of its own.
    message = error.format_message().strip().replace("\n\t", " ")
    yield f"error: {printable(message[:1].lower() + message[1:]).removesuffix('.')}"
    if error.ctx is not None:
        yield from error.ctx.get_usage().splitlines()
        yield f"hint: '{error.ctx.command_path} --help' tells more"


def _os_error(error: OSError) -> str:
    words = error.strerror or str(error) or errno.errorcode.get(error.errno or 0, "unknown error")
    return f"{printable(error.filename)}: {words}" if error.filename is not None else printable(words)


def _abandon_stdout() -> None:
    """Let Python's own flush at exit go nowhere: whoever read the output is gone."""
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
    except (OSError, ValueError):
        sys.stdout = None  # no descriptor behind it: there is nothing to flush
