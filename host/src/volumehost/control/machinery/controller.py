"""What a controller is: it names the objects that concern it, and brings one of them to where it should be.

The control plane (:mod:`volumehost.control.plane`) watches the API, calls ``reconcile`` with one key at a time for
each controller and object, and again after a backoff when it raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from volumehost.control.machinery.gate import Gate

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, PersistentVolume
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.storage_driver import StorageDriver


class Key(NamedTuple):
    """One object for a controller to look at; ``namespace`` is "" for kinds without one."""

    name: str
    namespace: str = ""

    @classmethod
    def of(cls, obj: KubeObject) -> Key:
        """The key of an object."""
        return cls(obj.metadata.name, obj.metadata.namespace)


#: From a changed object to the keys that a controller has to look at because of it.
Affects = Callable[[Any], Iterable[Key]]


class Controller(Protocol):
    """One controller. ``reconcile`` runs for several keys at once, for one key at most once at a time.

    It reads what it decides by from the API at that moment, and keeps none of it, so that no decision rests on what was
    true once; it can be killed between any two calls and begun anew. In a cluster the API answers from caches: what
    cannot be undone rests on :attr:`ControlContext.uncached`. It must decide by what there is, not by which
    change brought it here: after a gap in the watch every key comes once, and nothing tells what happened meanwhile.

    A key that failed waits for its backoff. A change of its own object's status, or of annotations and finalizers of
    ``volumehost.io/``, does not cut that short, so that a controller may report there (CSI-EXA-10); any other change
    that affects the key does, and a change of the object's spec or deletion mark also makes the backoff begin anew
    (BR-53).

    A controller of CSIDrivers gets the name of a driver also when the driver came, left or changed its state.
    """

    #: Its name in logs and status: ``provisioner``, ``attacher``.
    name: str
    #: The kind of object that its keys name.
    kind: type[KubeObject]

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """The kinds whose changes concern it, and which of its keys each change affects."""
        ...

    def reconcile(self, key: Key) -> float | None:
        """Bring the object to where it should be.

        :returns: seconds after which to look again although nothing changed; None for not before something does.
        :raises Exception: it failed; the key comes again after a backoff (CSI-EXA-10), the error shows in status.
            A ConflictError is no failure: the key comes again at once. StorageDriverUnavailableError: the key comes
            again when the driver does, and every few seconds.
        """
        ...


class EventSink(Protocol):
    """Records an event on an API object."""

    def __call__(self, involved: KubeObject, event_type: str, reason: str, message: str) -> None:
        """``event_type`` is ``Normal`` or ``Warning``."""
        ...


class Progress(Protocol):
    """Takes what is being done for an object, for those who wait: ``creating the volume (CreateVolume)``."""

    def __call__(self, obj: KubeObject, step: str) -> None:
        """The step that begins; "" when the object needs nothing any more."""
        ...


@dataclass(frozen=True, slots=True)
class ControlContext:
    """What controllers work with.

    ``driver(name)`` is the registered storage driver, started if need be; it raises StorageDriverUnavailableError.
    ``knows_driver(name)`` tells without starting it whether this host has such a driver at all.
    ``wall_clock`` is seconds since the epoch. ``external_drivers``: whether drivers that this host does not have are
    served by others, as in a cluster, where a scheduler chooses nodes too; without that, an unknown driver is an error
    of the object that names it, and this node is the only one.
    ``volume_in_use(node, unique volume name)`` tells whether a node that this process knows of itself still has a
    volume staged or mounted. Calls of volume plugins go through the ``gate``; those of drivers do so by themselves.
    ``live`` is set where ``api`` answers from caches, as in a cluster: an API that is asked each time.
    """

    api: ApiClient
    plugins: VolumePluginManager
    driver: Callable[[str], StorageDriver]
    knows_driver: Callable[[str], bool]
    node_name: str
    event: EventSink
    progress: Progress
    wall_clock: Callable[[], float]
    external_drivers: bool = False
    volume_in_use: Callable[[str, str], bool] = lambda _node, _volume: False
    gate: Gate = field(default_factory=Gate)
    metrics: ControlMetrics | None = None
    live: ApiClient | None = None

    def is_of_others(self, volume: PersistentVolume) -> bool:
        """Whether a driver that this host does not have is behind the volume: its sidecars write of it what there is.

        :param volume: as that driver sees it, where somebody took over its kind.
        """
        source = volume.spec.csi
        return source is not None and self.external_drivers and not self.knows_driver(source.driver)

    @property
    def uncached(self) -> ApiClient:
        """Answers with what is so now; to be asked before something is believed to be gone, and what cannot be undone.

        A cache of one kind may be behind that of another: a volume is seen before the claim that it was made for.
        """
        return self.live if self.live is not None else self.api
