"""What one state of the Node object says of volumes; read by the attachments of a node in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from volumehost.api.objects import Node

#: Annotation by which a node asks the attach/detach controller for its volumes; only its presence counts (ADC-02).
MANAGED_ANNOTATION: Final = "volumes.kubernetes.io/controller-managed-attach-detach"


@dataclass(frozen=True, slots=True)
class NodeView:
    """``in_use``: volumes that it lists as in use here; ``attached``: those that are attached, to their device paths.

    ``managed``: it asks for its volumes to be attached by the controller.
    """

    uid: str
    resource_version: str
    in_use: frozenset[str]
    attached: Mapping[str, str]
    managed: bool

    @classmethod
    def of(cls, node: Node) -> NodeView:
        """That of one object."""
        return cls(
            uid=node.metadata.uid,
            resource_version=node.metadata.resource_version,
            in_use=frozenset(node.status.volumes_in_use),
            attached={volume.name: volume.device_path for volume in node.status.volumes_attached},
            managed=MANAGED_ANNOTATION in node.metadata.annotations,
        )

    @property
    def usable(self) -> frozenset[str]:
        """Volumes that may be used here: attached in a state of the Node that has them in use as well (VERIFY-04).

        The controller takes a volume from the attached ones before it detaches it, and then asks whether it is in use.
        """
        return self.in_use & self.attached.keys()

    def is_older_than(self, other: NodeView) -> bool:
        """Whether it is an earlier state of the same object, as far as that can be told."""
        if self.uid != other.uid:
            return False
        mine, others = self.resource_version, other.resource_version
        return mine.isdigit() and others.isdigit() and int(mine) < int(others)


def changed_volumes(former: NodeView | None, now: NodeView | None) -> set[str]:
    """Volumes of which the two say something else, in use or attached."""
    before = (former.in_use, former.usable) if former is not None else (frozenset(), frozenset())
    after = (now.in_use, now.usable) if now is not None else (frozenset(), frozenset())
    return {name for one, other in zip(before, after, strict=True) for name in one ^ other}
