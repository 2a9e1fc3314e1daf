"""Checks that what is secret in a volume's spec shows up nowhere: not in logs, errors, reprs or the mount table."""

from __future__ import annotations

import contextlib
import io
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from volumehost.errors import error_chain
from volumehost.mount.mountinfo import read_mount_table
from volumehost.testing.conformance.check import check, not_applicable, require
from volumehost.testing.conformance.hostile import source_of

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.testing.conformance.trial import Trial

#: Maps of a source that a driver interprets: authors of pods put passwords into them.
_PRIVATE_MAPS = ("options", "volume_attributes")
_SHORTEST = 6  # shorter values of Secrets occur in ordinary text by chance


@check("MOUNT-03", "VOL-04")
def secrets_are_shown_nowhere(trial: Trial) -> None:
    """A password among the volume's options, and the values of the Secrets in the files, appear in no log line, error,
    repr or mount table while the volume lives, and when mounting it fails.
    """
    markers = _put_password(trial.spec) | _values_of_secrets(trial)
    if not markers:
        not_applicable("the volume has no options or attributes, and there is no Secret in the files")
    faults = trial.use_faulty_mounter()
    shown: dict[str, list[str]] = {}
    with _captured() as captured:
        shown["repr of the plugin"] = [repr(trial.plugin.plugin)]
        try:
            mounted = trial.set_up()
            shown["repr of the mounter"] = [repr(mounted.mounter), str(mounted.mounter)]
            shown["mount table"] = [repr(mount) for mount in read_mount_table()]
            trial.tear_down()
        except Exception as error:  # noqa: BLE001 - a password may be refused; it must not be quoted
            shown["error of set_up"] = _texts(error)
        faults.failing = True
        try:
            trial.set_up_only(trial.pod)  # a driver elsewhere may mount it all the same
        except Exception as error:  # noqa: BLE001 - what it says is looked at
            shown["error of a set_up whose mount was refused"] = _texts(error)
        faults.failing = False
    shown["log"] = captured.records
    shown["output"] = [captured.output.getvalue()]
    found = [
        f"{where} shows {text.replace(marker, '***SECRET***')!r}"
        for where, texts in shown.items()
        for text in texts
        for marker in markers
        if marker in text
    ]
    require(not found, "; ".join(found))


def _put_password(spec: Spec) -> set[str]:
    """Put a password into the source's map for the driver, if it has one; the password."""
    source = source_of(spec)
    for name in _PRIVATE_MAPS:
        if source is not None and name in source.__struct_fields__:
            password = f"secret-{secrets.token_hex(8)}"
            getattr(source, name)["password"] = password
            return {password}
    return set()


def _values_of_secrets(trial: Trial) -> set[str]:
    from volumehost.api.objects import Secret

    found = [each for each in trial.samples.objects if isinstance(each, Secret)]
    values = {text for secret in found for text in secret.string_data.values()}
    values |= {data.decode("utf-8", "replace") for secret in found for data in secret.data.values()}
    return {value for value in values if len(value) >= _SHORTEST}


def _texts(error: BaseException) -> list[str]:
    """All that somebody would print of an error."""
    return [text for link in error_chain(error) for text in (str(link), repr(link))]


class _Captured(logging.Handler):
    """Keeps the text of every log record."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[str] = []
        self.output = io.StringIO()
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.records.append(self.format(record))


@contextmanager
def _captured() -> Iterator[_Captured]:
    """Everything that is logged, at any level, or printed."""
    handler, root = _Captured(), logging.getLogger()
    level, disabled = root.level, logging.root.manager.disable
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    logging.disable(logging.NOTSET)
    try:
        with contextlib.redirect_stdout(handler.output), contextlib.redirect_stderr(handler.output):
            yield handler
    finally:
        logging.disable(disabled)
        root.setLevel(level)
        root.removeHandler(handler)
