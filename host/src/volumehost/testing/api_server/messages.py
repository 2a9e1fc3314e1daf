"""What goes over the connection: a request as it came, and what is answered, whole or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from volumehost.testing.api_server.failures import StatusError

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it was read; header names are in lower case. ``certified`` is who a client certificate names."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    certified: tuple[str, tuple[str, ...]] | None = None

    @property
    def path(self) -> str:
        """The path, decoded."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        """The parameters; of one given twice, the last."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def content_type(self) -> str:
        """The type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Answer:
    """What is answered. With ``stream`` the body comes in chunks, as long as it gives some; ``finish`` is called when
    nobody reads it any more. ``cut`` has the connection reset in the middle of the body.
    """

    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    stream: Iterator[bytes] | None = None
    cut: bool = False
    finish: Callable[[], None] = _nothing


def answer(document: Any, code: int = 200) -> Answer:
    """An object as an answer."""
    return Answer(code, document if isinstance(document, bytes) else msgspec.json.encode(document))


def failure_answer(failure: StatusError) -> Answer:
    """An error as an answer."""
    found = answer(failure.status(), failure.code)
    if failure.retry_after is not None:
        found.headers["Retry-After"] = str(failure.retry_after)
    return found


class DroppedError(Exception):
    """The connection is to be reset instead of an answer."""
