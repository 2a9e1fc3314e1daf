"""The services and their calls, from the descriptors: what the client stubs and the server kit are built from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message

from volumehost_csi_kit import _pool


class Method:
    """One call. ``path`` is the one on the wire, ``streams`` whether the reply is a stream of messages."""

    def __init__(self, descriptor: MethodDescriptor) -> None:
        self.name = descriptor.name
        self.service = descriptor.containing_service.name
        self.path = f"/{descriptor.containing_service.full_name}/{descriptor.name}"
        self.streams = bool(descriptor.server_streaming)
        self._request = descriptor.input_type.full_name
        self._reply = descriptor.output_type.full_name

    @cached_property
    def request_class(self) -> type[Message]:
        """The message that it takes."""
        return _pool.message_class(self._request)

    @cached_property
    def reply_class(self) -> type[Message]:
        """The message that it answers with, or streams."""
        return _pool.message_class(self._reply)

    def __repr__(self) -> str:
        return f"<{self.path}>"


class Service(NamedTuple):
    """One service: its short name, its full name on the wire and its calls by name."""

    name: str
    full_name: str
    methods: Mapping[str, Method]


def _service(descriptor: ServiceDescriptor) -> Service:
    return Service(descriptor.name, descriptor.full_name, {m.name: Method(m) for m in descriptor.methods})


#: By short name: Identity, Controller, GroupController, SnapshotMetadata, Node, Registration.
SERVICES: Mapping[str, Service] = {
    name: _service(descriptor)
    for file in ("csi.proto", "registration.proto")
    for name, descriptor in _pool.POOL.FindFileByName(file).services_by_name.items()
}
