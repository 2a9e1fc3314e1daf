"""The API types: wire names, defaults that are written, and reprs that keep private content private."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from volumehost.api import objects
from volumehost.api.convert import to_object, to_wire
from volumehost.api.kinds import KINDS
from volumehost.api.objects import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    EmptyDirVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    PodStatus,
    Secret,
    TokenRequest,
    TokenRequestStatus,
    VolumeAttachment,
    VolumeAttachmentStatus,
)
from volumehost.api.objects.base import ApiStruct
from volumehost.spec import Spec

SECRET = "hunter2-do-not-show"

#: Names that the plain rule "snake to camel" would get wrong.
SPECIAL_NAMES = [
    (objects.Volume, "downward_api", "downwardAPI"),
    (objects.Volume, "scale_io", "scaleIO"),
    (objects.Volume, "storageos", "storageos"),
    (objects.Volume, "aws_elastic_block_store", "awsElasticBlockStore"),
    (objects.Volume, "gce_persistent_disk", "gcePersistentDisk"),
    (objects.Volume, "cephfs", "cephfs"),
    (objects.PersistentVolumeSpec, "scale_io", "scaleIO"),
    (objects.PodSpec, "host_pid", "hostPID"),
    (objects.PodSpec, "host_ipc", "hostIPC"),
    (objects.PodSpec, "set_hostname_as_fqdn", "setHostnameAsFQDN"),
    (objects.PodStatus, "pod_ips", "podIPs"),
    (objects.PodStatus, "host_ip", "hostIP"),
    (objects.VolumeProjection, "downward_api", "downwardAPI"),
    (AWSElasticBlockStoreVolumeSource, "volume_id", "volumeID"),
    (AzureDiskVolumeSource, "disk_uri", "diskURI"),
    (FCVolumeSource, "target_wwns", "targetWWNs"),
    (objects.FlockerVolumeSource, "dataset_uuid", "datasetUUID"),
    (objects.PhotonPersistentDiskVolumeSource, "pd_id", "pdID"),
    (objects.VsphereVirtualDiskVolumeSource, "storage_policy_id", "storagePolicyID"),
    (objects.CSINodeDriver, "node_id", "nodeID"),
    (objects.CSIVolumeSource, "fs_type", "fsType"),
    (objects.ISCSIVolumeSource, "chap_auth_discovery", "chapAuthDiscovery"),
    (objects.NodeSystemInfo, "system_uuid", "systemUUID"),
    (objects.NodeSystemInfo, "boot_id", "bootID"),
    (objects.NodeSpec, "pod_cidrs", "podCIDRs"),
    (objects.NodeSpec, "provider_id", "providerID"),
    (objects.ContainerStatus, "container_id", "containerID"),
    (objects.PodSecurityContext, "se_linux_options", "seLinuxOptions"),
    (objects.CSIDriverSpec, "se_linux_mount", "seLinuxMount"),
]


def all_structs() -> list[type[ApiStruct]]:
    """The types of this package; a server for tests has more of its own."""
    found: list[type[ApiStruct]] = []
    pending: list[type[ApiStruct]] = [ApiStruct]
    while pending:
        struct = pending.pop()
        found.append(struct)
        pending += struct.__subclasses__()
    ours = (struct for struct in set(found) if struct.__module__.startswith("volumehost.api.objects."))
    return sorted(set(ours) - {ApiStruct}, key=lambda struct: struct.__name__)


@pytest.mark.parametrize(("struct", "attribute", "wire"), SPECIAL_NAMES)
def test_names_with_acronyms(struct: type[ApiStruct], attribute: str, wire: str) -> None:
    names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    assert names[attribute] == wire


@pytest.mark.parametrize("struct", all_structs(), ids=lambda struct: struct.__name__)
def test_every_struct_is_made_without_arguments_and_survives_the_wire(struct: type[ApiStruct]) -> None:
    empty = struct()
    assert msgspec.json.decode(msgspec.json.encode(empty), type=struct) == empty


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kind_and_version_are_always_written(kind: objects.KubeObject) -> None:
    wire = to_wire(kind.struct())  # type: ignore[attr-defined]
    assert wire["kind"] == kind.kind
    assert wire["apiVersion"] == kind.api_version


def test_unset_fields_are_left_out() -> None:
    wire = to_wire(Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(host_pid=True)))
    assert wire == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"hostPID": True},
        "status": {},
    }


def test_an_empty_source_is_kept() -> None:
    volume = objects.Volume(name="scratch", empty_dir=EmptyDirVolumeSource())
    assert to_wire(volume) == {"name": "scratch", "emptyDir": {}}


def test_sources_are_every_kind_of_source() -> None:
    assert len(objects.Volume.SOURCES) == 30
    assert len(PersistentVolumeSpec.SOURCES) == 22
    assert {"host_path", "empty_dir", "csi", "image", "ephemeral"} <= set(objects.Volume.SOURCES)
    assert {"host_path", "local", "csi", "nfs"} <= set(PersistentVolumeSpec.SOURCES)
    for holder in (objects.Volume, PersistentVolumeSpec):
        for name in holder.SOURCES:
            assert getattr(holder(), name) is None


@pytest.mark.parametrize("name", objects.Volume.SOURCES)
def test_spec_finds_the_source_of_a_pods_volume(name: str) -> None:
    wire = dict(zip(objects.Volume.__struct_fields__, objects.Volume.__struct_encode_fields__, strict=True))[name]
    volume = to_object(objects.Volume, {"name": "x", wire: {}})
    assert Spec.from_volume(volume).source() == name


@pytest.mark.parametrize("name", PersistentVolumeSpec.SOURCES)
def test_spec_finds_the_source_of_a_persistent_volume(name: str) -> None:
    fields = zip(PersistentVolumeSpec.__struct_fields__, PersistentVolumeSpec.__struct_encode_fields__, strict=True)
    volume = to_object(PersistentVolume, {"metadata": {"name": "x"}, "spec": {dict(fields)[name]: {}}})
    assert Spec.from_persistent_volume(volume, read_only=False).source() == name


PRIVATE_OBJECTS = [
    Secret(metadata=ObjectMeta(name="s"), data={"key": SECRET.encode()}, string_data={"key": SECRET}),
    Secret(metadata=ObjectMeta(name="s", annotations={"last-applied": SECRET})),
    CSIVolumeSource(driver="d", volume_attributes={"key": SECRET}),
    CSIPersistentVolumeSource(driver="d", volume_attributes={"key": SECRET}),
    FlexVolumeSource(driver="d", options={"key": SECRET}),
    TokenRequest(status=TokenRequestStatus(token=SECRET)),
    VolumeAttachment(status=VolumeAttachmentStatus(attachment_metadata={"key": SECRET})),
    Pod(spec=PodSpec(volumes=[objects.Volume(name="v", csi=CSIVolumeSource(volume_attributes={"key": SECRET}))])),
]


@pytest.mark.parametrize("obj", PRIVATE_OBJECTS, ids=lambda obj: type(obj).__name__)
def test_private_content_is_never_shown(obj: ApiStruct) -> None:
    console = Console(width=500)
    with console.capture() as capture:
        console.print(obj)
    for shown in (repr(obj), str(obj), f"{obj}", f"{[obj]}", capture.get()):
        assert SECRET not in shown
        assert SECRET.encode().hex() not in shown


def test_keys_of_private_mappings_are_shown() -> None:
    assert "key" in repr(CSIVolumeSource(volume_attributes={"key": SECRET}))
    assert repr(TokenRequestStatus(token=SECRET)) == "TokenRequestStatus(token=<private>)"


def test_a_repr_shows_what_is_set() -> None:
    assert repr(PodStatus(phase="Running")) == "PodStatus(phase='Running')"
    assert repr(EmptyDirVolumeSource()) == "EmptyDirVolumeSource()"
    assert "fs_group=0" in repr(objects.PodSecurityContext(fs_group=0))


def test_defaults_are_not_shared() -> None:
    one, other = Pod(), Pod()
    one.spec.volumes.append(objects.Volume(name="x"))
    one.metadata.labels["a"] = "b"
    assert other == Pod()


def test_every_type_is_exported() -> None:
    assert {struct.__name__ for struct in all_structs()} <= set(objects.__all__)
    assert all(hasattr(objects, name) for name in objects.__all__)


def test_contract_alone_loads_no_api_types() -> None:
    code = "import sys, volumehost; print(*{'msgspec', 'yaml', 'sqlite3', 'volumehost.api'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


#: Wire names of the fields that each type has in Kubernetes 1.36.
KUBERNETES_FIELDS = {
    name: fields
    for source in ("kubernetes_1_36_fields.json", "snapshot_v1_fields.json")
    for name, fields in json.loads((Path(__file__).parent / source).read_text()).items()
}
#: One type of ours stands for several of theirs.
SHARED = {"Condition", "IPAddress"}


@pytest.mark.parametrize("name", KUBERNETES_FIELDS)
def test_fields_are_those_of_kubernetes(name: str) -> None:
    struct = getattr(objects, name)
    ours = set(struct.__struct_encode_fields__)
    if issubclass(struct, objects.KubeObject):
        ours -= {"apiVersion", "kind", "metadata"}
    assert ours == set(KUBERNETES_FIELDS[name])


def test_every_type_of_a_spec_is_among_them() -> None:
    without = {
        "KubeObject",
        "TokenRequest",
        "ObjectMeta",
        "OwnerReference",
        "LabelSelector",
        "LabelSelectorRequirement",
    } | SHARED
    assert {struct.__name__ for struct in all_structs()} - without <= set(KUBERNETES_FIELDS)
