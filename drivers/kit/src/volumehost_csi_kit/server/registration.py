"""The registration socket: by it the kubelet, or a volume host, finds a driver that has no sidecar (CSI-RGR)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from volumehost_csi_kit import registration
from volumehost_csi_kit._services import SERVICES
from volumehost_csi_kit.server.listening import OwnSocket, listen

log = logging.getLogger("volumehost_csi_kit.server")

#: The version of CSI that registrars report, whatever minor one a driver speaks (CSI-RGR-04).
SUPPORTED_VERSIONS = ("1.0.0",)


class RegistrationServer:
    """Serves ``<directory>/<driver>-reg.sock``, which only its owner may use (CSI-RGR-01, -02).

    Several callers at a time are fine (CSI-RGR-07). A refused registration is logged with its reason and the socket
    stays: the caller tries again, and to one that ended itself here it would look unavailable (CSI-RGR-05).
    """

    def __init__(self, driver_name: str, endpoint_path: str, directory: str) -> None:
        self.path = os.path.join(os.path.abspath(directory), f"{driver_name}-reg.sock")
        #: What became of the last registration: None before the first, "" when it was accepted, or the reason.
        self.outcome: str | None = None
        self._info = registration.PluginInfo(
            type="CSIPlugin", name=driver_name, endpoint=endpoint_path, supported_versions=SUPPORTED_VERSIONS
        )
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="csi-registration")
        self._server = grpc.server(self._pool, handlers=[self._handler()], options=[("grpc.so_reuseport", 0)])
        self._socket: OwnSocket | None = None

    def start(self) -> None:
        """Offer the driver; call it when the driver's own socket answers.

        :raises EndpointError: the socket cannot be made there.
        """
        self._socket = listen(self._server, self.path, mode=0o600)
        self._server.start()
        log.info("driver=%s is offered for registration socket=%s", self._info.name, self.path)

    def stop(self) -> None:
        """Take the offer back: whoever watches the directory deregisters the driver (CSI-RGR-06)."""
        if self._socket is not None:
            self._socket.remove()
        self.abandon()

    def abandon(self) -> None:
        """Answer no more, and leave the socket's file as it is."""
        self._server.stop(None)
        self._pool.shutdown(wait=False)

    def _get_info(self, _request: registration.InfoRequest, _context: object) -> registration.PluginInfo:
        return self._info

    def _notify(
        self, request: registration.RegistrationStatus, _context: object
    ) -> registration.RegistrationStatusResponse:
        if request.plugin_registered:
            self.outcome = ""
            log.info("driver=%s is registered", self._info.name)
        else:
            self.outcome = request.error or "no reason given"
            log.error("driver=%s registration refused: %s", self._info.name, self.outcome)
        return registration.RegistrationStatusResponse()

    def _handler(self) -> grpc.GenericRpcHandler:
        service = SERVICES["Registration"]
        functions: dict[str, Callable[..., Any]] = {"GetInfo": self._get_info, "NotifyRegistrationStatus": self._notify}
        return grpc.method_handlers_generic_handler(
            service.full_name,
            {
                name: grpc.unary_unary_rpc_method_handler(
                    functions[name],
                    request_deserializer=method.request_class.FromString,
                    response_serializer=method.reply_class.SerializeToString,
                )
                for name, method in service.methods.items()
            },
        )
