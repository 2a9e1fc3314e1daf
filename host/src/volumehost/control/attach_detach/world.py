"""World: what the two controllers of attach/detach share, and how it is rebuilt when they start (ADC-01 to -05)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volumehost.control.attach_detach.attachments import Attachment, Attachments
from volumehost.control.attach_detach.maybe_attached import read_marks
from volumehost.control.attach_detach.node_status import NodeStatuses
from volumehost.control.attach_detach.nodes import KnownNodes, NodeFacts
from volumehost.control.attach_detach.pod_volumes import may_attach, volumes_to_attach
from volumehost.control.attach_detach.wishes import Pair, Wishes
from volumehost.control.machinery.controller import Key
from volumehost.control.translation import translated
from volumehost.control.well_known import FINISHED_PHASES
from volumehost.control.writes import get_or_none
from volumehost.errors import ApiError, VolumeHostError
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Node, PersistentVolume, Pod, VolumeAttachment
    from volumehost.control.machinery.controller import ControlContext

logger = logging.getLogger(__name__)

#: How long a volume may stay in use on a node that is not healthy when nobody wants it there any more (CONST-07).
MAX_WAIT_FOR_UNMOUNT: Final = 360.0
#: For how long nobody tries again after the start could not be done, in seconds.
_PAUSE: Final = 1.0
#: How long after the start it is looked once more what is attached, in seconds: a request of whoever led before may
#: have been under way when this one looked first.
SECOND_LOOK_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class AttachDetachSettings:
    """How it goes about it.

    :param max_wait_for_unmount: seconds after which a volume is taken from an unhealthy node that still uses it; None
        for never (ADC-34).
    """

    max_wait_for_unmount: float | None = MAX_WAIT_FOR_UNMOUNT


class World:
    """Safe for threads.

    :param live: an API that answers with what is so now, where the context's answers from caches.
    :param look_at_pairs: have the controller of pairs look at these; ``look_at_pods`` that of pods.
    """

    def __init__(
        self,
        context: ControlContext,
        live: ApiClient,
        *,
        look_at_pairs: Callable[[Iterable[Pair]], None],
        look_at_pods: Callable[[Iterable[Key]], None],
        settings: AttachDetachSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.context = context
        self.settings = settings
        self.clock = clock
        self.look_at_pairs = look_at_pairs
        self._look_at_pods = look_at_pods
        self.wishes = Wishes()
        self.attachments = Attachments(clock)
        self.nodes = KnownNodes()
        self.statuses = NodeStatuses(context.api, live, self.attachments)
        self._lock = threading.Lock()
        self._ready = False
        self._second_look_at: float | None = None
        self._failure: tuple[float, ApiError] | None = None

    @property
    def ready(self) -> bool:
        """Whether :meth:`ensure` has succeeded."""
        return self._ready

    def ensure(self) -> None:
        """Know what there is before anything is done; costs nothing later.

        :raises ApiError: it cannot be read. Nothing is attached or detached then.
        """
        if self._ready:
            return
        with self._lock:
            if self._ready:
                return
            if self._failure is not None and self.clock() - self._failure[0] < _PAUSE:
                raise self._failure[1]
            try:
                self._read_all()
            except ApiError as error:
                self._failure = self.clock(), error
                raise
            self._second_look_at = self.clock() + SECOND_LOOK_SECONDS
            self._ready = True
        self._look_at_pods(self.wishes.pods())
        self.look_at_pairs({*self.attachments.pairs(), *self.wishes.pairs()})

    def look_again(self) -> float | None:
        """Take over what was written for whoever led before, when this one had looked already; seconds until that."""
        due = self._second_look_at
        if due is None:
            return None
        if due > self.clock():
            return due - self.clock()
        self._take_over_attachments()
        self._second_look_at = None
        self.look_at_pairs(self.attachments.pairs())
        return None

    def take_over_node(self, name: str) -> None:
        """A controller attaches for the node from now on: know what is attached to it."""
        from volumehost.api.objects import Node, Pod

        api = self.context.api
        node = get_or_none(api, Node, name)
        if node is None or not self.is_managed(name):
            return
        # First what is wanted: what nobody wants is detached.
        pods = self._read_wishes(pod for pod in api.list(Pod).items if pod.spec.node_name == name)
        self._take_over_status(node)
        self._take_over_attachments(name)
        self._look_at_pods(pods)  # whatever has become of them meanwhile
        known = {*self.attachments.pairs(), *self.wishes.pairs()}
        self.look_at_pairs(pair for pair in known if pair.node == name)

    def is_managed(self, node: str) -> bool:
        """Whether a controller attaches for the node, as far as is known."""
        facts = self.nodes.get(node)
        return facts is not None and facts.managed

    # --- the start ------------------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        from volumehost.api.objects import Node, Pod

        api = self.context.api
        for node in api.list(Node).items:
            _, facts = self.nodes.see(node)
            if facts.managed:
                self._take_over_status(node)
        self._take_over_attachments()
        self._read_wishes(api.list(Pod).items)
        logger.info(
            "%d volumes are or may be attached, %d wanted", len(self.attachments.pairs()), len(self.wishes.pairs())
        )

    def _read_wishes(self, pods: Iterable[Pod]) -> list[Key]:
        """Know what these pods want; the pods that may want anything."""
        found = []
        for pod in pods:
            if may_attach(pod) and is_at_work(pod) and self.is_managed(pod.spec.node_name):
                volumes = volumes_to_attach(self.context.api, self.context.plugins, pod)
                key, complete = Key.of(pod), volumes.problem is None
                self.wishes.put(key, pod.metadata.uid, pod.spec.node_name, volumes.wanted, complete=complete)
                found.append(key)
        return found

    def _take_over_status(self, node: Node) -> None:
        """What is attached to a node by its status, and may be by the notes on it (ADC-02)."""
        name = node.metadata.name
        for volume, path in NodeFacts.of(node).attached:
            self.attachments.add(Pair(volume, name), Attachment(device_path=path, confirmed=True, reported=True))
        for volume in read_marks(node):
            self.attachments.add(Pair(volume, name), Attachment())

    def _take_over_attachments(self, node: str = "") -> None:
        """The VolumeAttachments that are not known yet, of one node, or of all that are managed here or not there."""
        from volumehost.api.objects import PersistentVolume, VolumeAttachment

        api = self.context.api
        attachments = api.list(VolumeAttachment).items
        volumes = {each.metadata.name: each for each in api.list(PersistentVolume).items}
        for attachment in attachments:
            where = attachment.spec.node_name
            facts = self.nodes.get(where)
            if (node or where) == where and (facts is None or facts.managed):
                self._take_over(attachment, volumes)

    def _take_over(self, attachment: VolumeAttachment, volumes: dict[str, PersistentVolume]) -> None:
        """A VolumeAttachment that node status does not tell of: it may be attached (ADC-03)."""
        from volumehost.api.objects import PersistentVolume

        source = attachment.spec.source
        volume = volumes.get(source.persistent_volume_name or "")
        if source.inline_volume_spec is not None:
            volume = PersistentVolume(spec=source.inline_volume_spec)
        if volume is None or not attachment.spec.attacher:
            logger.warning("VolumeAttachment %s names no volume that there is", attachment.metadata.name)
            return
        plugins = self.context.plugins
        try:
            spec = Spec.from_persistent_volume(translated(plugins, volume), read_only=False)
            plugin = plugins.find_plugin_by_spec(spec)
            pair = Pair(f"{plugin.name}/{plugin.get_volume_name(spec)}", attachment.spec.node_name)
        except VolumeHostError as error:
            logger.warning("VolumeAttachment %s is left alone: %s", attachment.metadata.name, error)
            return
        self.attachments.add(pair, Attachment(spec=spec))


def is_at_work(pod: Pod) -> bool:
    """Whether the pod is on a node and has not ended; one to be deleted has when nothing of it runs (UTIL-15)."""
    if not pod.spec.node_name or pod.status.phase in FINISHED_PHASES:
        return False
    if pod.metadata.deletion_timestamp is None:
        return True
    status = pod.status
    containers = (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
    return any(each.state.running is not None for each in containers)
