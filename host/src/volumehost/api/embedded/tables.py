"""The tables of the store file, its version, and the steps from one version to the next."""

from __future__ import annotations

import sqlite3

from volumehost.errors import StoreError

#: Marks the file as ours ("vhst"), so that another program's database is never touched.
APPLICATION_ID = 0x76687374

#: ``objects`` holds the present state, ``changes`` the recent history for watchers. Both hold whole objects as JSON.
#: ``identity`` tells this store from another one that came in its place.
_VERSION_1 = """
CREATE TABLE objects (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE changes (
    resource_version INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    type TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE versions (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    latest INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    identity TEXT NOT NULL
);
INSERT INTO versions VALUES (1, 0, 0, lower(hex(randomblob(16))));
"""

#: One script for each version; opening an older file runs those that it lacks, in one transaction.
MIGRATIONS: tuple[str, ...] = (_VERSION_1,)
SCHEMA_VERSION = len(MIGRATIONS)


def bring_up_to_date(connection: sqlite3.Connection, path: str, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Create the tables in a new file, or take an older file to the present version.

    :raises StoreError: the file is newer than this program, or something else's.
    """
    if _version(connection, path) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        version = _version(connection, path)
        if version > len(migrations):
            raise StoreError(
                f"{path} has version {version} and this program knows {len(migrations)}",
                action="open the store",
                subject=path,
                hint="it was written by a newer volumehost: upgrade this one; the file has been left as it is",
            )
        for script in migrations[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str) -> int:
    """The file's version, 0 for a new file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application == APPLICATION_ID:
        return version
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application or version or tables:
        raise StoreError(
            f"{path} is a database of another program",
            action="open the store",
            subject=path,
            hint="it has been left as it is: choose another root directory, or move the file aside",
        )
    return 0
