# Messages and enums of pluginregistration. Generated from proto/ by `make bindings`; change that, not this.

from collections.abc import Iterable

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import RepeatedScalarFieldContainer
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor

class InfoRequest(Message): ...

class PluginInfo(Message):
    type: str
    name: str
    endpoint: str
    @property
    def supported_versions(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        type: str = ...,
        name: str = ...,
        endpoint: str = ...,
        supported_versions: Iterable[str] | None = ...,
    ) -> None: ...

class RegistrationStatus(Message):
    plugin_registered: bool
    error: str
    def __init__(
        self,
        *,
        plugin_registered: bool = ...,
        error: str = ...,
    ) -> None: ...

class RegistrationStatusResponse(Message): ...
