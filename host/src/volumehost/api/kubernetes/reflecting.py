"""The list that an informer begins with: bodies as they came, read no further. Used by ``informer``."""

from __future__ import annotations

from collections.abc import Mapping

from volumehost.api.kubernetes.asking import Asked
from volumehost.api.kubernetes.caller import Caller
from volumehost.api.kubernetes.codec import ListMeta, read_raw_list
from volumehost.api.kubernetes.paging import pages


def list_bodies(caller: Caller, asked: Asked, query: Mapping[str, str]) -> tuple[list[bytes], str]:
    """All bodies and the version of the list. One attempt: whoever calls waits before the next.

    :raises ApiError: it cannot be read.
    """

    def read(body: bytes) -> tuple[list[bytes], ListMeta]:
        found = read_raw_list(asked.kind, body)
        # Copies, which let go of the answer that they came in.
        return [bytes(item) for item in found.items or ()], found.metadata

    bodies: list[bytes] = []
    version = ""
    for part, version, first in pages(caller, asked, query, read, patient=False):  # noqa: B007
        bodies = part if first else bodies + part
    return bodies, version
