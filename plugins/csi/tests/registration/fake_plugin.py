"""A plugin to register: its registration socket and its driver's, real ones, in this process or in one of its own.

As a program: ``python fake_plugin.py REGISTRATION_SOCKET DRIVER_SOCKET JSON``; prints each status that it is told.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from volumehost_csi_kit import csi, endpoints, registration


class FakePlugin:
    """Serves until :meth:`stop`. ``says`` may be changed at any time; ``statuses`` gets what it is told.

    The call that is ``held`` does not come back before ``hold`` is set.
    """

    def __init__(self, registration_socket: str, driver_socket: str = "", *, held: str = "", **says: Any) -> None:
        self.registration_socket = registration_socket
        self.driver_socket = driver_socket
        self.says: dict[str, Any] = {
            "type": "CSIPlugin",
            "name": "a.example.com",
            "versions": ["1.0.0"],
            "endpoint": driver_socket,
            "node_id": "node-1",
            "max_volumes": 0,
            "topology": {},
            "fail": {},
            "exit_when_refused": False,
            **says,
        }
        self.statuses: queue.Queue[tuple[bool, str]] = queue.Queue()
        self.calls: list[str] = []
        self.hold = threading.Event()
        self._held = held
        self._servers: list[grpc.Server] = []
        if driver_socket:
            self._serve(
                driver_socket,
                _service("csi.v1.Identity", GetPluginInfo=(self.get_plugin_info, csi.GetPluginInfoRequest)),
                _service("csi.v1.Node", NodeGetInfo=(self.node_get_info, csi.NodeGetInfoRequest)),
            )
        if registration_socket:
            self.serve_registration()

    def serve_registration(self, path: str = "") -> None:
        self._serve(
            path or self.registration_socket,
            _service(
                "pluginregistration.Registration",
                GetInfo=(self.get_info, registration.InfoRequest),
                NotifyRegistrationStatus=(self.notified, registration.RegistrationStatus),
            ),
        )

    def _serve(self, path: str, *services: grpc.GenericRpcHandler) -> None:
        server = grpc.server(ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers(services)
        with endpoints.reachable(path) as short:
            server.add_insecure_port(f"unix:{short}")
        server.start()
        self._servers.append(server)

    def stop(self) -> None:
        """Stop; grpc unlinks the sockets, as a registrar does on SIGTERM."""
        self.hold.set()
        for server in self._servers:
            server.stop(None).wait()
        self._servers.clear()

    # --- the services ---------------------------------------------------------------------------------------

    def get_info(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._answer("GetInfo", context)
        says = self.says
        return registration.PluginInfo(
            type=says["type"], name=says["name"], endpoint=says["endpoint"], supported_versions=says["versions"]
        )

    def notified(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.statuses.put((request.plugin_registered, request.error))
        if __name__ == "__main__":
            print(json.dumps([request.plugin_registered, request.error]), flush=True)
        if self.says["exit_when_refused"] and not request.plugin_registered:
            os._exit(1)
        self._answer("NotifyRegistrationStatus", context)
        return registration.RegistrationStatusResponse()

    def get_plugin_info(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._answer("GetPluginInfo", context)
        return csi.GetPluginInfoResponse(name=self.says.get("own_name", self.says["name"]), vendor_version="1")

    def node_get_info(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._answer("NodeGetInfo", context)
        says = self.says
        topology = csi.Topology(segments=says["topology"]) if says["topology"] else None
        return csi.NodeGetInfoResponse(
            node_id=says["node_id"], max_volumes_per_node=says["max_volumes"], accessible_topology=topology
        )

    def _answer(self, call: str, context: grpc.ServicerContext) -> None:
        self.calls.append(call)
        if call == self._held:
            self.hold.wait(60)
        code = self.says["fail"].get(call)
        if code:
            context.abort(getattr(grpc.StatusCode, code), f"{call} does not work")


def _service(name: str, **methods: Any) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(
        name,
        {
            method: grpc.unary_unary_rpc_method_handler(
                behaviour,
                request_deserializer=request.FromString,
                response_serializer=lambda reply: reply.SerializeToString(),
            )
            for method, (behaviour, request) in methods.items()
        },
    )


if __name__ == "__main__":
    plugin = FakePlugin(sys.argv[1], sys.argv[2], **json.loads(sys.argv[3]))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    print("serving", flush=True)
    ended.wait()
    plugin.stop()
