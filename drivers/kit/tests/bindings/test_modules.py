"""The generated modules as their users see them: names, classes, client stubs, type stubs."""

from __future__ import annotations

import ast
import copy
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

import volumehost_csi_kit
from volumehost_csi_kit import _descriptors, csi, registration, stubs
from volumehost_csi_kit._services import SERVICES

PACKAGE = Path(volumehost_csi_kit.__file__).parent
GENERATOR = PACKAGE.parent.parent / "tools" / "generate_bindings.py"


@pytest.mark.parametrize("module", [csi, registration])
def test_every_name_is_there(module):
    assert all(getattr(module, name) is getattr(module, name) for name in dir(module))


@pytest.mark.parametrize("module", [csi, registration])
def test_the_type_stub_has_the_same_names(module):
    tree = ast.parse((PACKAGE / f"{module.__name__.rpartition('.')[2]}.pyi").read_text())
    stubbed = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    stubbed |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert stubbed == set(dir(module))


def test_an_unknown_name():
    with pytest.raises(AttributeError, match=r"volumehost_csi_kit\.csi.*NodeStageVolume'"):
        csi.NodeStageVolume  # noqa: B018


def test_enum_values_are_ints_and_have_names():
    mode = csi.VolumeCapability.AccessMode
    assert mode.SINGLE_NODE_WRITER == mode.Mode.Value("SINGLE_NODE_WRITER") == 1
    assert csi.BlockMetadataType.Name(csi.VARIABLE_LENGTH) == "VARIABLE_LENGTH"


def test_messages_can_be_copied_compared_and_pickled():
    request = csi.NodeStageVolumeRequest(volume_id="v", volume_context={"a": "b"})
    for made in (copy.deepcopy(request), pickle.loads(pickle.dumps(request))):
        assert made == request
        assert type(made) is csi.NodeStageVolumeRequest
    assert repr(csi.NodeStageVolumeRequest) == "<class 'volumehost_csi_kit.csi.NodeStageVolumeRequest'>"


def test_well_known_types():
    snapshot = csi.Snapshot(creation_time=csi.Timestamp(seconds=1))
    assert snapshot.creation_time.ToJsonString() == "1970-01-01T00:00:01Z"
    assert not csi.ProbeResponse().HasField("ready")
    assert csi.ProbeResponse(ready=csi.BoolValue(value=False)).HasField("ready")


def test_threads_get_one_class():
    """A fresh pool and many threads: two classes for one message would not accept each other's instances."""
    code = """
import threading
from volumehost_csi_kit import csi
barrier, found = threading.Barrier(8), []
def load():
    barrier.wait()
    found.append(csi.VolumeCapability)
threads = [threading.Thread(target=load) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert len(set(found)) == 1
csi.NodeStageVolumeRequest(volume_capability=found[0]())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_service_has_a_stub_with_every_call():
    class Channel:
        def unary_unary(self, path, request_serializer, response_deserializer):
            return ("unary", path, request_serializer, response_deserializer)

        def unary_stream(self, path, request_serializer, response_deserializer):
            return ("stream", path, request_serializer, response_deserializer)

    for service in SERVICES.values():
        stub = getattr(stubs, f"{service.name}Stub")(Channel())
        assert set(service.methods) <= set(dir(stub))
        for name in service.methods:
            kind, path, serialize, parse = getattr(stub, name)
            assert path == f"/{service.full_name}/{name}"
            assert kind == ("stream" if service.name == "SnapshotMetadata" else "unary")
            request = service.methods[name].request_class()
            assert serialize(request) == b""
            assert isinstance(parse(b""), service.methods[name].reply_class)


def test_a_stub_without_such_a_call():
    with pytest.raises(AttributeError, match="NodeStub has no call 'NodeStage'"):
        stubs.NodeStub(None).NodeStage  # noqa: B018


def test_a_call_is_prepared_once():
    class Channel:
        made = 0

        def unary_unary(self, *_, **__):
            self.made += 1
            return object()

    channel = Channel()
    stub = stubs.NodeStub(channel)
    assert stub.NodeGetInfo is stub.NodeGetInfo
    assert channel.made == 1


@pytest.fixture(scope="module")
def generator():
    """The script that ``make bindings`` runs, as a module."""
    spec = importlib.util.spec_from_file_location("generate_bindings", GENERATOR)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_type_stubs_are_those_of_the_descriptors(generator):
    """BR-80: what is checked in is what the script writes."""
    files = {
        f"{name}.proto": FileDescriptorProto.FromString(getattr(_descriptors, name.upper()))
        for name in ("csi", "registration")
    }
    expected = {name: generator.Stub(files[f"{name}.proto"]).text() for name in ("csi", "registration")}
    expected["stubs"] = generator.stubs_module(files)
    ruff = str(Path(sys.executable).with_name("ruff"))
    for name, text in expected.items():
        formatted = subprocess.run(
            [ruff, "format", "--stdin-filename", str(PACKAGE / f"{name}.pyi"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        assert formatted == (PACKAGE / f"{name}.pyi").read_text(), name


def test_the_bytes_literal_is_exact(generator):
    data = bytes(range(256)) * 3
    assert ast.literal_eval("(" + "\n".join(generator.bytes_literal(data)) + ")") == data
