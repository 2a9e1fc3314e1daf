# ruff: noqa: INP001 - a script, in no package
"""Compile ``proto/*.proto`` and write what is checked in: the serialized descriptors and the type stubs.

Run it with ``make bindings``, which brings the oldest supported toolchain (BR-80).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "volumehost_csi_kit"
MODULES = {"csi": "csi.proto", "registration": "registration.proto"}
WARNING = "Generated from proto/ by `make bindings`; change that, not this."
NAMES_OF_PROTOBUF = "# ruff: noqa: N802 - the names are protobuf's"
SCALARS = {
    FieldDescriptorProto.TYPE_STRING: "str",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_INT32: "int",
    FieldDescriptorProto.TYPE_INT64: "int",
    FieldDescriptorProto.TYPE_ENUM: "int",
}
#: Well-known types that the messages contain: made in the private pool too, so they are not those of google.protobuf.
WELL_KNOWN = {
    "google.protobuf.Timestamp": ("well_known_types.Timestamp", (("seconds", "int"), ("nanos", "int"))),
    "google.protobuf.BoolValue": ("", (("value", "bool"),)),
    "google.protobuf.Int64Value": ("", (("value", "int"),)),
}


def compile_protos() -> dict[str, FileDescriptorProto]:
    """Every file and what it imports, in an order in which they can be added to a pool."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(HERE / "proto"), "--include_imports"]
        subprocess.run([*command, "-o", str(output), *MODULES.values()], check=True)
        files = FileDescriptorSet.FromString(output.read_bytes())
    return {file.name: file for file in files.file}


def bytes_literal(data: bytes, width: int = 96) -> Iterator[str]:
    """Lines of a bytes literal that a formatter leaves alone."""
    line = ""
    for byte in data:
        plain = 0x20 <= byte < 0x7F and byte not in b'"\\'
        line += chr(byte) if plain else f"\\x{byte:02x}"
        if len(line) >= width:
            yield f'    b"{line}"'
            line = ""
    if line:
        yield f'    b"{line}"'


def descriptors_module(files: dict[str, FileDescriptorProto]) -> str:
    """The module that holds each file's serialized descriptor."""
    lines = [f'"""Serialized descriptors. {WARNING}"""', "", "# fmt: off", ""]
    for file in files.values():
        constant = Path(file.name).stem.upper()
        imports = ", ".join(file.dependency)
        lines += [f"#: {file.name}" + (f", after {imports}" if imports else ""), f"{constant} = ("]
        lines += [*bytes_literal(file.SerializeToString(deterministic=True)), ")", ""]
    return "\n".join(lines)


class Stub:
    """The type stub of one proto file's module."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self.file = file
        self.used = sorted(
            {field.type_name[1:] for message in _all_messages(file.message_type) for field in message.field}
            & set(WELL_KNOWN)
        )

    def text(self) -> str:
        """The whole stub."""
        body: list[str] = []
        for name in self.used:
            body += self.well_known(name)
        for enum in self.file.enum_type:
            body += ["", *self.enum(enum)]
        for message in self.file.message_type:
            body += ["", *self.message(message)]
        body += ["", *(f"{extension.name}: FieldDescriptor" for extension in self.file.extension)]
        return "\n".join([*self.head("\n".join(body)), *body]).rstrip() + "\n"

    def head(self, body: str) -> list[str]:
        """What it is, and the imports that the body needs."""
        typing = [name for name in ("Literal",) if f"{name}[" in body]
        abc = [name for name in ("Iterable", "Mapping") if f"{name}[" in body]
        containers = [
            name
            for name in ("RepeatedCompositeFieldContainer", "RepeatedScalarFieldContainer", "ScalarMap")
            if f"{name}[" in body
        ]
        descriptors = ["FieldDescriptor"] if ": FieldDescriptor" in body else []
        descriptors.append("FileDescriptor")
        internal = [name for name in ("well_known_types",) if f"{name}." in body]
        lines = [f"# Messages and enums of {self.file.package}. {WARNING}"]
        lines += [NAMES_OF_PROTOBUF] if "HasField(" in body else []
        lines += [""]
        lines += [f"from collections.abc import {', '.join(abc)}"] if abc else []
        lines += [f"from typing import {', '.join(typing)}"] if typing else []
        lines += [""] if abc or typing else []
        lines += [f"from google.protobuf.descriptor import {', '.join(descriptors)}"]
        lines += [f"from google.protobuf.internal import {', '.join(internal)}"] if internal else []
        if len(containers) > 1:
            lines += ["from google.protobuf.internal.containers import ("]
            lines += [f"    {name}," for name in containers] + [")"]
        elif containers:
            lines += [f"from google.protobuf.internal.containers import {containers[0]}"]
        if "_EnumTypeWrapper[" in body:
            lines += ["from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper"]
        return [*lines, "from google.protobuf.message import Message", "", "DESCRIPTOR: FileDescriptor"]

    def well_known(self, name: str) -> list[str]:
        """A class for one of protobuf's own types."""
        base, fields = WELL_KNOWN[name]
        lines = ["", f"class {name.rpartition('.')[2]}({', '.join(filter(None, ('Message', base)))}):"]
        lines += [f"    {field}: {kind}" for field, kind in fields]
        return [*lines, f"    def __init__(self, *, {', '.join(f'{f}: {k} = ...' for f, k in fields)}) -> None: ..."]

    def enum(self, enum: EnumDescriptorProto) -> list[str]:
        """The wrapper and the values, which are plain ints."""
        return [f"{enum.name}: _EnumTypeWrapper[int]", *(f"{value.name}: int" for value in enum.value)]

    def message(self, message: DescriptorProto) -> list[str]:
        """One class with its nested ones."""
        lines = [f"class {message.name}(Message):"]
        maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        for enum in message.enum_type:
            lines += _indented([*self.enum(enum), ""])
        for nested in message.nested_type:
            if nested.name not in maps:
                lines += _indented([*self.message(nested), ""])
        attributes, parameters, optional = [], [], []
        for field in message.field:
            attribute, parameter, is_message = self.field(field, maps)
            attributes += attribute
            parameters.append(parameter)
            if is_message or field.HasField("oneof_index"):
                optional.append(field.name)
        lines += _indented(attributes)
        if parameters:
            lines += _indented(["def __init__(", "    self,", "    *,", *(f"    {p}," for p in parameters)])
            lines += _indented([") -> None: ..."])
        if optional:
            lines += _indented([f"def HasField(self, field_name: {_literal(optional)}) -> bool: ..."])
        for index, oneof in enumerate(message.oneof_decl):
            members = [f.name for f in message.field if f.HasField("oneof_index") and f.oneof_index == index]
            reply = f"{_literal(members)} | None"
            lines += _indented([f"def WhichOneof(self, oneof_group: {_literal([oneof.name])}) -> {reply}: ..."])
        if len(lines) == 1:
            return [f"class {message.name}(Message): ..."]
        while not lines[-1].strip():
            lines.pop()
        return lines

    def field(self, field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> tuple[list[str], str, bool]:
        """How the field is read, how the constructor takes it, and whether it is a single message."""
        entry = maps.get(field.type_name.rpartition(".")[2])
        if entry is not None:
            key, value = (SCALARS[part.type] for part in entry.field)
            return (
                _property(field.name, f"ScalarMap[{key}, {value}]"),
                f"{field.name}: Mapping[{key}, {value}] | None = ...",
                False,
            )
        is_message = field.type == FieldDescriptorProto.TYPE_MESSAGE
        kind = self.reference(field.type_name) if is_message else SCALARS[field.type]
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            container = "RepeatedCompositeFieldContainer" if is_message else "RepeatedScalarFieldContainer"
            return (
                _property(field.name, f"{container}[{kind}]"),
                f"{field.name}: Iterable[{kind}] | None = ...",
                False,
            )
        if is_message:
            return _property(field.name, kind), f"{field.name}: {kind} | None = ...", True
        return [f"{field.name}: {kind}"], f"{field.name}: {kind} = ...", False

    def reference(self, type_name: str) -> str:
        """The Python name of a message type."""
        full = type_name[1:]
        return full.rpartition(".")[2] if full in WELL_KNOWN else full.removeprefix(self.file.package + ".")


def stubs_module(files: dict[str, FileDescriptorProto]) -> str:
    """The type stub of the client stubs."""
    body: list[str] = []
    for module, name in MODULES.items():
        for service in files[name].service:
            body += ["", f"class {service.name}Stub:"]
            body += ["    def __init__(self, channel: grpc.Channel) -> None: ..."]
            for method in service.method:
                kind = "UnaryStreamMultiCallable" if method.server_streaming else "UnaryUnaryMultiCallable"
                request, reply = (f"{module}.{t.rpartition('.')[2]}" for t in (method.input_type, method.output_type))
                body += [f"    {method.name}: grpc.{kind}[", f"        {request},", f"        {reply},", "    ]"]
    head = [f"# Typed client stubs. {WARNING}", "", "import grpc", ""]
    return "\n".join([*head, "from volumehost_csi_kit import csi, registration", *body]) + "\n"


def _all_messages(messages: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    for message in messages:
        yield message
        yield from _all_messages(message.nested_type)


def _property(name: str, kind: str) -> list[str]:
    return ["@property", f"def {name}(self) -> {kind}: ..."]


def _literal(names: Iterable[str]) -> str:
    return "Literal[" + ", ".join(f'"{name}"' for name in names) + "]"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def main() -> None:
    """Write all four files."""
    files = compile_protos()
    (PACKAGE / "_descriptors.py").write_text(descriptors_module(files))
    for module, name in MODULES.items():
        (PACKAGE / f"{module}.pyi").write_text(Stub(files[name]).text())
    (PACKAGE / "stubs.pyi").write_text(stubs_module(files))


if __name__ == "__main__":
    main()
