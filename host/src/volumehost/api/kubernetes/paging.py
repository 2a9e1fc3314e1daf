"""Lists in parts, so that neither side holds thousands of objects at once. Used by the client and by informers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from volumehost.api.kubernetes.asking import Asked
from volumehost.api.kubernetes.caller import Caller
from volumehost.api.kubernetes.codec import ListMeta
from volumehost.errors import GoneError

T = TypeVar("T")

#: Objects in one part.
PAGE = 500
#: How often a list that expired on the way is begun again in parts before it is asked for as a whole.
_ATTEMPTS = 2
_READ_SECONDS = 60.0


def pages(
    caller: Caller,
    asked: Asked,
    query: Mapping[str, str],
    read: Callable[[bytes], tuple[list[T], ListMeta]],
    *,
    size: int = PAGE,
    patient: bool = True,
) -> Iterator[tuple[list[T], str, bool]]:
    """The parts of a list as they come: items, the list's version, and whether everything begins anew with it.

    Parts of one list are of one state. When that is forgotten before the last part was read (410), the list begins
    anew, in the end in one piece.

    :param read: makes items of the body of an answer.
    :raises ApiError: it cannot be read.
    """
    attempts = 0
    token = ""
    while True:
        wanted = dict(query)
        if attempts < _ATTEMPTS:
            wanted["limit"] = str(size)
        if token:
            wanted["continue"] = token
        try:
            body = caller.call(asked, wanted, patient=patient, read_seconds=_READ_SECONDS)
        except GoneError:
            if not token:
                raise
            attempts, token = attempts + 1, ""
            continue
        items, meta = read(body)
        yield items, meta.resource_version, not token
        token = meta.continue_
        if not token:
            return
