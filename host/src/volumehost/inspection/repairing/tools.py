"""What repairs work with: the lock of the root directory, a host with its plugins, the journal; each when needed."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from volumehost.errors import FailedPreconditionError, RootDirectoryLockedError, VolumeHostError
from volumehost.hosts.layout import Layout
from volumehost.hosts.lock import RootDirLock
from volumehost.inspection.processes import kubelet_at_work
from volumehost.inspection.report import RootKind
from volumehost.node.journal.journal import Journal, read_boot_id
from volumehost.sdk.directories import DIRECTORY_FLAGS

if TYPE_CHECKING:
    from volumehost.api.store import EmbeddedStore
    from volumehost.host_services import MountInterface
    from volumehost.hosts.node_host import NodeHost
    from volumehost.loader.manager import VolumePluginManager

logger = logging.getLogger(__name__)


@contextmanager
def exclusive(root: str, kind: RootKind, *, while_kubelet_runs: bool = False) -> Iterator[None]:
    """Nobody else works on the root directory while the block runs.

    :raises RootDirectoryLockedError: an agent, a command or another repair does.
    :raises FailedPreconditionError: a kubelet does, and that was not allowed.
    """
    if kind is RootKind.OWN:
        lock = RootDirLock(root)
        lock.acquire()
        try:
            yield
        finally:
            lock.release()
        return
    kubelet = kubelet_at_work(root)
    if kubelet and not while_kubelet_runs:
        raise FailedPreconditionError(
            f"{kubelet} works on it",
            action=f"repairing {root}",
            subject=root,
            hint="stop the kubelet, or give --while-kubelet-runs: it may then mount what is just being unmounted",
        )
    descriptor = os.open(root, DIRECTORY_FLAGS)  # nothing is made there, so the directory itself is locked
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RootDirectoryLockedError(
            "another repair works on it", action=f"repairing {root}", subject=root, hint="wait until it has ended"
        ) from None
    finally:
        os.close(descriptor)


def names_of_plugins() -> frozenset[str]:
    """The plugins that could be loaded, of which none is initialised."""
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.loader.prober import EntryPointProber

    manager = VolumePluginManager(inspect_only=True)
    manager.init_plugins((), EntryPointProber())
    try:
        return frozenset(plugin.name for plugin in manager.loaded_plugins())
    finally:
        manager.close()


class Tools:
    """A host on the root directory, as a context manager: plugins, mounts, and the journal when it is asked for.

    :param given: plugins besides those that are installed.
    :param with_plugins: load the plugins, which then may start drivers and look at those that have registered.
    """

    def __init__(self, root: str, kind: RootKind, given: Sequence[object] = (), *, with_plugins: bool) -> None:
        self.root = root
        self._kind = kind
        self._given = given
        self._with_plugins = with_plugins
        self._journal: Journal | None = None
        self._store: EmbeddedStore | None = None

    def __enter__(self) -> Self:
        from volumehost.loader.manager import VolumePluginManager

        self.plugins: VolumePluginManager = VolumePluginManager()
        self.host: NodeHost = self._make_host()
        if self._with_plugins:
            from volumehost.loader.prober import EntryPointProber

            for error in self.plugins.init_plugins(self._given, EntryPointProber(), self.host):
                logger.warning("%s", error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()
        for error in self.plugins.close():
            logger.warning("%s", error)
        if self._store is not None:
            self._store.close()

    @property
    def mounter(self) -> MountInterface:
        """The kernel's mounts."""
        return self.host.get_mounter()

    @property
    def plugin_names(self) -> frozenset[str]:
        """Names of the plugins that are loaded."""
        return frozenset(plugin.name for plugin in self.plugins.loaded_plugins()) if self._with_plugins else frozenset()

    @property
    def journal(self) -> Journal:
        """The journal, opened now if it was not.

        :raises RootDirectoryError: it can be neither read nor written.
        """
        if self._journal is None:
            journal = Journal(Layout(self.root).journal_file(), boot_id=read_boot_id())
            journal.open()
            self._journal = journal
        return self._journal

    def _make_host(self) -> NodeHost:
        if self._kind is RootKind.KUBELET:
            from volumehost.hosts.node_host import NodeHost

            return NodeHost(self.root, plugin_manager=self.plugins)
        from volumehost.hosts.standalone_host import StandaloneHost

        there = os.path.lexists(Layout(self.root).store_file())
        return StandaloneHost(self.root, api=self._open_store if there else None, plugin_manager=self.plugins)

    def _open_store(self) -> EmbeddedStore:
        from volumehost.api.store import EmbeddedStore

        self._store = EmbeddedStore(Layout(self.root).store_file())
        return self._store


def is_absent(error: VolumeHostError) -> bool:
    """Whether nothing was begun since the driver is not there, or since nobody knows which volume it is."""
    from volumehost.errors import MountError, OperationError, PluginError, RemovalError
    from volumehost.node.execution.backoff import absent_driver

    return absent_driver(error) is not None or not isinstance(
        error, OperationError | MountError | RemovalError | PluginError
    )
