"""A CSI driver that does what a test tells it to, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake.config import FakeConfig
from volumehost_csi_kit.fake.connections import Connections
from volumehost_csi_kit.fake.controller import FakeController
from volumehost_csi_kit.fake.interception import Interception
from volumehost_csi_kit.fake.model import FakeModel
from volumehost_csi_kit.fake.node import FakeNode
from volumehost_csi_kit.fake.recording import Call, Recorder
from volumehost_csi_kit.fake.rules import Rule, Script
from volumehost_csi_kit.server.driver import Driver
from volumehost_csi_kit.server.serving import CsiServer

#: Threads for calls: many, as calls that a script makes hang keep theirs.
WORKERS = 64


class FakeDriver:
    """Serves Identity, Controller and Node at ``endpoint``; a context manager.

    It can be started again after it was stopped or has died by script, and then still knows its volumes, its calls and
    its script. ``state_path`` keeps the volumes, ``calls_path`` the calls in files. Further arguments are those of
    :class:`FakeConfig`. ``on_death`` is what a rule with ``die`` does: drop all connections, unless told otherwise.

    Give it a deadline: a call that hangs by script hangs until :meth:`release` or :meth:`stop`.
    """

    def __init__(
        self,
        endpoint: str,
        config: FakeConfig | None = None,
        *,
        registration_dir: str = "",
        state_path: str = "",
        calls_path: str = "",
        on_death: Callable[[], None] | None = None,
        **changes: Any,
    ) -> None:
        self.endpoint = endpoint
        self.registration_dir = registration_dir
        self._config = (config or FakeConfig()).changed(**changes)
        self._recorder = Recorder(calls_path)
        self._script = Script()
        self._connections = Connections()
        self._model = FakeModel(state_path)
        self._interception = Interception(
            self._recorder, self._script, self._connections, lambda: self._config, on_death or self._drop
        )
        self._lock = threading.Lock()
        self._server: CsiServer | None = None

    @property
    def config(self) -> FakeConfig:
        """What it says that it is and can do, now."""
        return self._config

    @property
    def server(self) -> CsiServer | None:
        """The server, while it is started."""
        return self._server

    def start(self) -> None:
        """Serve, and register where it was given a directory.

        :raises EndpointError: it cannot listen there.
        """
        driver = Driver(
            self._config.name,
            self._config.version,
            identity=_FakeIdentity(lambda: self._config),
            node=FakeNode(self._model, lambda: self._config),
            controller=FakeController(self._model, lambda: self._config),
            workers=WORKERS,
            queue_seconds=None,
        )
        server = CsiServer(
            driver, self.endpoint, registration_dir=self.registration_dir, interceptors=[self._interception]
        )
        self._apply_staging(driver)
        server.start()
        if server.socket is not None:
            self._connections.watch(server.socket.bound_path)
        with self._lock:
            self._server = server

    def stop(self, grace_seconds: float = 5.0) -> list[str]:
        """Release what hangs, and stop in order; the calls that do not end."""
        with self._lock:
            server, self._server = self._server, None
        if server is None:
            return []
        self._interception.release()
        return server.stop(grace_seconds)

    def script(self, *rules: Rule) -> None:
        """Put more rules in force, behind those that are."""
        self._script.add(rules)

    def clear_script(self) -> None:
        """Behave well again."""
        self._script.clear()

    def release(self) -> None:
        """Let all calls that hang or are delayed go on."""
        self._interception.release()

    def configure(self, **changes: Any) -> None:
        """Be something else, or able to do something else, from the next call on."""
        self._config = self._config.changed(**changes)
        if self._server is not None:
            self._apply_staging(self._server.driver)

    def calls(self, name: str = "") -> list[Call]:
        """What it was asked so far, in the order of the beginning."""
        return self._recorder.calls(name)

    def clear_calls(self) -> None:
        """Forget the calls so far."""
        self._recorder.clear()

    def wait_for(self, name: str, count: int = 1, *, ended: bool = False, timeout: float = 30.0) -> list[Call]:
        """Wait until there have been ``count`` calls of that name, with ``ended`` until as many are answered.

        :raises TimeoutError: there were not; says which there were.
        """

        def enough(calls: list[Call]) -> bool:
            return sum(call.name == name and (bool(call.code) or not ended) for call in calls) >= count

        return [call for call in self._recorder.wait_for(enough, timeout) if call.name == name]

    def connections(self) -> int:
        """How many connections have brought calls so far."""
        return self._connections.count()

    def state(self) -> dict[str, Any]:
        """Its volumes and snapshots by id, as plain values: what is staged and published where."""
        with self._model.reading() as state:
            return state.to_json()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(0)

    def _apply_staging(self, driver: Driver) -> None:
        driver.calls.stages = "STAGE_UNSTAGE_VOLUME" in self._config.node

    def _drop(self) -> None:
        """As if it had been killed: connections drop, the socket's file stays."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.abandon()


class _FakeIdentity:
    """Identity as the configuration has it at each call."""

    def __init__(self, config: Callable[[], FakeConfig]) -> None:
        self._config = config

    def get_plugin_info(self, _request: object, _context: object) -> csi.GetPluginInfoResponse:
        config = self._config()
        return csi.GetPluginInfoResponse(name=config.name, vendor_version=config.version)

    def get_plugin_capabilities(self, _request: object, _context: object) -> csi.GetPluginCapabilitiesResponse:
        config = self._config()
        one, service, expansion = (
            csi.PluginCapability,
            csi.PluginCapability.Service,
            csi.PluginCapability.VolumeExpansion,
        )
        found = []
        if config.controller is not None:
            found.append(one(service=service(type=service.CONTROLLER_SERVICE)))
        if config.topology:
            found.append(one(service=service(type=service.VOLUME_ACCESSIBILITY_CONSTRAINTS)))
        found += [one(volume_expansion=expansion(type=expansion.Type.Value(kind))) for kind in config.expansion]
        return csi.GetPluginCapabilitiesResponse(capabilities=found)

    def probe(self, _request: object, _context: object) -> csi.ProbeResponse:
        ready = self._config().ready
        return csi.ProbeResponse() if ready is None else csi.ProbeResponse(ready=csi.BoolValue(value=ready))
