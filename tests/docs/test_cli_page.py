"""Every command and every option of the program stands on the command line page, with its examples."""

from __future__ import annotations

import click
import pytest

from volumehost.cli import COMMANDS, program

pytestmark = pytest.mark.slow


def every_command(command, context):
    """The command and all below it, each with its full name."""
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            yield from every_command(child, click.Context(child, parent=context, info_name=name))


def commands():
    return list(every_command(program, click.Context(program, info_name="volumehost")))


def test_the_program_has_the_commands_of_its_table():
    names = {path for path, _ in commands()}
    assert {f"volumehost {name}" for name in COMMANDS} <= names
    assert len(names) > len(COMMANDS)


def test_every_command_and_option_is_on_the_page(page):
    text = page("reference/cli").text
    for path, command in commands():
        assert f"{path} [OPTIONS]" in text, path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                for name in parameter.opts:
                    assert name in text, (path, name)


def test_every_command_has_an_example_on_the_page(page):
    text = page("reference/cli").text
    for path, command in commands():
        if not isinstance(command, click.Group):
            assert command.examples, path
        for _, line in getattr(command, "examples", ()):
            assert " ".join(line.split()) in text, (path, line)


def test_every_exit_code_of_the_program_is_on_the_page(page):
    import re

    table = page("reference/cli").text.partition("exit code meaning")[2].partition("volumehost ")[0]
    help_text = " ".join((program.help or "").split()).partition("Exit codes: ")[2]
    for code, meaning in re.findall(r"(\d+) ([a-z ]+)", help_text):
        assert f"{code} {meaning}".split()[0] in table.split()
        assert meaning.strip() in table
