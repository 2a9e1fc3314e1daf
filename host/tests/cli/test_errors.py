from __future__ import annotations

import click
import pytest

from volumehost import errors
from volumehost.cli.errors import error_lines, exit_code, report
from volumehost.cli.options import Settings


def asking(verbosity: int) -> Settings:
    settings = Settings()
    settings.verbosity = verbosity
    return settings


def chained(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.VolumeHostError("no"), 1),
        (errors.MountError("no"), 1),
        (errors.RootDirectoryLockedError("no", pid=1), 1),
        (errors.InvalidObjectError(subject="pod/a", problems=[("spec", "bad")]), 1),
        (errors.UnknownKindError("no"), 1),
        (errors.ObjectNotFoundError("no"), 3),
        (errors.PluginNotFoundError("no"), 3),
        (errors.NoPluginMatchedError("no"), 1),
        (errors.WaitTimeoutError("no"), 4),
        (errors.UnmountTimeoutError("no"), 4),
        (errors.MountTimeoutError("no"), 4),
        (errors.ManifestError("no"), 1),
        (chained(errors.ManifestError("no"), FileNotFoundError()), 3),
        (chained(errors.ManifestError("no"), PermissionError()), 1),
        (click.UsageError("no"), 2),
        (click.BadParameter("no"), 2),
        (click.ClickException("no"), 1),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (OSError(28, "No space left on device"), 1),
        (ValueError("no"), 1),
        (ExceptionGroup("x", [errors.ObjectNotFoundError("a"), errors.ObjectNotFoundError("b")]), 3),
        (ExceptionGroup("x", [errors.ObjectNotFoundError("a"), errors.MountError("b")]), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_kind_of_error_has_its_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(error) == code
    assert report(error) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_tells_what_was_done_why_it_failed_and_what_to_do() -> None:
    error = errors.MountError("no such device", action="mounting /dev/x", hint="plug it in")
    assert list(error_lines(error)) == ["error: mounting /dev/x: no such device", "hint: plug it in"]


def test_an_invalid_object_has_a_line_for_each_field() -> None:
    error = errors.InvalidObjectError(subject="pod/a", problems=[("spec.volumes[0].name", "bad"), ("spec", "worse")])
    lines = list(error_lines(error))
    assert lines == ["error: pod/a is invalid:", "  spec.volumes[0].name: bad", "  spec: worse"]


def test_br83_a_timeout_lists_what_is_still_missing_and_why() -> None:
    error = errors.WaitTimeoutError("not all volumes", details=["a: denied, attempt 3", "b: busy"], hint="wait")
    lines = list(error_lines(error))
    assert lines == ["error: not all volumes", "  a: denied, attempt 3", "  b: busy", "hint: wait"]


def test_every_error_of_a_group_is_told() -> None:
    group = ExceptionGroup("x", [errors.MountError("one"), ExceptionGroup("y", [errors.MountError("two")])])
    assert list(error_lines(group)) == ["error: one", "error: two"]


def test_text_of_errors_cannot_steer_the_terminal() -> None:
    (line,) = error_lines(errors.MountError("\x1b[2Jgone"))
    assert line == "error: \\x1b[2Jgone"


def test_operating_system_errors_name_their_file() -> None:
    assert list(error_lines(PermissionError(13, "Permission denied", "/x"))) == ["error: /x: Permission denied"]


def test_a_defect_is_called_one_and_its_traceback_is_shown_at_vv_only(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("oops")
    except ValueError as caught:
        error = caught
    assert report(error, asking(1)) == 1
    quiet = capsys.readouterr().err
    assert quiet.startswith("error: unexpected ValueError: oops\nhint: ")
    assert report(error, asking(2)) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_one_word_also_at_vv(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(click.Abort(), asking(2)) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_the_choices_of_an_argument_that_is_missing_stand_in_one_line() -> None:
    @click.command()
    @click.argument("shell", type=click.Choice(["bash", "zsh"]))
    def command(shell: str) -> None: ...

    with pytest.raises(click.UsageError) as caught:
        command.main([], standalone_mode=False)
    assert next(error_lines(caught.value)) == "error: missing argument '{bash|zsh}'. Choose from: bash, zsh"
