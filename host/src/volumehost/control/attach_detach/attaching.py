"""Attaching one volume to one node, and keeping it attached (ADC-40 to -44, ATTACH-01, -02, VERIFYATT-01)."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from volumehost.control.attach_detach.attachments import DETACHING, Attachment
from volumehost.control.attach_detach.counted import Counted
from volumehost.control.attach_detach.maybe_attached import mark, unmark
from volumehost.control.attach_detach.multi_attach import may_be_shared, multi_attach_message
from volumehost.control.messages import message_of
from volumehost.control.writes import get_or_none
from volumehost.errors import (
    ApiError,
    ConflictError,
    TransientOperationError,
    UncertainProgressError,
    error_chain,
    is_uncertain_progress_error,
)
from volumehost.volumes import DeferredAttacher

if TYPE_CHECKING:
    from volumehost.control.attach_detach.wishes import Pair, Wish
    from volumehost.control.attach_detach.world import World

logger = logging.getLogger(__name__)

#: How long whoever attaches on our behalf may take until that counts as a failure, in seconds (CSI-ATT-05).
ATTACH_SECONDS: Final = 120.0
#: How often it is asked whether what is attached still is, in seconds (CONST-07).
VERIFY_SECONDS: Final = 60.0
#: How often it is looked whether a volume that another node has is free, in seconds; mostly that is told.
BLOCKED_SECONDS: Final = 30.0


class Attaching:
    """Safe for threads; one pair is worked on once at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._counted = Counted(world, "volume_attach")
        self._lock = threading.Lock()
        #: Pairs of which the pods were told that another node has the volume (ADC-43).
        self._told: set[Pair] = set()

    def attach(self, pair: Pair, wish: Wish) -> float:
        """Attach it, or look whether it still is; the seconds until the next look.

        :raises Exception: it failed; events tell the pods.
        """
        known = self._world.attachments.get(pair)
        if known is not None and known.confirmed and known.under_way != DETACHING and self._is_kept(pair, wish, known):
            return VERIFY_SECONDS
        alone = not may_be_shared(wish.wanted.spec)
        have, others_try = self._world.attachments.begin(pair, wish.wanted.spec, alone=alone)
        if have:
            self._tell_multi_attach(pair, wish, have)
        if have or others_try:
            return BLOCKED_SECONDS
        try:
            with self._counted.call(pair):
                path = self._call(pair, wish, is_new=known is None)
        except ConflictError:
            raise
        except Exception as error:
            self._failed(pair, wish, error, is_new=known is None)
            raise
        if path is None:
            return self._wait(pair, wish)
        self._attached(pair, wish, path)
        return VERIFY_SECONDS

    def forget(self, pair: Pair) -> None:
        """Nobody wants it any more: whoever does later is told anew what keeps it (ADC-43)."""
        self._counted.forget(pair)
        with self._lock:
            self._told.discard(pair)

    # --- attaching --------------------------------------------------------------------------------------------------

    def _call(self, pair: Pair, wish: Wish, *, is_new: bool) -> str | None:
        """The device path; None while somebody else is at it."""
        world, plugin, spec = self._world, wish.wanted.plugin, wish.wanted.spec
        attacher: object = plugin.new_attacher()
        if isinstance(attacher, DeferredAttacher):
            return attacher.begin_attach(spec, pair.node)
        if is_new:
            self._mark(pair)
        with world.context.gate.entered(plugin.name):
            return plugin.new_attacher().attach(spec, pair.node)

    def _mark(self, pair: Pair) -> None:
        """Note that it may be attached.

        :raises TransientOperationError: that cannot be noted; nothing was begun.
        """
        try:
            mark(self._world.context.api, pair.node, pair.volume)
        except ApiError as error:
            action = f"noting that volume {pair.volume} may be attached to node {pair.node}"
            raise TransientOperationError(error.reason, action=action, subject=pair.volume, hint=error.hint) from error

    def _wait(self, pair: Pair, wish: Wish) -> float:
        """Seconds until it has taken too long."""
        world = self._world
        attachment = world.attachments.get(pair)
        left = ATTACH_SECONDS - (world.clock() - attachment.since) if attachment is not None else ATTACH_SECONDS
        if left > 0:
            return left
        error = UncertainProgressError(
            f"it did not come about within {ATTACH_SECONDS:g} seconds",
            action=f"attaching volume {wish.wanted.spec.name()} to node {pair.node}",
            subject=pair.volume,
            hint="whoever attaches for its driver (the external-attacher) must run; its VolumeAttachment tells more",
        )
        self._failed(pair, wish, error, is_new=False)
        raise error

    def _attached(self, pair: Pair, wish: Wish, path: str) -> None:
        world, spec = self._world, wish.wanted.spec
        world.attachments.put(pair, Attachment(spec, path, confirmed=True, reported=True, looked_at=world.clock()))
        with self._lock:
            self._told.discard(pair)
        self._counted.done(pair)
        self._tell(
            wish, "Normal", "SuccessfulAttachVolume", f'AttachVolume.Attach succeeded for volume "{spec.name()}"'
        )
        world.statuses.sync(pair.node)
        if not isinstance(wish.wanted.plugin.new_attacher(), DeferredAttacher):
            unmark(world.context.api, pair.node, pair.volume)

    def _failed(self, pair: Pair, wish: Wish, error: Exception, *, is_new: bool) -> None:
        """It may be attached nevertheless, unless certainly nothing was begun (BR-47)."""
        world, spec = self._world, wish.wanted.spec
        if is_new and _changed_nothing(error):
            world.attachments.remove(pair)
        else:
            world.attachments.change(pair, under_way="", confirmed=False, reported=False)
        message = f'AttachVolume.Attach failed for volume "{spec.name()}" : {message_of(error)}'
        self._tell(wish, "Warning", "FailedAttachVolume", message)
        others = [node for node in world.wishes.nodes_of(pair.volume) if node != pair.node]
        world.look_at_pairs(pair._replace(node=node) for node in others)

    # --- keeping it attached ----------------------------------------------------------------------------------------

    def _is_kept(self, pair: Pair, wish: Wish, known: Attachment) -> bool:
        """Whether it is attached still; the node's status says so then."""
        world, spec = self._world, wish.wanted.spec
        if known.looked_at + VERIFY_SECONDS <= world.clock() or known.spec is None or not known.looked_at:
            if not self._is_attached(pair, wish):
                logger.warning("it is not attached any more: volume=%s node=%s", pair.volume, pair.node)
                world.attachments.remove(pair)
                return False
            world.attachments.change(pair, looked_at=world.clock())
        world.attachments.change(pair, spec=spec, reported=True, under_way="", unwanted_since=None)
        world.statuses.sync(pair.node)
        return True

    def _is_attached(self, pair: Pair, wish: Wish) -> bool:
        """What the plugin says; True where it cannot tell."""
        plugin, spec = wish.wanted.plugin, wish.wanted.spec
        try:
            with self._world.context.gate.entered(plugin.name):
                return bool(plugin.new_attacher().volumes_are_attached([spec], pair.node).get(spec, True))
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and that proves nothing
            logger.info("not verified: volume=%s node=%s error=%s", pair.volume, pair.node, error)
            return True

    # --- telling ----------------------------------------------------------------------------------------------------

    def _tell_multi_attach(self, pair: Pair, wish: Wish, have: list[str]) -> None:
        with self._lock:
            if pair in self._told:
                return
            self._told.add(pair)
        users = self._world.wishes.pods_of(pair.volume, have)
        logger.info("another node has it: volume=%s node=%s has=%s", pair.volume, pair.node, ", ".join(have))
        name = wish.wanted.spec.name()
        for namespace in {pod.namespace for pod in wish.pods}:
            near = {pod: uid for pod, uid in wish.pods.items() if pod.namespace == namespace}
            text = multi_attach_message(name, namespace, users)
            self._tell(wish._replace(pods=near), "Warning", "FailedAttachVolume", text)

    def _tell(self, wish: Wish, event_type: str, reason: str, message: str) -> None:
        """An event on every pod that wants the volume (ATTACH-02)."""
        from volumehost.api.objects import Pod

        context = self._world.context
        for key, uid in wish.pods.items():
            pod = get_or_none(context.api, Pod, key.name, key.namespace)
            if pod is not None and pod.metadata.uid == uid:
                context.event(pod, event_type, reason, message)


def _changed_nothing(error: BaseException) -> bool:
    """Whether certainly nothing was attached (ERR-01)."""
    links = list(error_chain(error))
    return any(isinstance(link, TransientOperationError) for link in links) and not is_uncertain_progress_error(error)
