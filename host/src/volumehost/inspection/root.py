"""Recognises whose root directory it is, and who works on it now."""

from __future__ import annotations

import os
from typing import Final

from volumehost.errors import ObjectNotFoundError, RootDirectoryError
from volumehost.hosts.lock import lock_holder
from volumehost.hosts.root_dir import resolve_root_dir, root_directory_error
from volumehost.inspection.processes import kubelet_at_work
from volumehost.inspection.report import RootKind
from volumehost.inspection.tree import open_quietly
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.places import ANSWER_SECONDS
from volumehost.sdk.directories import DIRECTORY_FLAGS

#: What this host keeps in its root directory, and a kubelet does not.
_OWN_ENTRIES: Final = frozenset(
    {"volumes.journal", "store.sqlite3", "manager.lock", "drivers", "tokens.key", "reserve", "config.toml", "node-name"}
)
_SHARED_ENTRIES: Final = frozenset({"pods", "plugins"})


def find_root(path: str) -> tuple[str, RootKind]:
    """The root directory in its one form, and whose it is.

    :raises ObjectNotFoundError: there is nothing.
    :raises RootDirectoryError: it is not the root directory of a host of volumes.
    """
    action = f"inspecting {path}"
    try:
        root, names = DeadlineRunner().run(_list, path, timeout=ANSWER_SECONDS, what=f"list {path}")
    except FileNotFoundError as error:
        raise ObjectNotFoundError(
            "there is no such directory", action=action, subject=path, hint="another one is given with --root-dir"
        ) from error
    except DeadlineExceededError as error:
        raise RootDirectoryError(
            f"it does not answer: {error}", action=action, subject=path, hint="its disk or server may be gone"
        ) from error
    except OSError as error:
        raise root_directory_error(error, path, action) from error
    if names & _OWN_ENTRIES:
        return root, RootKind.OWN
    if names & _SHARED_ENTRIES:
        return root, RootKind.KUBELET
    raise RootDirectoryError(
        "it is neither this host's root directory nor a kubelet's: it has no pods and no plugins",
        action=action,
        subject=path,
        hint="a kubelet's is usually /var/lib/kubelet; give the right one with --root-dir",
    )


def _list(path: str) -> tuple[str, frozenset[str]]:
    root = resolve_root_dir(path)
    descriptor = open_quietly(root, DIRECTORY_FLAGS)
    try:
        return root, frozenset(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def who_works_on(root: str, kind: RootKind) -> str:
    """Who works on it now, "" for nobody and for this process itself. Takes no lock."""
    if kind is RootKind.KUBELET:
        return kubelet_at_work(root)
    pid = lock_holder(root)
    if pid in (None, os.getpid()):
        return ""
    return f"process {pid}" if pid else "a process of another container"
