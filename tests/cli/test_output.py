"""What goes where: results to stdout, the rest to stderr; readers that go away, disks that are full, logs."""

from __future__ import annotations

import subprocess

import pytest


def test_a_reader_that_goes_away_ends_the_program_quietly(volumehost) -> None:
    process = volumehost.start("plugins", "list", "-o", "json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_help_into_a_pager_that_is_closed(volumehost) -> None:
    process = volumehost.start("--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_output_that_cannot_be_written_is_a_failure(volumehost) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [volumehost.start.__globals__["PROGRAM"], "version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=volumehost.variables(),
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_process_without_standard_streams_works_and_writes_into_no_file_of_ours(volumehost, closed: str) -> None:
    """The store must not become descriptor 1: what is printed would go into it."""
    program = volumehost.start.__globals__["PROGRAM"]
    manifest = volumehost.cwd / "c.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    commands = (f"apply -f {manifest}", "get cm", "get cm -o json", "-vv plugins list", "--help", "status")
    for command, code in (*((command, 0) for command in commands), ("get pod nope", 3), ("nonsense", 2)):
        done = subprocess.run(
            ["bash", "-c", f"{program} {command} {closed}"],
            capture_output=True,
            text=True,
            env=volumehost.variables(),
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (command, done)
        assert "Traceback" not in done.stderr
    assert volumehost("get", "cm", "-o", "name").out == "configmap/c\n"
    refused = subprocess.run(
        ["bash", "-c", f"{program} apply -f - <&-"],
        capture_output=True,
        text=True,
        env=volumehost.variables(),
        timeout=60,
        check=False,
    )
    assert refused.returncode == 1
    assert "standard input: holds no objects" in refused.stderr


def test_no_log_unless_asked_for_then_on_stderr_alone(volumehost, site, plugin_source) -> None:
    site.install("acme-bad", plugin_source("acme.example.com/bad", top="import missing_dep"))
    quiet = volumehost("plugins", "list", environment=site.environment)
    assert quiet.err == ""
    told = volumehost("plugins", "list", "-v", environment=site.environment)
    assert "volumehost.loader" in told.err
    assert told.out == quiet.out
    details = volumehost("-v", "plugins", "list", "-v", environment=site.environment)
    assert "DEBUG volumehost" in details.err or len(details.err) >= len(told.err)


@pytest.mark.parametrize("flags", [[], ["-v"]])
def test_no_traceback_without_vv(volumehost, flags: list[str]) -> None:
    done = volumehost(*flags, "get", "pod", "nope")
    assert done.code == 3
    assert done.err.splitlines()[-1].startswith(("error: ", "hint: "))


def test_a_traceback_with_vv(volumehost) -> None:
    program = [volumehost.start.__globals__["PROGRAM"], "-vv", "get", "pod", "nope"]
    done = subprocess.run(program, capture_output=True, text=True, env=volumehost.variables(), timeout=60, check=False)
    assert done.returncode == 3
    assert "Traceback (most recent call last)" in done.stderr
    assert "ObjectNotFoundError" in done.stderr


def test_the_module_is_the_same_program(volumehost) -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "volumehost", "version"],
        capture_output=True,
        text=True,
        env=volumehost.variables(),
        timeout=60,
        check=True,
    )
    assert done.stdout == volumehost("version").out


def test_br74_no_secret_in_logs_or_errors_at_any_verbosity(volumehost, manifest) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2-marker}\n"
    path = manifest(text)
    applied = volumehost("-v", "apply", "-f", path)
    bad = manifest(text + "immutable: [hunter2-marker]\ntype: {a: b}\n", "bad.yaml")
    refused = volumehost("-v", "apply", "-f", bad)
    described = volumehost("-v", "describe", "secret", "s")
    assert (applied.code, refused.code, described.code) == (0, 1, 0)
    for done in (applied, described):
        assert "hunter2" not in done.out + done.err
    assert "password" in described.out
