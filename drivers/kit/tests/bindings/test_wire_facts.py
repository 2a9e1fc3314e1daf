"""The bindings against an independent table of wire facts: CSI 1.13, and registration (CSI-RAPI-03)."""

from __future__ import annotations

from pathlib import Path

import pytest

from volumehost_csi_kit import _pool, csi, registration

FACTS = Path(__file__).with_name("wire_facts.txt").read_text().splitlines()
SCALARS = {1: "double", 3: "int64", 5: "int32", 8: "bool", 9: "string"}

REGISTRATION = """\
InfoRequest:
PluginInfo:
  1 type string
  2 name string
  3 endpoint string
  4 supported_versions repeated string
RegistrationStatus:
  1 plugin_registered bool
  2 error string
RegistrationStatusResponse:
service Registration:
  GetInfo InfoRequest PluginInfo
  NotifyRegistrationStatus RegistrationStatus RegistrationStatusResponse
"""


def parsed(module):
    """The file's descriptor as a message of the private pool, where the options' extensions are known."""
    for options in ("Field", "Message", "Method", "Service", "EnumValue", "Enum"):
        _pool.message_class(f"google.protobuf.{options}Options")
    return _pool.message_class("google.protobuf.FileDescriptorProto").FromString(module.DESCRIPTOR.serialized_pb)


def marks(options, kind):
    found = []
    if kind == "field" and options.Extensions[csi.csi_secret]:
        found.append("secret")
    if options.Extensions[getattr(csi, f"alpha_{kind}")]:
        found.append("alpha")
    return found


def described(module):
    """Every fact in the table's form, in its order."""
    file = parsed(module)

    def short(name):
        return name.removeprefix(f".{file.package}.").removeprefix(".")

    def line(*words):
        return " ".join(word for word in words if word)

    def enum(prefix, descriptor):
        yield f"enum {prefix}{descriptor.name}:"
        for value in descriptor.value:
            yield "  " + line(str(value.number), value.name, *marks(value.options, "enum_value"))

    def message(prefix, descriptor):
        name = prefix + descriptor.name
        yield line(name, *marks(descriptor.options, "message")) + ":"
        maps = {nested.name: nested for nested in descriptor.nested_type if nested.options.map_entry}
        for field in sorted(descriptor.field, key=lambda field: field.number):
            entry = maps.get(field.type_name.rpartition(".")[2])
            kind = SCALARS.get(field.type) or short(field.type_name)
            if entry is not None:
                kind = "map<" + ",".join(SCALARS[part.type] for part in entry.field) + ">"
            elif field.label == 3:
                kind = f"repeated {kind}"
            if field.HasField("oneof_index"):
                kind = f"oneof({descriptor.oneof_decl[field.oneof_index].name}) {kind}"
            yield "  " + line(str(field.number), field.name, kind, *marks(field.options, "field"))
        for nested in descriptor.nested_type:
            if nested.name not in maps:
                yield from message(f"{name}.", nested)
        for nested in descriptor.enum_type:
            yield from enum(f"{name}.", nested)

    for descriptor in sorted(file.message_type, key=lambda descriptor: descriptor.name):
        yield from message("", descriptor)
    for descriptor in file.enum_type:
        yield from enum("", descriptor)
    for service in file.service:
        yield line("service", service.name, *marks(service.options, "service")) + ":"
        for method in service.method:
            words = (method.name, short(method.input_type), "stream" if method.server_streaming else "")
            yield "  " + line(*words, short(method.output_type), *marks(method.options, "method"))


def blocks(lines):
    """Lines by the heading that they stand under."""
    found = {}
    for text in lines:
        if not text.startswith(" "):
            current = found.setdefault(text, [])
        else:
            current.append(text)
    return found


def test_every_message_enum_and_service_of_csi_is_as_on_the_wire():
    assert blocks(described(csi)) == blocks(FACTS)


def test_registration_is_as_on_the_wire():
    assert blocks(described(registration)) == blocks(REGISTRATION.splitlines())


def test_full_names_are_those_of_the_protocols():
    assert csi.NodeStageVolumeRequest.DESCRIPTOR.full_name == "csi.v1.NodeStageVolumeRequest"
    assert registration.PluginInfo.DESCRIPTOR.full_name == "pluginregistration.PluginInfo"


@pytest.mark.parametrize(
    ("extension", "number"),
    [("csi_secret", 1059), ("alpha_field", 1060), ("alpha_enum", 1060), ("alpha_service", 1060)],
)
def test_option_numbers(extension, number):
    assert getattr(csi, extension).number == number


def test_bytes_of_a_request_are_those_of_the_protocol():
    """Tags written by hand: field 1 and field 3 are strings, field 4 holds a mount with the mode in field 3."""
    capability = csi.VolumeCapability(
        mount=csi.VolumeCapability.MountVolume(fs_type="xfs"),
        access_mode=csi.VolumeCapability.AccessMode(mode=csi.VolumeCapability.AccessMode.MULTI_NODE_MULTI_WRITER),
    )
    request = csi.NodeStageVolumeRequest(volume_id="v", staging_target_path="/s", volume_capability=capability)
    assert request.SerializeToString() == b"\x0a\x01v\x1a\x02/s\x22\x0b\x12\x05\x0a\x03xfs\x1a\x02\x08\x05"
