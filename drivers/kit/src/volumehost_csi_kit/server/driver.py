"""A driver: the author's objects, put together and checked once, with everything that follows from them filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import grpc

from volumehost_csi_kit._services import SERVICES
from volumehost_csi_kit.server.answers import OwnAnswers
from volumehost_csi_kit.server.calls import Surroundings, handler
from volumehost_csi_kit.server.capabilities import DriverDefinitionError, implemented, python_name

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
# Ends of the names of calls that answer from memory.
_QUICK = ("GetPluginInfo", "GetPluginCapabilities", "Probe", "NodeGetInfo", "GetCapabilities")

_SERVICE_CAPABILITIES = {
    "Controller": "CONTROLLER_SERVICE",
    "GroupController": "GROUP_CONTROLLER_SERVICE",
    "SnapshotMetadata": "SNAPSHOT_METADATA_SERVICE",
}

Expansion = Literal["ONLINE", "OFFLINE"]


class Driver:
    """What one process serves.

    ``node``, ``controller``, ``group_controller`` and ``snapshot_metadata`` are plain objects with a method for each
    call that the driver has, ``def node_publish_volume(self, request, context)``: what is there is served and declared.
    A method returns the reply, or None for an empty one, and raises a :class:`CsiError` to fail. Capabilities that no
    method shows are named in the object's ``capabilities``, as ``{"VOLUME_CONDITION"}``. Methods are called by several
    threads at a time, though not for the same volume.

    :param name: a domain name of at most 63 characters, such as ``disk.example.com``.
    :param node_id: the reply to NodeGetInfo, unless ``node`` answers that itself.
    :param topology: volumes cannot be reached from every node.
    :param expansion: ``ONLINE``, ``OFFLINE`` or both; ``ONLINE`` when there is a call that expands.
    :param ready: whether the driver is ready (False: still starting); raises FailedPreconditionError when it is broken.
    :param workers: how many calls may be worked on at a time.
    :param queue_seconds: how long a call waits for another one of the same volume. 0 answers ABORTED at once; with None
        the author sees to it.
    :param identity: an object with methods of the Identity service that replace those of the kit.
    :raises DriverDefinitionError: these do not make a driver; says what is missing.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        node: object | None = None,
        controller: object | None = None,
        group_controller: object | None = None,
        snapshot_metadata: object | None = None,
        identity: object | None = None,
        node_id: str = "",
        topology: bool = False,
        expansion: Collection[Expansion] | None = None,
        ready: Callable[[], bool] | None = None,
        manifest: Mapping[str, str] | None = None,
        workers: int = 32,
        queue_seconds: float | None = 60.0,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise DriverDefinitionError(f"{name!r} is not a driver's name: a domain name of at most 63 characters")
        if not version:
            raise DriverDefinitionError(f"{name}: a driver has a version")
        self.name = name
        self.version = version
        self.workers = workers
        self.node_id = node_id
        self._ready = ready
        self.manifest = dict(manifest or {})
        self._topology = topology
        given = {
            "Controller": controller,
            "Node": node,
            "GroupController": group_controller,
            "SnapshotMetadata": snapshot_metadata,
        }
        self._objects = {"Identity": identity, **given}
        self._services = {service: implemented(service, found) for service, found in given.items() if found is not None}
        if not self._services:
            raise DriverDefinitionError(f"{name}: a driver has at least a node or a controller")
        self.expansion = self._checked_expansion(expansion)
        if "Node" in self._services and not node_id and "NodeGetInfo" not in self._services["Node"].methods:
            raise DriverDefinitionError(f"{name}: needs a node_id, or a node with node_get_info (CSI-WIRE-20)")
        self.calls = Surroundings(
            stages="STAGE_UNSTAGE_VOLUME" in self.capabilities("Node"),
            queue_seconds=queue_seconds,
        )

    def capabilities(self, service: str) -> tuple[str, ...]:
        """The capabilities that ``Controller``, ``Node`` or ``GroupController`` declares, sorted."""
        found = self._services.get(service)
        return found.capabilities if found is not None else ()

    def handlers(self, quick_pool: ThreadPoolExecutor) -> Iterator[grpc.GenericRpcHandler]:
        """What to register with a grpc server: a handler for each service.

        Calls that answer from memory are worked on in ``quick_pool``, so that slow ones cannot starve them (BR-30).
        """
        own = OwnAnswers(self)
        for service in ("Identity", *self._services):
            calls = {}
            for name, method in SERVICES[service].methods.items():
                python = python_name(name)
                function = getattr(self._objects[service], python, None) or getattr(own, python, None)
                if function is not None:
                    calls[name] = handler(method, function, self.calls, quick_pool if name.endswith(_QUICK) else None)
            yield grpc.method_handlers_generic_handler(SERVICES[service].full_name, calls)

    def _checked_expansion(self, given: Collection[Expansion] | None) -> tuple[Expansion, ...]:
        expands = any("EXPAND_VOLUME" in service.capabilities for service in self._services.values())
        if given is None:
            return ("ONLINE",) if expands else ()
        if isinstance(given, str) or not set(given) <= {"ONLINE", "OFFLINE"}:
            raise DriverDefinitionError(f"{self.name}: expansion is a collection of 'ONLINE' and 'OFFLINE'")
        if given and not expands:
            raise DriverDefinitionError(
                f"{self.name}: expansion needs controller_expand_volume or node_expand_volume, which nobody implements"
            )
        return tuple(given)

    def plugin_capabilities(self) -> list[str]:
        """The services that there are beside Identity and Node, as capabilities of the plugin."""
        found = [name for service, name in _SERVICE_CAPABILITIES.items() if service in self._services]
        return [*found, "VOLUME_ACCESSIBILITY_CONSTRAINTS"] if self._topology else found

    def is_ready(self) -> bool:
        """What ``ready`` says; ready without it."""
        return self._ready is None or self._ready()

    def running(self) -> list[tuple[str, float]]:
        """The calls that have not ended: name, and when each began (monotonic seconds)."""
        return list(self.calls.running.values())

    def __repr__(self) -> str:
        return f"<Driver {self.name} {self.version}: {', '.join(self._services)}>"
