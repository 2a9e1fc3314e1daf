"""The player of pages itself: it reads blocks, keeps one shell, and notices a difference."""

from __future__ import annotations

import os

import pytest
from page_session import Shell, blocks, commands, matches, play

PAGE = """
Text.

```{code-block} python
:caption: src/hello.py

print("hello")
```

```console
$ python3 src/hello.py
hello
$ cd src
$ cat <<X
> one
> X
one
$ pwd
.../src
```

```{code-block} text
not a command
```
"""


def test_blocks_and_captions():
    found = list(blocks(PAGE))
    assert [(b.language, b.file) for b in found] == [("python", "src/hello.py"), ("console", ""), ("text", "")]
    assert found[0].text == 'print("hello")\n'


def test_commands_with_continued_lines_and_output():
    console = list(blocks(PAGE))[1]
    assert [(c.text, c.expected) for c in commands(console)] == [
        ("python3 src/hello.py", "hello"),
        ("cd src", ""),
        ("cat <<X\none\nX", "one"),
        ("pwd", ".../src"),
    ]


def test_a_page_is_played_in_one_shell(tmp_path, user_environment):
    with Shell(tmp_path, user_environment) as shell:
        assert list(play(PAGE, shell, tmp_path)) == []
        assert shell.run("pwd")[0].strip().endswith("/src")


def test_a_difference_is_reported_with_the_line_of_the_page(tmp_path, user_environment):
    page = "```console\n$ echo one\ntwo\n$ false\n$ echo three\nthree\n```\n"
    with Shell(tmp_path, user_environment) as shell:
        (report,) = play(page, shell, tmp_path)
    assert report.startswith("line 2: $ echo one\n(exit code 0)")
    assert "two" in report


def test_standard_error_counts_and_so_does_its_absence(tmp_path, user_environment):
    page = "```console\n$ ls /does/not/exist\n```\n"
    with Shell(tmp_path, user_environment) as shell:
        (report,) = play(page, shell, tmp_path)
    assert "(exit code 2)" in report


def test_the_exit_code_of_a_command_is_there_for_the_next(tmp_path, user_environment):
    with Shell(tmp_path, user_environment) as shell:
        assert shell.run("(exit 3)") == ("", 3)
        assert shell.run("echo $?") == ("3\n", 0)
        assert shell.run("echo $?") == ("0\n", 0)


def test_a_command_that_hangs_has_a_deadline(tmp_path, user_environment):
    with pytest.raises(TimeoutError, match="begun"), Shell(tmp_path, user_environment) as shell:
        shell.run("echo begun; exec 3<>/dev/null; read -u 0 x; tail -f /dev/null", timeout=0.5)


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [("a ... c", "a b c", True), ("a   b", "a b", True), ("a", "b", False), ("", "something", False), ("a", "", False)],
)
def test_matching(expected, got, same):
    assert matches(expected, got) is same


def test_what_a_page_leaves_running_ends_with_its_shell(tmp_path, user_environment):
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reading:
        with Shell(tmp_path, {**user_environment, "HELD": f"/proc/{os.getpid()}/fd/{write_end}"}) as shell:
            shell.run("sleep 600 >$HELD &")
            os.close(write_end)
        assert reading.read() == b""  # the last one that held the other end has ended
