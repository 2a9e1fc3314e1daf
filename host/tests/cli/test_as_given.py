"""Commands in messages work when they are pasted: with the root directory of the command that prints them."""

from __future__ import annotations

import pytest

from volumehost import errors
from volumehost.cli.as_given import as_given
from volumehost.cli.errors import report
from volumehost.cli.options import Settings
from volumehost.cli.root_group import COMMANDS


def settings(root_dir: str = "/srv/v", *, given: bool = True) -> Settings:
    made = Settings()
    made.root_dir, made.root_dir_given = root_dir, given
    return made


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("'volumehost mount web' tries again", "'volumehost --root-dir /srv/v mount web' tries again"),
        (
            "volumehost status, then volumehost explain -n team web",
            "volumehost --root-dir /srv/v status, then volumehost --root-dir /srv/v explain -n team web",
        ),
        ("/opt/volumehost mount", "/opt/volumehost mount"),
        ("volumehost plugins list", "volumehost plugins list"),
        ("volumehost mounts volumes", "volumehost mounts volumes"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_what_is_a_command_gets_the_option(line: str, shown: str) -> None:
    assert as_given(line, settings()) == shown


def test_what_was_not_given_on_the_command_line_is_there_without_it() -> None:
    assert as_given("'volumehost mount web'", settings(given=False)) == "'volumehost mount web'"


def test_the_cluster_that_was_given_is_named_too() -> None:
    made = settings(given=False)
    made.kubeconfig, made.kubeconfig_given, made.context = "/srv/my config", True, "test"
    assert as_given("volumehost status", made) == "volumehost --kubeconfig '/srv/my config' --context test status"
    made = settings()
    made.in_cluster = True
    assert as_given("volumehost status", made) == "volumehost --root-dir /srv/v --in-cluster status"


def test_a_path_is_quoted_and_cannot_steer_the_terminal() -> None:
    assert as_given("volumehost status", settings("/srv/my volumes")) == (
        "volumehost --root-dir '/srv/my volumes' status"
    )
    assert "\x1b" not in as_given("volumehost status \x1b[2J", settings("/srv/\x1b[2J"))


def test_an_error_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    report(errors.VolumeHostError("no", hint="'volumehost status' lists what there is"), settings())
    assert "hint: 'volumehost --root-dir /srv/v status' lists what there is" in capsys.readouterr().err


def test_every_command_on_a_root_directory_is_known() -> None:
    without = {"plugins", "demo", "completion", "version", "rbac"}
    for name in COMMANDS.keys() - without:
        assert "--root-dir" in as_given(f"volumehost {name}", settings()), name
    for name in without:
        assert "--root-dir" not in as_given(f"volumehost {name}", settings()), name
