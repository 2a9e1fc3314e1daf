"""The private descriptor pool: message classes and enums, each made when it is first asked for.

Nothing of CSI enters protobuf's process-wide pool, so another package's own ``csi_pb2`` or ``api_pb2``, from whatever
version of the specification, can be imported before or after this one (BR-79). Only serialized descriptors are checked
in, no generated code that would ask for a certain runtime (BR-80).
"""

from __future__ import annotations

import threading
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from volumehost_csi_kit import _descriptors

POOL = descriptor_pool.DescriptorPool()
for _file in (
    _descriptors.DESCRIPTOR,
    _descriptors.TIMESTAMP,
    _descriptors.WRAPPERS,
    _descriptors.CSI,
    _descriptors.REGISTRATION,
):
    POOL.AddSerializedFile(_file)

#: Protobuf's own types that CSI messages contain: made in this pool they are not the classes of google.protobuf.
_WELL_KNOWN = ("Timestamp", "BoolValue", "Int64Value")
# Two threads that both made the class of one message would get two, of which protobuf accepts one.
_making = threading.RLock()


def load(file_name: str, name: str) -> Any:
    """What generated code for that proto file would have under ``name``: a class, an enum, a value, an extension.

    :raises AttributeError: nothing of that name is in the file.
    """
    file = POOL.FindFileByName(file_name)
    if name == "DESCRIPTOR":
        return file
    if name in file.message_types_by_name:
        return message_class(f"{file.package}.{name}")
    if (enum := file.enum_types_by_name.get(name)) is not None:
        return EnumTypeWrapper(enum)
    if (extension := file.extensions_by_name.get(name)) is not None:
        return extension
    for enum in file.enum_types_by_name.values():
        if (value := enum.values_by_name.get(name)) is not None:
            return value.number
    if name in _WELL_KNOWN and file.dependencies:
        return message_class(f"google.protobuf.{name}")
    raise AttributeError(f"nothing in {file_name} is called {name!r}")


def names(file_name: str) -> list[str]:
    """Every name that :func:`load` finds in that file."""
    file = POOL.FindFileByName(file_name)
    found = ["DESCRIPTOR", *file.message_types_by_name, *file.enum_types_by_name, *file.extensions_by_name]
    found += [value for enum in file.enum_types_by_name.values() for value in enum.values_by_name]
    return [*found, *(_WELL_KNOWN if file.dependencies else ())]


def message_class(full_name: str) -> type[Message]:
    """The class of a message in this pool, by its full proto name.

    :raises KeyError: there is no such message.
    """
    descriptor = POOL.FindMessageTypeByName(full_name)
    with _making:
        made = message_factory.GetMessageClass(descriptor)
        for nested in descriptor.nested_types:
            # Old protobuf without its C library leaves them out where no generated code puts them in (BR-80).
            if not hasattr(made, nested.name):
                setattr(made, nested.name, message_class(nested.full_name))
    module = "registration" if descriptor.file.name == "registration.proto" else "csi"
    made.__module__ = f"volumehost_csi_kit.{module}"  # for pickle, and for people who read an error
    return made
