"""Typed client stubs: ``stubs.NodeStub(channel).NodeStageVolume(request, timeout=5)``, as grpc's generated ones.

Each call is prepared when it is first used. The type stub ``stubs.pyi`` has them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from volumehost_csi_kit._services import SERVICES, Service

if TYPE_CHECKING:
    import grpc


class _Stub:
    """One service over one channel; attributes are grpc's multi-callables."""

    _service: Service

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def __getattr__(self, name: str) -> Any:
        method = self._service.methods.get(name)
        if method is None:
            raise AttributeError(f"{type(self).__name__} has no call {name!r}")
        make = self._channel.unary_stream if method.streams else self._channel.unary_unary
        call = make(
            method.path,
            request_serializer=method.request_class.SerializeToString,
            response_deserializer=method.reply_class.FromString,
        )
        self.__dict__[name] = call
        return call

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._service.methods]


class IdentityStub(_Stub):
    """Calls of ``csi.v1.Identity``."""

    _service = SERVICES["Identity"]


class ControllerStub(_Stub):
    """Calls of ``csi.v1.Controller``."""

    _service = SERVICES["Controller"]


class GroupControllerStub(_Stub):
    """Calls of ``csi.v1.GroupController``."""

    _service = SERVICES["GroupController"]


class SnapshotMetadataStub(_Stub):
    """Calls of ``csi.v1.SnapshotMetadata``."""

    _service = SERVICES["SnapshotMetadata"]


class NodeStub(_Stub):
    """Calls of ``csi.v1.Node``."""

    _service = SERVICES["Node"]


class RegistrationStub(_Stub):
    """Calls of ``pluginregistration.Registration``."""

    _service = SERVICES["Registration"]
