"""The controller of pods: which volumes are wanted at which node, and what that depends on (ADC-10 to -13)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from volumehost.control.attach_detach.nodes import NodeFacts
from volumehost.control.attach_detach.pod_volumes import may_attach, volumes_to_attach
from volumehost.control.attach_detach.wishes import Pair
from volumehost.control.attach_detach.world import World, is_at_work
from volumehost.control.binding.scheduling import claims_of
from volumehost.control.machinery.controller import Affects, Key
from volumehost.control.writes import get_or_none

if TYPE_CHECKING:
    from volumehost.api.objects import CSIDriver, KubeObject, Node, PersistentVolume, PersistentVolumeClaim, Pod


#: How often a pod that wants something is looked at though nothing was told of it, in seconds (ADC-12): one that went
#: between two watches, or before the first one began, is not told of any more.
LOOK_SECONDS: Final = 180.0


class PodWishes:
    """See :class:`volumehost.control.machinery.controller.Controller`."""

    name = "attach-detach pods"

    def __init__(self, world: World) -> None:
        from volumehost.api.objects import Pod

        self.kind: type[KubeObject] = Pod
        self._world = world
        self._api = world.context.api
        self._lock = threading.Lock()
        #: Of pods that may want something attached: their node and their claims; and back from claims to pods.
        self._pods: dict[Key, tuple[str, frozenset[Key]]] = {}
        self._users: dict[Key, set[Key]] = {}
        #: Whether a controller attaches for a node, as it was last told.
        self._managed: dict[str, bool] = {}

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Pods; their claims and volumes; drivers, which may be told of later (BR-49); nodes that change hands."""
        from volumehost.api.objects import CSIDriver, Node, PersistentVolume, PersistentVolumeClaim, Pod

        return {
            Pod: self._of_pod,
            PersistentVolumeClaim: self._of_claim,
            PersistentVolume: self._of_volume,
            CSIDriver: self._of_driver,
            Node: self._of_node,
        }

    def reconcile(self, key: Key) -> float | None:
        """Note what the pod wants; the seconds until it is looked at again, for its end may have been told to nobody.

        :raises VolumeHostError: something of what it wants cannot be told; until then nothing is taken from its node.
        """
        from volumehost.api.objects import Pod

        world = self._world
        world.ensure()
        pod = get_or_none(self._api, Pod, key.name, key.namespace)
        if pod is None:
            self._note(key, "", frozenset())
        unclear = world.wishes.unclear_node(key)
        problem = None
        if pod is None or not is_at_work(pod) or not world.is_managed(pod.spec.node_name):
            changed = world.wishes.remove(key)
        else:
            found = volumes_to_attach(self._api, world.context.plugins, pod)
            problem = found.problem
            changed = world.wishes.put(
                key, pod.metadata.uid, pod.spec.node_name, found.wanted, complete=problem is None
            )
        if unclear and not world.wishes.is_unclear(unclear):  # what waited for that can go on
            changed |= {Pair(volume, unclear) for volume in world.attachments.of_node(unclear)}
        world.look_at_pairs(changed)
        if problem is not None:
            raise problem
        return LOOK_SECONDS if world.wishes.wants(key) else None

    # --- what concerns which pod ------------------------------------------------------------------------------------

    def _of_pod(self, pod: Pod) -> Iterable[Key]:
        if not may_attach(pod):
            return []
        key, namespace = Key.of(pod), pod.metadata.namespace
        self._note(key, pod.spec.node_name, frozenset(Key(name, namespace) for name in claims_of(pod)))
        return [key]

    def _of_claim(self, claim: PersistentVolumeClaim) -> Iterable[Key]:
        return self._with_claim(Key.of(claim))

    def _of_volume(self, volume: PersistentVolume) -> Iterable[Key]:
        reference = volume.spec.claim_ref
        return self._with_claim(Key(reference.name, reference.namespace)) if reference is not None else []

    def _of_driver(self, driver: CSIDriver) -> Iterable[Key]:
        """Whether volumes have to be attached depends on it. Which volumes are the driver's is found out by looking."""
        del driver
        with self._lock:
            return list(self._pods)

    def _of_node(self, node: Node) -> Iterable[Key]:
        name = node.metadata.name
        managed = NodeFacts.of(node).managed
        with self._lock:
            before, self._managed[name] = self._managed.get(name), managed
            return [pod for pod, (where, _) in self._pods.items() if where == name] if before != managed else []

    def _with_claim(self, claim: Key) -> list[Key]:
        with self._lock:
            return list(self._users.get(claim, ()))

    def _note(self, pod: Key, node: str, claims: frozenset[Key]) -> None:
        """Remember where the pod is and which claims it uses; without a node it is not remembered."""
        with self._lock:
            _, former = self._pods.pop(pod, ("", frozenset()))
            for claim in former - claims:
                self._users[claim].discard(pod)
                if not self._users[claim]:
                    del self._users[claim]
            if node:
                self._pods[pod] = node, claims
                for claim in claims:
                    self._users.setdefault(claim, set()).add(pod)
