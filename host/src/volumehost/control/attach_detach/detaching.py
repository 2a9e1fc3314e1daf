"""Detaching one volume from one node: only when the node does not use it, or never will again (ADC-30 to -34)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from volumehost.control.attach_detach.attachments import DETACHING, Attachment
from volumehost.control.attach_detach.counted import Counted
from volumehost.control.attach_detach.maybe_attached import unmark
from volumehost.control.attach_detach.nodes import NodeFacts
from volumehost.control.machinery.counting import count_forced_detach
from volumehost.control.writes import get_or_none
from volumehost.errors import CapabilityMissingError, SpecError, UncertainProgressError
from volumehost.volumes import DeferredAttacher

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Node
    from volumehost.control.attach_detach.wishes import Pair
    from volumehost.control.attach_detach.world import World
    from volumehost.loader.loaded import LoadedPlugin

logger = logging.getLogger(__name__)

#: How long whoever detaches on our behalf may take until that counts as a failure, in seconds (CSI-ATT-15).
DETACH_SECONDS: Final = 120.0
#: For how long a volume that nobody is known to want stays because of a pod on its node that may want more than is
#: known, in seconds. A pod of which that never becomes known must not keep all volumes of its node.
UNCLEAR_SECONDS: Final = 360.0
#: How often it is looked at a node of which is not known what its pods want, or that uses the volume, in seconds;
#: mostly the end of that is told.
LOOK_SECONDS: Final = 30.0


class Detaching:
    """Safe for threads; one pair is worked on once at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._counted = Counted(world, "volume_detach")

    def detach(self, pair: Pair, known: Attachment) -> float | None:
        """Detach it as soon as that is safe; the seconds until the next look.

        :raises Exception: it failed; the volume may be attached or not (DETACH-03).
        """
        world = self._world
        facts = world.nodes.get(pair.node)
        if facts is not None and not facts.managed:
            world.attachments.remove(pair)  # the node does it itself
            return None
        if world.wishes.is_unclear(pair.node) and world.attachments.unwanted_for(pair) < UNCLEAR_SECONDS:
            return LOOK_SECONDS
        if known.under_way != DETACHING:
            wait = self._prepare(pair, known)
            if wait is not None:
                return wait
        try:
            with self._counted.call(pair):
                done = self._call(pair)
        except Exception:
            world.attachments.change(pair, under_way="", confirmed=False)
            raise
        if not done:
            return self._wait(pair)
        self._detached(pair)
        return None

    def forget(self, pair: Pair) -> None:
        """Somebody wants it again."""
        self._counted.forget(pair)

    # --- before -----------------------------------------------------------------------------------------------------

    def _prepare(self, pair: Pair, known: Attachment) -> float | None:
        """See to it that the node does not use the volume and cannot begin to; the seconds to wait where it does."""
        world, limit = self._world, self._world.settings.max_wait_for_unmount
        unwanted = world.attachments.unwanted_for(pair)
        expired = limit is not None and unwanted >= limit
        facts, in_use, forced = self._judge(pair, world.context.api, expired=expired)
        if in_use and forced:
            # Not on an old view: a cache that hears nothing any more has a node unhealthy for ever.
            facts, in_use, forced = self._judge(pair, world.context.uncached, expired=expired)
        if in_use and not forced:
            if limit is not None and not facts.healthy:
                return limit - unwanted
            return LOOK_SECONDS
        written = self._take_from_status(pair, known)
        if not forced and world.statuses.is_in_use(pair.node, pair.volume, written):
            world.attachments.change(pair, reported=known.reported)
            world.statuses.sync(pair.node)
            return LOOK_SECONDS
        if in_use:
            reason = "out-of-service" if facts.out_of_service else "timeout"
            count_forced_detach(world.context.metrics, reason)
            logger.warning(
                "detached though its node used it when last heard of: volume=%s node=%s reason=%s",
                pair.volume, pair.node, reason,
            )  # fmt: skip
        world.attachments.change(pair, under_way=DETACHING, since=world.clock())
        return None

    def _judge(self, pair: Pair, api: ApiClient, *, expired: bool) -> tuple[NodeFacts, bool, bool]:
        """The node, whether it uses the volume, and whether that is no reason any more to keep the volume there."""
        from volumehost.api.objects import Node

        node = get_or_none(api, Node, pair.node)
        facts = NodeFacts.of(node) if node is not None else NodeFacts()
        forced = (expired and not facts.healthy) or facts.out_of_service
        return facts, self._is_in_use(pair, node), forced

    def _is_in_use(self, pair: Pair, node: Node | None) -> bool:
        """What the node said last; of one that is gone and was never seen nothing is known: the safe side (ADC-21)."""
        if node is not None:
            return pair.volume in node.status.volumes_in_use
        facts = self._world.nodes.get(pair.node)
        return facts is None or pair.volume in facts.in_use

    def _take_from_status(self, pair: Pair, known: Attachment) -> Node | None:
        """The node must not mount it any more (ADC-33)."""
        world = self._world
        world.attachments.change(pair, reported=False)
        try:
            return world.statuses.sync(pair.node)
        except BaseException:
            world.attachments.change(pair, reported=known.reported)
            raise

    # --- detaching --------------------------------------------------------------------------------------------------

    def _call(self, pair: Pair) -> bool:
        """Whether it is detached; False while somebody else is at it. The plugin is found by its name (DETACH-01)."""
        plugin, volume = self._plugin(pair)
        detacher: object = plugin.new_detacher()
        if isinstance(detacher, DeferredAttacher):
            return bool(detacher.begin_detach(volume, pair.node))
        with self._world.context.gate.entered(plugin.name):
            plugin.new_detacher().detach(volume, pair.node)
        unmark(self._world.context.api, pair.node, pair.volume)
        return True

    def _plugin(self, pair: Pair) -> tuple[LoadedPlugin, str]:
        parts = pair.volume.split("/", 2)
        if len(parts) < 3:
            reason = f"cannot split volume unique name {pair.volume} to plugin/volume components"
            raise SpecError(reason, action=f"detaching it from node {pair.node}", subject=pair.volume)
        name = f"{parts[0]}/{parts[1]}"
        plugin = self._world.context.plugins.find_attachable_plugin_by_name(name)
        if plugin is None:
            action = f"detaching volume {pair.volume} from node {pair.node}"
            raise CapabilityMissingError(f"plugin {name} does not attach volumes", action=action, subject=name)
        return plugin, parts[2]

    def _wait(self, pair: Pair) -> float:
        """Seconds until it has taken too long."""
        world = self._world
        attachment = world.attachments.get(pair)
        left = DETACH_SECONDS - (world.clock() - attachment.since) if attachment is not None else DETACH_SECONDS
        if left > 0:
            return left
        world.attachments.change(pair, under_way="", confirmed=False)
        raise UncertainProgressError(
            f"it did not end within {DETACH_SECONDS:g} seconds",
            action=f"detaching volume {pair.volume} from node {pair.node}",
            subject=pair.volume,
            hint="whoever detaches for its driver (the external-attacher) must run; its VolumeAttachment tells more",
        )

    def _detached(self, pair: Pair) -> None:
        world = self._world
        world.attachments.remove(pair)
        self._counted.done(pair)
        logger.info("detached: volume=%s node=%s", pair.volume, pair.node)
        world.look_at_pairs(pair._replace(node=node) for node in world.wishes.nodes_of(pair.volume))
