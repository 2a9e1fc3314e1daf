"""The controller of pairs of volume and node: attaches, keeps attached, detaches (ADC-30 to -45)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from volumehost.control.attach_detach.attaching import Attaching
from volumehost.control.attach_detach.detaching import Detaching
from volumehost.control.attach_detach.wishes import Pair
from volumehost.control.machinery.controller import Affects, Key
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, Node, VolumeAttachment
    from volumehost.control.attach_detach.world import World


#: The key of no pair: what there is at all. One with a node alone is what there is on that node.
_EVERYTHING: Final = Key("")


class AttachDetach:
    """See :mod:`volumehost.control.machinery.controller`. Its keys name no object: volume (as name) and node."""

    name = "attach-detach"

    def __init__(self, world: World) -> None:
        from volumehost.api.objects import VolumeAttachment

        self.kind: type[KubeObject] = VolumeAttachment
        self._world = world
        self._attaching = Attaching(world)
        self._detaching = Detaching(world)

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Nodes, which tell what they use; VolumeAttachments, by which others tell what they have done."""
        from volumehost.api.objects import Node, VolumeAttachment

        return {Node: self._of_node, VolumeAttachment: self._of_attachment}

    def reconcile(self, key: Key) -> float | None:
        """Have the volume attached to the node when a pod there wants it, and detached when none does."""
        world, pair = self._world, Pair(key.name, key.namespace)
        world.ensure()
        if key == _EVERYTHING:
            return world.look_again()
        if not pair.volume:
            world.take_over_node(pair.node)
        wish = world.wishes.get(pair)
        if wish is not None:
            self._detaching.forget(pair)
            return self._attaching.attach(pair, wish)
        self._attaching.forget(pair)
        attachment = world.attachments.get(pair)
        if attachment is None:
            world.statuses.sync(pair.node)
            return None
        return self._detaching.detach(pair, attachment)

    # --- what concerns which pair -----------------------------------------------------------------------------------

    def _of_node(self, node: Node) -> Iterable[Key]:
        before, now = self._world.nodes.see(node)
        name = node.metadata.name
        if not self._world.ready:
            return [_EVERYTHING]  # what there is is found out by the first look, whatever it is at
        if before == now:
            return []
        if now.managed and (bool(now.attached) if before is None else not before.managed):
            return [Pair("", name).key]  # ours from now on, with what others have attached
        attached = self._world.attachments.of_node(name)
        if before is not None and before.uid != now.uid:  # perhaps another machine, to which nothing is attached yet
            for volume in attached:
                self._world.attachments.change(Pair(volume, name), looked_at=0.0)
        volumes = {*attached, *(volume for volume, _ in now.attached)}
        return [Pair(volume, name).key for volume in volumes]

    def _of_attachment(self, attachment: VolumeAttachment) -> Iterable[Key]:
        """The pair that it stands for, where that is known; what was believed of it is looked at anew."""
        world, node = self._world, attachment.spec.node_name
        found = [
            Pair(volume, node)
            for volume, each in world.attachments.of_node(node).items()
            if _is_about(attachment, volume, each.spec)
        ]
        for pair in found:
            world.attachments.change(pair, looked_at=0.0)
        return [pair.key for pair in found]


def _is_about(attachment: VolumeAttachment, volume: str, spec: Spec | None) -> bool:
    """Whether it may be about that volume; better one too many than one too few."""
    if f"/{attachment.spec.attacher}^" not in volume:
        return False
    name = attachment.spec.source.persistent_volume_name
    persistent = spec.persistent_volume if spec is not None else None
    return not name or persistent is None or persistent.metadata.name in ("", name)
