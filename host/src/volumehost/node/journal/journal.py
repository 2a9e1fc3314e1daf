"""The volume manager's journal: intents made durable before steps that reach outside, outcomes written lazily.

One append-only file. Operations that run at the same time share a sync. Losing an outcome only turns "done" into
"uncertain", and every step can be repeated.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from volumehost.errors import RootDirectoryError
from volumehost.hosts.root_dir import root_directory_error
from volumehost.node.journal.format import (
    LOST,
    MOUNTED,
    MOUNTING,
    UNCERTAIN,
    UNMOUNTING,
    JournalContents,
    encode,
    header,
    key_of,
    parse,
    snapshot,
    text_in,
)
from volumehost.node.journal.records import Fields, Key, Records, decode_text, encode_text

logger = logging.getLogger(__name__)

#: A journal larger than this many bytes is rewritten when to read it takes so many times as long as what it has to say,
#: so that the next start has little to read; a moment after a burst, and at the end, a little sooner.
COMPACT_ABOVE = 1 << 16
COMPACT_FACTOR = 2.0
COMPACT_FACTOR_AT_LEISURE = 1.2
COMPACT_FACTOR_AT_END = 1.05

#: What it takes to read a line beside its text, in bytes of that.
_LINE_COST = 300

_MAYBE_MOUNTED = (MOUNTING, MOUNTED, UNMOUNTING, UNCERTAIN)


def read_boot_id() -> str:
    """The kernel's id of the present boot, "" when it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_journal(path: str, *, opener: Callable[[str, int], int] | None = None) -> JournalContents:
    """What the journal says now, without locking or changing anything; for status and for inspection.

    :param opener: opens the file, as for :func:`open`.
    :raises RootDirectoryError: it is there and cannot be read.
    """
    try:
        with open(path, "rb", opener=opener) as file:
            return parse(file.read())
    except FileNotFoundError:
        return JournalContents(intact=False, notes=["there is no journal"])
    except OSError as error:
        raise root_directory_error(error, path, f"reading the journal {path}") from error


class Journal:
    """Writes the journal of one root directory; safe for threads. One process at a time (the root lock sees to it)."""

    def __init__(
        self,
        path: str,
        *,
        boot_id: str,
        wall_clock: Callable[[], float] = time.time,
        compact_above: int = COMPACT_ABOVE,
    ) -> None:
        self._path = path
        self._boot_id = boot_id
        self._wall_clock = wall_clock
        self._compact_above = compact_above
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._descriptor = -1
        self._size = self._lines = 0
        self._live = Records()
        self._complete = False
        self._lazy: list[bytes] = []
        self._flush_arranged = False
        #: What it took to read the file when a compaction failed, so that the next one is tried a good deal later.
        self._refused_at = 0
        self._written = 0
        self._synced = 0

    def open(self) -> JournalContents:
        """Read what is there, make the file ready for appending, and return what it said.

        A damaged journal, one of a newer version, and what cannot be read at all is kept beside under another name.
        After a reboot the mounts of the former boot are recorded as lost.

        :raises RootDirectoryError: the file can be neither read, nor moved, nor written.
        """
        contents = self._read()
        rebooted = bool(contents.boot_id) and contents.boot_id != self._boot_id
        self._live, self._complete = contents.records, contents.complete and contents.intact
        if rebooted:
            _lose_mounts(contents)
        for note in contents.notes:
            if contents.exists:
                logger.warning("journal %s: %s", self._path, note)
        self._size, self._lines = contents.good_bytes, contents.lines
        try:
            if contents.exists and (contents.newer_version or not contents.intact):
                self._keep_aside("newer" if contents.newer_version else "damaged")
            if contents.exists and contents.intact and not rebooted and not self._is_too_large():
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                os.ftruncate(self._descriptor, contents.good_bytes)
                os.lseek(self._descriptor, 0, os.SEEK_END)
            else:
                self._rewrite()
        except OSError as error:
            raise root_directory_error(error, self._path, f"opening the journal {self._path}") from error
        return contents

    def write(self, *records: Fields) -> int:
        """Append records; returns a ticket for :meth:`sync`. Not durable yet.

        :raises RootDirectoryError: the filesystem refused, for example because it is full; nothing was appended.
        """
        lines = [encode(record) for record in records]
        with self._lock:
            try:
                self._append(b"".join([*self._lazy, *lines]))
            except OSError as error:
                raise root_directory_error(error, self._path, f"writing the journal {self._path}") from error
            self._lazy.clear()
            for record, line in zip(records, lines, strict=True):
                self._live.merge(key_of(record), text_in(line), gone=bool(record.get("gone")))
            if self._is_too_large():
                self._compact()
            self._written += 1
            return self._written

    def note(self, *records: Fields, only_known: bool = False) -> bool:
        """Record outcomes: they reach the file with the next intent, or by :meth:`flush`.

        Returns whether somebody should arrange for :meth:`arranged_flush`: nobody has since the last one.

        :param only_known: leave out what nothing is recorded of, so that nothing that is gone comes back.
        """
        with self._lock:
            if only_known:
                records = tuple(record for record in records if self._live.text(key_of(record)) is not None)
            for record in records:
                line = encode(record)
                self._live.merge(key_of(record), text_in(line), gone=bool(record.get("gone")))
                self._lazy.append(line)
            arranged, self._flush_arranged = self._flush_arranged, True
            return not arranged

    def mark_complete(self) -> None:
        """From now on the journal tells of every volume here: what was found in directories is recorded (RECON).

        Best effort: without it the next start looks at the directories again.
        """
        with self._lock:
            if self._complete:
                return
            try:
                head = header(self._boot_id, self._wall_clock(), complete=True)
                self._append(b"".join([*self._lazy, head]))
            except OSError as error:
                logger.warning("the journal could not be marked as complete: %s", error)
                return
            self._lazy.clear()
            self._complete = True

    def arranged_flush(self) -> None:
        """The flush that :meth:`note` asked for; after it the file is not left much larger than it has to be."""
        self._flush_arranged = False
        self.flush()
        with self._lock:
            self._live.tidy_up()
            if self._descriptor >= 0 and self._is_too_large(COMPACT_FACTOR_AT_LEISURE):
                self._compact()

    def flush(self) -> None:
        """Append the outcomes that wait: best effort, because losing them does no harm."""
        if self._lazy:
            try:
                self.write()
            except RootDirectoryError as error:
                logger.warning("outcomes could not be recorded yet: %s", error)

    def sync(self, ticket: int) -> None:
        """Return when what got this ticket is durable; concurrent callers share one ``fdatasync``.

        :raises RootDirectoryError: the kernel could not write it out.
        """
        if self._synced >= ticket:
            return
        with self._sync_lock:
            if self._synced >= ticket:
                return
            try:
                with self._lock:
                    # A descriptor of our own: a compaction may close the file's own while this one syncs.
                    upto, descriptor = self._written, os.dup(self._descriptor)
                try:
                    os.fdatasync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise root_directory_error(error, self._path, f"syncing the journal {self._path}") from error
            self._synced = upto

    def entry(self, volume: str, pod: str = "") -> dict[str, Any] | None:
        """What is recorded of the key."""
        with self._lock:
            text = self._live.text((volume, pod))
        return decode_text(text) if text is not None else None

    def text(self, volume: str, pod: str = "") -> bytes | None:
        """What is recorded of the key, as JSON text."""
        with self._lock:
            return self._live.text((volume, pod))

    def has(self, volume: str, pod: str = "") -> bool:
        """Whether anything is recorded of the key; much cheaper than :meth:`entry`."""
        with self._lock:
            return self._live.text((volume, pod)) is not None

    def keys_of_pod(self, pod: str) -> list[Key]:
        """All keys that concern the pod."""
        with self._lock:
            return self._live.keys_of_pod(pod)

    def entries(self) -> dict[Key, dict[str, Any]]:
        """All that is recorded."""
        with self._lock:
            texts = list(self._live.texts())
        return {key: decode_text(text) or {} for key, text in texts}

    @property
    def size(self) -> int:
        """Bytes of its file."""
        return self._size

    def close(self) -> None:
        """Make everything durable and close; nothing happens when it is not open."""
        if self._descriptor >= 0:
            self.flush()
        with self._sync_lock, self._lock:
            if self._descriptor >= 0 and self._is_too_large(COMPACT_FACTOR_AT_END):
                self._compact()
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.fdatasync(descriptor)
                os.close(descriptor)

    # --- inside the lock --------------------------------------------------------------------------------------

    def _is_too_large(self, factor: float = COMPACT_FACTOR) -> bool:
        """Whether to read the file takes so many times as long as what it has to say."""
        said = self._live.size - self._live.replaced + _LINE_COST * len(self._live)
        return self._size > self._compact_above and self._cost > factor * max(said, self._refused_at)

    @property
    def _cost(self) -> int:
        """What it takes to read the file, in bytes."""
        return self._size + _LINE_COST * self._lines

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            # Half a record must not stand before the next one.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
                os.lseek(self._descriptor, self._size, os.SEEK_SET)
            raise
        self._size += len(data)
        self._lines += data.count(b"\n")

    def _compact(self) -> None:
        former, former_size, former_lines = self._descriptor, self._size, self._lines
        try:
            self._rewrite()
        except OSError as error:
            logger.warning("the journal %s could not be compacted, it grows on: %s", self._path, error)
            self._descriptor, self._size, self._lines = former, former_size, former_lines
            self._refused_at = self._cost  # do not try again before it has grown a good deal
            return
        self._refused_at = 0
        os.close(former)

    def _rewrite(self) -> None:
        """Replace the file by a snapshot, durably, and append to that from now on."""
        self._live.tidy_up()
        data = snapshot(
            (text for _, text in self._live.texts()), self._boot_id, self._wall_clock(), complete=self._complete
        )
        # Opened first: after the rename nothing may fail, or what is appended would go to a file without a name.
        directory = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._descriptor = self._replace_file(data)
            self._size, self._lines = len(data), data.count(b"\n")
            _sync_directory(directory, self._path)
        finally:
            os.close(directory)

    def _replace_file(self, data: bytes) -> int:
        temporary = f"{self._path}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
            os.rename(temporary, self._path)
        except OSError:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return descriptor

    def _read(self) -> JournalContents:
        """What is there; nothing, when that cannot be read and is moved out of the way: a directory, a bad sector."""
        try:
            return read_journal(self._path)
        except RootDirectoryError as error:
            free = (f"{self._path}.damaged-{number}" for number in range(1000))
            aside = next(path for path in free if not os.path.lexists(path))
            try:
                os.rename(self._path, aside)
            except OSError:
                raise error from None
            logger.warning("the journal cannot be read, and was moved to %s: %s", aside, error)
            return JournalContents(intact=False, notes=[f"the journal could not be read and is now {aside}"])

    def _keep_aside(self, kind: str) -> None:
        """Link the present file to a name of its own: evidence for people, and not lost to a newer program."""
        for number in range(1000):
            try:
                os.link(self._path, f"{self._path}.{kind}-{number}", follow_symlinks=False)
            except FileExistsError:
                continue
            logger.warning("the %s journal is kept as %s.%s-%d", kind, self._path, kind, number)
            return


def _lose_mounts(contents: JournalContents) -> None:
    """No mount survives a reboot, whatever the records say; directories and attachments may."""
    for record in list(contents.for_restart()):
        lost = {}
        if record.state in _MAYBE_MOUNTED:
            lost["state"] = LOST
        if record.dev in _MAYBE_MOUNTED:
            lost["dev"] = LOST
        if lost:
            contents.records.merge((record.v, record.p), encode_text({"v": record.v, "p": record.p, **lost}))


def _sync_directory(descriptor: int, path: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        logger.warning("after a power failure the journal %s may be an older one: %s", path, error)
