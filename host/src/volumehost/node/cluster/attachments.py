"""Volumes that a controller attaches: reported as in use before they are mounted, mounted once they are attached.

The volume manager of a node in a cluster has one of these in the place of an attacher (VERIFY-01 to -04, RECON-L-22).
It follows the Node object by a watch, and writes to it only what has changed.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from volumehost.errors import (
    ConflictError,
    InvalidObjectError,
    ObjectNotFoundError,
    PluginLookupError,
    VolumeHostError,
)
from volumehost.node.cluster.node_view import MANAGED_ANNOTATION, NodeView, changed_volumes
from volumehost.node.cluster.node_watch import RETRY_MAXIMUM_SECONDS, RETRY_SECONDS, NodeWatch
from volumehost.node.operations.common import plugin_user
from volumehost.node.state.states import Attachability

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Node
    from volumehost.node.operations.common import Services
    from volumehost.node.state.records import AttachedVolume

logger = logging.getLogger(__name__)

#: How often, in seconds, it is looked whether node status says what it should, should nobody have told. Costs no
#: request when it does.
LOOK_SECONDS: Final = 10.0


class StatusPatcher(Protocol):
    """What an ApiClient of a cluster offers besides."""

    def patch_status(self, kind: type[Node], name: str, patch: dict[str, Any], namespace: str = "") -> Node:
        """Apply a JSON merge patch to the status alone."""
        ...


class ControllerAttachments:
    """Safe for threads.

    :param node_name: the node.
    :param api: the API of the cluster, None where there is none.
    """

    def __init__(self, node_name: str, api: Callable[[], ApiClient | None]) -> None:
        #: Whether all pods are known: until then a volume that node status lists as in use stays there (RECON-L-05).
        self.complete: Callable[[], bool] = lambda: False
        #: Whether everything is being taken off the node: then what is wanted is not in use for that.
        self.drains: Callable[[], bool] = lambda: False
        #: Called with the volumes of which node status says something else now, on a thread that it may use.
        self.changed: Callable[[Iterable[str]], None] = lambda volumes: None  # noqa: ARG005 - nobody listens yet
        self._node_name = node_name
        self._api = api
        self._services: Services | None = None
        self._lock = threading.Lock()
        self._node: NodeView | None = None
        self._refusal = ""
        self._watch = NodeWatch(node_name, api, self._seen)
        #: What was written last, or is being written; whether that failed, so that it may have come about or not; and
        #: whether it was said that somebody else writes the same.
        self._written: frozenset[str] | None = None
        self._unsure = False
        self._told_of_others = False
        self._wake = threading.Event()
        self._passed = threading.Event()
        self._again = threading.Event()
        self._stop = threading.Event()

    def start(self, services: Services) -> None:
        """Follow the Node and tell it what is in use, from now on."""
        self._services = services
        self._watch.start()
        threading.Thread(target=self._tell, name="volumehost-node-status", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._watch.stop()
        self._stop.set()
        self._wake.set()
        self._again.set()
        self._passed.set()

    # --- for the manager ------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """What is in use may have changed: look soon."""
        self._wake.set()

    def may_be_used(self, volume: str) -> bool:
        """Whether the volume is reported as in use and attached; the manager hears when that changes."""
        with self._lock:
            usable = self._usable(volume) is not None
        if not usable:
            self.wake()
        return usable

    def _usable(self, volume: str) -> NodeView | None:
        """The state by which the volume may be used. None while it is just being taken out of those in use: the
        controller may detach it from then on. Called with the lock.
        """
        node, written = self._node, self._written
        if node is None or volume not in node.usable or (written is not None and volume not in written):
            return None
        return node

    def device_path(self, volume: str) -> str | None:
        """The device path that node status has for an attached volume, "" too is one (VERIFY-03); None without one."""
        with self._lock:
            node = self._usable(volume)
        return node.attached.get(volume) if node is not None else None

    def waits_for(self, volume: str) -> str:
        """What has to happen before the volume may be used, "" for nothing."""
        node = self._node
        if node is None:
            return self.problem or f"the Node object {self._node_name}, which is not known yet"
        written = self._written
        if volume not in node.in_use or (written is not None and volume not in written):
            told = f": {self._refusal}" if self._refusal else ""
            return f"node status to list it in volumesInUse{told}"
        if volume not in node.attached:
            return "the attach/detach controller: it is not in volumesAttached of the node's status yet"
        return ""

    def forget(self, volume: AttachedVolume) -> None:
        """Nothing of the volume is on the node any more: the controller may detach it (RECON-L-31)."""
        services = self._services
        if services is None:
            return
        services.actual.mark_detached(volume.name)
        services.note({"v": volume.name, "gone": True})
        self.wake()
        with contextlib.suppress(PluginLookupError):  # it has been uninstalled: nobody is held up
            plugin = services.plugins.find_attachable_plugin_by_name(volume.plugin_name)
            if plugin is not None:
                plugin.release(plugin_user(volume.name, ""))

    @property
    def problem(self) -> str:
        """What keeps node status from being read or written, "" for nothing."""
        return self._watch.problem or self._refusal

    @property
    def node_uid(self) -> str:
        """The uid of the Node object, "" while there is none or it is not known."""
        node = self._node
        return node.uid if node is not None else ""

    def in_use(self) -> set[str]:
        """What node status is to list: volumes that are attached, may be, or are wanted and have to be (VM-14)."""
        services = self._services
        if services is None:
            return set()
        wanted = set() if self.drains() else services.desired.attachable_volumes()
        return wanted | services.actual.possibly_attached()

    def flush(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until node status lists what is in use and nothing else; whether it does."""
        deadline = time.monotonic() + timeout
        while (node := self._node) is not None and node.in_use != self.in_use():
            left = deadline - time.monotonic()
            if left <= 0 or self._stop.is_set():
                return False
            self._passed.clear()
            self.wake()
            self._passed.wait(left)
        return True

    # --- following the Node ---------------------------------------------------------------------------------------

    def _seen(self, node: Node | None) -> None:
        """Take a state of the Node over; those who wait for what it says go on."""
        now = NodeView.of(node) if node is not None else None
        with self._lock:
            former = self._node
            if now is not None and former is not None and now.is_older_than(former):
                return
            self._node = now
        self._look_for_others(former, now)
        if now is None:
            self._watch.tell_problem(f"there is no Node object {self._node_name}: no volume can be attached to it")
        else:
            self._watch.tell_problem("")
            if former is None or former.uid != now.uid:
                again = " anew" if former is not None else ""
                logger.info("the Node %s is known%s, with uid %s", self._node_name, again, now.uid)
                self._again.set()
        services = self._services
        if services is None:
            return
        changed = changed_volumes(former, now) | self._resolve(services, now)
        if changed:
            services.desired.mark_reported_in_use(list(now.in_use) if now is not None else [])
            self.changed(changed)
        self._wake.set()

    def _look_for_others(self, former: NodeView | None, now: NodeView | None) -> None:
        """Say once that somebody else writes what is in use here: a kubelet that runs for the same Node would."""
        if former is None or now is None or former.uid != now.uid or now.in_use == former.in_use:
            return
        if self._written is not None and now.in_use != self._written and not self._told_of_others:
            self._told_of_others = True
            logger.warning(
                "volumesInUse of the Node %s was changed by somebody else: does a kubelet run for it too? "
                "Volumes may be detached that are mounted here",
                self._node_name,
            )

    def _resolve(self, services: Services, node: NodeView | None) -> set[str]:
        """Settle which of the volumes that a restart found in directories alone are attached (RECON-30 to -32)."""
        names = services.actual.uncertain_attachability() if node is not None else []
        for name in names:
            path = node.attached.get(name) if node is not None else None
            services.actual.set_attachability(name, Attachability.FALSE if path is None else Attachability.TRUE, path)
        return set(names)

    # --- telling it ------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        delay = RETRY_SECONDS
        while not self._stop.is_set():
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
            self._again.clear()
            try:
                self._write()
                self._refusal, delay = "", RETRY_SECONDS
                self._passed.set()
            except VolumeHostError as error:
                if self._stop.is_set():
                    return
                log = logger.debug if str(error) == self._refusal else logger.warning
                self._refusal = str(error)
                log("node status is not up to date, tried again in %.1f s: %s", delay, error)
                asked = getattr(error, "retry_after", None)
                pause = max(delay, asked) if isinstance(asked, int | float) else delay
                self._again.wait(pause * random.uniform(1.0, 1.2))  # noqa: S311 - spreads retries, guards nothing
                delay = min(2 * delay, RETRY_MAXIMUM_SECONDS)
                self._wake.set()
            except Exception:
                logger.exception("node status of %s cannot be kept up to date", self._node_name)
                self._stop.wait(RETRY_MAXIMUM_SECONDS)

    def _write(self) -> None:
        """Have the Node say what is in use, and that the controller is to attach; nothing when it does."""
        from volumehost.api.objects import Node

        api, node = self._api(), self._node
        if api is None or node is None:
            return
        if self._services is not None and (settled := self._resolve(self._services, node)):
            self.changed(settled)
        with self._lock:  # who is told that a volume may be used is either in this, or told after it
            node = self._node
            if node is None:
                return
            wanted = self.in_use()
            if not self.complete():
                wanted |= node.in_use
            self._written = frozenset(wanted)
            right = wanted == node.in_use and not self._unsure
            self._unsure = self._unsure or not right
        if not right:
            status = {"metadata": {"uid": node.uid}, "status": {"volumesInUse": sorted(wanted) or None}}
            patcher: StatusPatcher = api  # type: ignore[assignment]  # the client of a cluster has it
            self._patched(lambda: patcher.patch_status(Node, self._node_name, status))
            self._unsure = False
        if not node.managed:
            # Last: from then on the controller detaches what is not in use.
            change = {"metadata": {"uid": node.uid, "annotations": {MANAGED_ANNOTATION: "true"}}}
            self._patched(lambda: api.patch(Node, self._node_name, change))

    def _patched(self, patch: Callable[[], Node]) -> None:
        try:
            node = patch()
            known = self._node
            if known is not None and known.uid == node.metadata.uid:  # else the watch has told of its end already
                self._seen(node)
        except (ConflictError, InvalidObjectError, ObjectNotFoundError) as error:
            # Another Node of that name, or none: the watch tells.
            raise VolumeHostError(
                f"it is not the one that is known here: {error.reason}",
                action=f"writing to the Node {self._node_name}",
                subject=self._node_name,
            ) from error
