"""Texts of errors on their way into a status or an event: bounded, dated, and without what must not be seen (BR-74)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from volumehost.errors import VolumeHostError, error_chain

#: Longer messages are refused by API servers (CSI-ATT-18), in bytes.
MAX_MESSAGE_BYTES = 1024

_STRIPPED = "***stripped***"
_TEXTS = ("reason", "action", "hint", "subject", "driver_message")


def message_of(error: BaseException) -> str:
    """The error in one line of at most 1024 bytes."""
    text = " ".join(str(error).split()) or type(error).__name__
    encoded = text.encode()
    if len(encoded) <= MAX_MESSAGE_BYTES:
        return text
    return encoded[: MAX_MESSAGE_BYTES - 3].decode(errors="ignore") + "..."


def timestamp(seconds: float) -> str:
    """RFC 3339, to the microsecond, so that it can be told which of two moments was first (CSI-ATT-08)."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@contextmanager
def without_secrets(secrets: Mapping[str, str]) -> Iterator[None]:
    """An error of the block that repeats a value of the secrets is raised without it.

    Drivers are told not to, and what calls them strips their answers; this is the last line of defence.
    """
    try:
        yield
    except VolumeHostError as error:
        values = sorted((value for value in secrets.values() if value.strip()), key=len, reverse=True)
        if any(value in f"{link} {link.args}" for link in error_chain(error) for value in values):
            _strip(error, values)
            raise error from None
        raise


def _strip(error: VolumeHostError, values: list[str]) -> None:
    def clean(thing: object) -> object:
        if not isinstance(thing, str):
            return thing
        for value in values:
            thing = thing.replace(value, _STRIPPED)
        return thing

    for name in _TEXTS:
        if hasattr(error, name):
            setattr(error, name, clean(getattr(error, name)))
    error.args = tuple(clean(argument) for argument in error.args)
    # What it was raised from tells the same once more.
    error.__cause__ = error.__context__ = None
