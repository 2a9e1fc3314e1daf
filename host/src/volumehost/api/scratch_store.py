"""A copy of the embedded store to try changes in: what ``plan`` works on, so that nothing of it is ever seen."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from volumehost.api.read_only_store import copy_store, directory_for_copies
from volumehost.api.store import EmbeddedStore
from volumehost.errors import StoreError


@contextmanager
def scratch_store(path: str) -> Iterator[EmbeddedStore]:
    """A store of its own with what the file holds now, in a private directory that goes with the block.

    :param path: the file; one that is not there is an empty store. It is only read.
    :raises StoreError: it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="volumehost-scratch-", dir=directory_for_copies()) as directory:
        target = os.path.join(directory, "store.sqlite3")
        if os.path.lexists(path):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise StoreError(f"{path} is not a regular file", action="read the store", subject=path)
            copy_store(path, target)
        with EmbeddedStore(target) as store:
            yield store
