from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import click
import pytest

from volumehost.cli import main, program
from volumehost.cli.command import Command, LazyGroup
from volumehost.cli.options import DEFAULT_ROOT_DIR, Settings


def walk(group: LazyGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command, str]]:
    """Every command with its path and its line in the table of its group."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, name
        yield (*path, name), command, group.table[name][1]
        if isinstance(command, LazyGroup):
            yield from walk(command, (*path, name))


COMMANDS = list(walk(program))
IDS = [" ".join(path) for path, _, _ in COMMANDS]


@pytest.mark.parametrize(("path", "command", "words"), COMMANDS, ids=IDS)
def test_the_table_of_a_group_says_what_the_commands_say(
    path: tuple[str, ...], command: click.Command, words: str
) -> None:
    assert command.get_short_help_str(limit=1000) == words
    assert command.name == path[-1]


@pytest.mark.parametrize(("path", "command", "words"), COMMANDS, ids=IDS)
def test_every_help_has_an_example_that_parses(
    path: tuple[str, ...], command: click.Command, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "--help"]) == 0
    page = capsys.readouterr().out
    assert isinstance(command, Command | LazyGroup)
    assert command.examples
    for _, line in command.examples:
        assert f"$ {line}" in page
        parse_example(line)


def parse_example(line: str) -> None:
    """Parse every ``volumehost`` command line in an example, down to the last argument, without running it."""
    words = shlex.split(line.replace("$(", " ").replace(")", " ").replace('"', " ").partition(" > ")[0])
    words = words[words.index("volumehost") :]
    if "|" in words:
        words = words[: words.index("|")]
    group: click.Command = program
    parent: click.Context | None = None
    arguments = words[1:]
    while True:
        ctx = group.make_context(group.name, list(arguments), parent=parent, **({} if parent else {"obj": Settings()}))
        if not isinstance(group, LazyGroup):
            return
        rest = [*ctx._protected_args, *ctx.args]
        _, found, arguments = group.resolve_command(ctx, rest)
        assert found is not None
        group, parent = found, ctx


def test_every_line_of_every_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for path, _, _ in [((), program, ""), *COMMANDS]:
        assert main([*path, "--help"]) == 0
        for line in capsys.readouterr().out.splitlines():
            assert len(line) <= 80 or line.lstrip().startswith("$ "), (path, line)


def test_an_unknown_command_is_a_usage_error_with_the_nearest_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vrsion"]) == 2
    err = capsys.readouterr().err
    assert "no such command 'vrsion'; did you mean version?" in err
    assert "hint: 'volumehost --help' tells more" in err


@pytest.mark.parametrize("arguments", [["--nope"], ["version", "--nope"], ["completion"], ["completion", "tcsh"]])
def test_usage_errors_name_the_help_and_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "--help' tells more" in captured.err


def test_no_command_shows_the_help_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commands:" in captured.err


@pytest.mark.parametrize("arguments", [["--version"], ["--version", "nonsense"], ["-v", "--version"]])
def test_the_version_is_an_option_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from volumehost import __version__

    assert main(arguments) == 0
    assert capsys.readouterr().out == f"volumehost {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["-o", "json", "plugins", "list"], ["plugins", "-o", "json", "list"], ["plugins", "list", "-o", "json"]],
)
def test_shared_options_stand_before_a_group_of_commands_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["plugins"]


@pytest.mark.parametrize("arguments", [["-o", "json", "version"], ["version", "-o", "json"]])
def test_shared_options_stand_before_and_after_the_command(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"version", "python"}


def test_the_nearer_option_wins_and_verbosity_adds_up() -> None:
    seen: list[Settings] = []

    @click.command()
    @click.pass_obj
    def probe(settings: Settings) -> None:
        seen.append(settings)

    from volumehost.cli.options import group_options, shared_options

    group = click.Group("g", params=group_options())
    group.add_command(click.command("probe")(shared_options("root-dir", "namespace", "output")(probe.callback)))
    group.main(
        ["-v", "--root-dir", "/a", "-n", "one", "probe", "--root-dir", "/b c", "-v", "-o", "yaml"],
        standalone_mode=False,
        obj=Settings(),
    )
    (settings,) = seen
    assert (settings.root_dir, settings.namespace, settings.output, settings.verbosity) == ("/b c", "one", "yaml", 2)
    assert settings.namespace_given


def test_the_root_directory_comes_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    from volumehost.cli.options import group_options

    group = click.Group("g", params=group_options())

    @group.command()
    @click.pass_obj
    def probe(settings: Settings) -> None:
        seen.append(settings.root_dir)

    monkeypatch.delenv("VOLUMEHOST_ROOT_DIR", raising=False)
    group.main(["probe"], standalone_mode=False, obj=Settings())
    monkeypatch.setenv("VOLUMEHOST_ROOT_DIR", "/from env")
    group.main(["probe"], standalone_mode=False, obj=Settings())
    group.main(["--root-dir", "/given", "probe"], standalone_mode=False, obj=Settings())
    assert seen == [DEFAULT_ROOT_DIR, "/from env", "/given"]


@pytest.mark.parametrize("option", ["--root-dir", "--namespace"])
def test_an_empty_value_is_a_usage_error(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, "", "version"]) == 2
    assert "must not be empty" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_VOLUMEHOST_COMPLETE={shell}_complete" in script


def test_versions_in_each_output(capsys: pytest.CaptureFixture[str]) -> None:
    from volumehost import __version__

    assert main(["version"]) == 0
    assert main(["version", "-o", "name"]) == 0
    assert main(["version", "-o", "yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"volumehost {__version__}", __version__, f"version: {__version__}"]
