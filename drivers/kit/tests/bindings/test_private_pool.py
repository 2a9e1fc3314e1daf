"""BR-79: other packages' generated code for the same protocols lives in the same process, whatever came first."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from volumehost_csi_kit import csi, registration

MODULES = {
    "csi": ("csi.v1", "NodeStageVolumeRequest"),
    "registration": ("pluginregistration", "PluginInfo"),
}
OURS = "from volumehost_csi_kit import csi, registration, stubs; csi.NodeStageVolumeRequest; registration.PluginInfo"
THEIRS = "import csi_pb2, api_pb2"
CHECK = """
from google.protobuf import descriptor_pool
default = descriptor_pool.Default()
assert csi.DESCRIPTOR.pool is not default
assert set(default.FindFileByName("csi.proto").message_types_by_name) == {"NodeStageVolumeRequest"}
assert csi_pb2.NodeStageVolumeRequest(vendors_own="x").SerializeToString() == b"\\x0a\\x01x"
assert api_pb2.PluginInfo(vendors_own="x").SerializeToString() == b"\\x0a\\x01x"
assert csi.NodeStageVolumeRequest(volume_id="x").SerializeToString() == b"\\x0a\\x01x"
assert registration.PluginInfo(type="x").SerializeToString() == b"\\x0a\\x01x"
"""


@pytest.fixture
def vendor(tmp_path):
    """A directory with generated code of another version of both protocols, in protobuf's default pool."""
    for module, file_name, (package, message) in (
        ("csi_pb2", "csi.proto", MODULES["csi"]),
        ("api_pb2", "api.proto", MODULES["registration"]),
    ):
        file = FileDescriptorProto(name=file_name, package=package, syntax="proto3")
        field = file.message_type.add(name=message).field.add(name="vendors_own", number=1)
        field.type, field.label = field.TYPE_STRING, field.LABEL_OPTIONAL
        (tmp_path / f"{module}.py").write_text(
            textwrap.dedent(f"""
                from google.protobuf import descriptor_pool
                from google.protobuf.internal import builder
                DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({file.SerializeToString()!r})
                builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
                builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, {module!r}, globals())
            """)
        )
    return tmp_path


def run(code, where, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=where,
        env={"PYTHONPATH": str(where), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", [(OURS, THEIRS), (THEIRS, OURS)], ids=["ours first", "theirs first"])
def test_br79_beside_a_vendors_own(vendor, order):
    run("\n".join([*order, CHECK]), vendor)


@pytest.mark.parametrize("order", [(OURS, THEIRS), (THEIRS, OURS)], ids=["ours first", "theirs first"])
def test_br79_in_protobuf_without_its_c_library(vendor, order):
    run("\n".join([*order, CHECK]), vendor, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


def test_the_vendors_two_versions_would_clash_in_the_default_pool(vendor):
    """The fixture can fail: the same names with other content are what protobuf refuses."""
    other = FileDescriptorProto(name="other.proto", package="csi.v1", syntax="proto3")
    other.message_type.add(name="NodeStageVolumeRequest")
    code = f"""
import csi_pb2
from google.protobuf import descriptor_pool
try:
    descriptor_pool.Default().AddSerializedFile({other.SerializeToString()!r})
except TypeError:
    raise SystemExit(0)
raise SystemExit("no clash")
"""
    run(code, vendor)


def test_the_package_alone_imports_neither_grpc_nor_protobuf(tmp_path):
    run("import sys, volumehost_csi_kit; assert not {'grpc', 'google.protobuf'} & set(sys.modules)", tmp_path)


def test_bindings_alone_import_no_grpc(tmp_path):
    run("import sys; from volumehost_csi_kit import csi, redaction, stubs; assert 'grpc' not in sys.modules", tmp_path)


def test_redaction_works_without_protobufs_c_library(tmp_path):
    code = """
from volumehost_csi_kit import csi
from volumehost_csi_kit.redaction import redacted
assert redacted(csi.NodeStageVolumeRequest(secrets={"a": "b"})) == "{secrets=***stripped***}"
"""
    run(code, tmp_path, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


def test_nothing_of_ours_is_in_the_default_pool():
    from google.protobuf import descriptor_pool

    for name in (csi.DESCRIPTOR.name, registration.DESCRIPTOR.name):
        with pytest.raises(KeyError):
            descriptor_pool.Default().FindFileByName(name)
