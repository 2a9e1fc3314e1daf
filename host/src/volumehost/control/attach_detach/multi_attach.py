"""Volumes that only one node may have at a time, and what is told of those that want one nevertheless (ADC-41, -42)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from volumehost.control.machinery.controller import Key
    from volumehost.spec import Spec

_MANY = frozenset({"ReadWriteMany", "ReadOnlyMany"})


def may_be_shared(spec: Spec) -> bool:
    """Whether several nodes may have the volume attached at once (UTIL-20)."""
    if spec.volume is not None:
        return spec.volume.azure_disk is None and spec.volume.cinder is None
    if spec.persistent_volume is None:
        return True
    modes = spec.persistent_volume.spec.access_modes
    return not modes or not _MANY.isdisjoint(modes)


def multi_attach_message(volume: str, namespace: str, users: Iterable[Key]) -> str:
    """The text of the event for a pod of that namespace. Names from other namespaces are nobody's business.

    :param users: the pods at the other nodes that use the volume.
    """
    users = list(users)
    near = sorted(pod.name for pod in users if pod.namespace == namespace)
    far = len([pod for pod in users if pod.namespace != namespace])
    beginning = f'Multi-Attach error for volume "{volume}" '
    if not users:
        return f"{beginning}Volume is already exclusively attached to one node and can't be attached to another"
    if not near:
        return f"{beginning}Volume is already used by {far} pod(s) in different namespaces"
    rest = f" and {far} pod(s) in different namespaces" if far else ""
    return f"{beginning}Volume is already used by pod(s) {', '.join(near)}{rest}"
