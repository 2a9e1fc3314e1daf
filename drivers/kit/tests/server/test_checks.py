"""What the specification demands of requests, field by field: INVALID_ARGUMENT and the field's name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_csi_kit import csi
from volumehost_csi_kit._services import SERVICES
from volumehost_csi_kit.redaction import TOKEN_KEY
from volumehost_csi_kit.server import CsiError, FailedPreconditionError, InvalidArgumentError
from volumehost_csi_kit.server.checks import checks_of


def mounted():
    return csi.VolumeCapability(
        mount=csi.VolumeCapability.MountVolume(), access_mode=csi.VolumeCapability.AccessMode(mode=1)
    )


GOOD = {
    "CreateVolume": lambda: csi.CreateVolumeRequest(name="v", volume_capabilities=[mounted()]),
    "DeleteVolume": lambda: csi.DeleteVolumeRequest(volume_id="v"),
    "ControllerPublishVolume": lambda: csi.ControllerPublishVolumeRequest(
        volume_id="v", node_id="n", volume_capability=mounted()
    ),
    "ControllerUnpublishVolume": lambda: csi.ControllerUnpublishVolumeRequest(volume_id="v"),
    "ValidateVolumeCapabilities": lambda: csi.ValidateVolumeCapabilitiesRequest(
        volume_id="v", volume_capabilities=[mounted()]
    ),
    "ListVolumes": csi.ListVolumesRequest,
    "GetCapacity": csi.GetCapacityRequest,
    "CreateSnapshot": lambda: csi.CreateSnapshotRequest(source_volume_id="v", name="s"),
    "DeleteSnapshot": lambda: csi.DeleteSnapshotRequest(snapshot_id="s"),
    "ListSnapshots": csi.ListSnapshotsRequest,
    "GetSnapshot": lambda: csi.GetSnapshotRequest(snapshot_id="s"),
    "ControllerExpandVolume": lambda: csi.ControllerExpandVolumeRequest(
        volume_id="v", capacity_range=csi.CapacityRange(required_bytes=1)
    ),
    "ControllerGetVolume": lambda: csi.ControllerGetVolumeRequest(volume_id="v"),
    "ControllerModifyVolume": lambda: csi.ControllerModifyVolumeRequest(volume_id="v", mutable_parameters={"a": "b"}),
    "CreateVolumeGroupSnapshot": lambda: csi.CreateVolumeGroupSnapshotRequest(name="g", source_volume_ids=["v"]),
    "DeleteVolumeGroupSnapshot": lambda: csi.DeleteVolumeGroupSnapshotRequest(
        group_snapshot_id="g", snapshot_ids=["s"]
    ),
    "GetVolumeGroupSnapshot": lambda: csi.GetVolumeGroupSnapshotRequest(group_snapshot_id="g", snapshot_ids=["s"]),
    "GetMetadataAllocated": lambda: csi.GetMetadataAllocatedRequest(snapshot_id="s"),
    "GetMetadataDelta": lambda: csi.GetMetadataDeltaRequest(base_snapshot_id="s", target_snapshot_id="t"),
    "NodeStageVolume": lambda: csi.NodeStageVolumeRequest(
        volume_id="v", staging_target_path="/s", volume_capability=mounted()
    ),
    "NodeUnstageVolume": lambda: csi.NodeUnstageVolumeRequest(volume_id="v", staging_target_path="/s"),
    "NodePublishVolume": lambda: csi.NodePublishVolumeRequest(
        volume_id="v", staging_target_path="/s", target_path="/t", volume_capability=mounted()
    ),
    "NodeUnpublishVolume": lambda: csi.NodeUnpublishVolumeRequest(volume_id="v", target_path="/t"),
    "NodeGetVolumeStats": lambda: csi.NodeGetVolumeStatsRequest(volume_id="v", volume_path="/t"),
    "NodeExpandVolume": lambda: csi.NodeExpandVolumeRequest(volume_id="v", volume_path="/t"),
}


def check(method, request, *, stages=True):
    for one in checks_of(method, lambda: stages):
        one(request)


def refused(method, **fields):
    """The field that a request with these fields is refused for; None clears a field."""
    request = GOOD[method]()
    for name, value in fields.items():
        request.ClearField(name)
        if value is None:
            continue
        if isinstance(value, dict):
            getattr(request, name).update(value)
        elif isinstance(value, list):
            getattr(request, name).extend(value)
        elif isinstance(value, str | int):
            setattr(request, name, value)
        else:
            getattr(request, name).CopyFrom(value)
    with pytest.raises(InvalidArgumentError) as caught:
        check(method, request)
    assert str(caught.value).startswith(f"{caught.value.field}: ")
    return caught.value.field


def test_every_call_with_arguments_is_in_the_table():
    asking = {
        name
        for service in SERVICES.values()
        for name in service.methods
        if service.name not in ("Identity", "Registration")
    }
    assert set(GOOD) == {name for name in asking if not name.endswith(("GetCapabilities", "GetInfo"))}


@pytest.mark.parametrize("method", GOOD)
def test_good_requests_pass(method):
    check(method, GOOD[method]())


REQUIRED = [
    (method, field.name)
    for method, make in GOOD.items()
    for field, _ in make().ListFields()
    if (method, field.name) != ("NodePublishVolume", "staging_target_path")
]


@pytest.mark.parametrize(("method", "field"), REQUIRED)
def test_what_is_required(method, field):
    assert refused(method, **{field: None}) == field


LIMITED = [
    (method, field.name)
    for method, make in GOOD.items()
    for field, value in make().ListFields()
    if isinstance(value, str) and not field.name.endswith("path") and field.name != "node_id"
]


@pytest.mark.parametrize(("method", "field"), LIMITED)
def test_strings_have_at_most_128_bytes(method, field):
    """CSI-WIRE-08."""
    request = GOOD[method]()
    setattr(request, field, "ä" * 64)
    check(method, request)
    assert refused(method, **{field: "ä" * 64 + "x"}) == field


def test_a_node_id_may_have_256():
    request = GOOD["ControllerPublishVolume"]()
    request.node_id = "n" * 256
    check("ControllerPublishVolume", request)
    assert refused("ControllerPublishVolume", node_id="n" * 257) == "node_id"
    assert refused("ControllerUnpublishVolume", node_id="n" * 257) == "node_id"


PATHS = [
    ("NodeStageVolume", "staging_target_path"),
    ("NodeUnstageVolume", "staging_target_path"),
    ("NodePublishVolume", "staging_target_path"),
    ("NodePublishVolume", "target_path"),
    ("NodeUnpublishVolume", "target_path"),
    ("NodeGetVolumeStats", "volume_path"),
    ("NodeGetVolumeStats", "staging_target_path"),
    ("NodeExpandVolume", "volume_path"),
    ("NodeExpandVolume", "staging_target_path"),
]


@pytest.mark.parametrize(("method", "field"), PATHS)
@pytest.mark.parametrize("path", ["relative", "./a", "/a/../b", "/..", "/a\0b", "/" + "d" * 4095])
def test_paths_are_absolute_and_lead_straight(method, field, path):
    assert refused(method, **{field: path}) == field


@pytest.mark.parametrize(("method", "field"), PATHS)
def test_paths_may_be_long_and_odd(method, field):
    request = GOOD[method]()
    setattr(request, field, "/a..b/..c/" + "d" * 4000)
    check(method, request)


WITH_CAPABILITY = [
    "ControllerPublishVolume",
    "ControllerExpandVolume",
    "NodeStageVolume",
    "NodePublishVolume",
    "NodeExpandVolume",
]


@pytest.mark.parametrize("method", WITH_CAPABILITY)
def test_a_capability_is_whole(method):
    access = csi.VolumeCapability.AccessMode
    mount = csi.VolumeCapability.MountVolume
    for part, field in (
        (csi.VolumeCapability(access_mode=access(mode=1)), "volume_capability"),
        (csi.VolumeCapability(mount=mount()), "volume_capability.access_mode"),
        (csi.VolumeCapability(mount=mount(), access_mode=access()), "volume_capability.access_mode"),
        (
            csi.VolumeCapability(mount=mount(mount_flags=["x" * 4096, "y"]), access_mode=access(mode=1)),
            "volume_capability.mount.mount_flags",
        ),
        (
            csi.VolumeCapability(mount=mount(fs_type="x" * 129), access_mode=access(mode=1)),
            "volume_capability.mount.fs_type",
        ),
    ):
        assert refused(method, volume_capability=part) == field


@pytest.mark.parametrize("method", ["CreateVolume", "ValidateVolumeCapabilities", "GetCapacity"])
def test_each_of_several_capabilities(method):
    assert refused(method, volume_capabilities=[mounted(), csi.VolumeCapability()]) == "volume_capabilities[1]"


@pytest.mark.parametrize("method", ["CreateVolume", "ControllerExpandVolume", "NodeExpandVolume"])
@pytest.mark.parametrize(("low", "high"), [(-1, 0), (0, -1), (2, 1), (0, 0)])
def test_capacity_ranges(method, low, high):
    """CSI-WIRE-09."""
    capacity = csi.CapacityRange(required_bytes=low, limit_bytes=high)
    request = GOOD[method]()
    request.capacity_range.CopyFrom(capacity)
    request.capacity_range.SetInParent()
    with pytest.raises(InvalidArgumentError, match=r"^capacity_range: "):
        check(method, request)


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (csi.VolumeContentSource(), "volume_content_source"),
        (
            csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource()),
            "volume_content_source.snapshot.snapshot_id",
        ),
        (
            csi.VolumeContentSource(volume=csi.VolumeContentSource.VolumeSource()),
            "volume_content_source.volume.volume_id",
        ),
    ],
)
def test_a_content_source_names_something(source, field):
    request = GOOD["CreateVolume"]()
    request.volume_content_source.CopyFrom(source)
    request.volume_content_source.SetInParent()
    with pytest.raises(InvalidArgumentError) as caught:
        check("CreateVolume", request)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("ListVolumes", "max_entries"),
        ("ListSnapshots", "max_entries"),
        ("GetMetadataAllocated", "starting_offset"),
        ("GetMetadataDelta", "max_results"),
    ],
)
def test_counts_are_not_negative(method, field):
    assert refused(method, **{field: -1}) == field


def test_lists_of_ids():
    assert refused("CreateVolumeGroupSnapshot", source_volume_ids=["a", ""]) == "source_volume_ids"
    assert refused("DeleteVolumeGroupSnapshot", snapshot_ids=["x" * 129]) == "snapshot_ids"


MAPS = [
    ("CreateVolume", "parameters"),
    ("ControllerModifyVolume", "mutable_parameters"),
    ("NodeStageVolume", "publish_context"),
    ("NodePublishVolume", "volume_context"),
    ("ControllerPublishVolume", "volume_context"),
]


@pytest.mark.parametrize(("method", "field"), MAPS)
def test_maps_have_at_most_4_kib(method, field):
    request = GOOD[method]()
    getattr(request, field).clear()
    getattr(request, field)["k" * 96] = "v" * 4000
    check(method, request)
    assert refused(method, **{field: {"k" * 97: "v" * 4000}}) == field


def test_tokens_do_not_count_and_neither_do_secrets():
    """Real tokens of a few audiences are longer than the limit of the specification."""
    request = GOOD["NodePublishVolume"]()
    request.volume_context[TOKEN_KEY] = "t" * 8000
    request.secrets["key"] = "s" * 8000
    check("NodePublishVolume", request)


@pytest.mark.parametrize("key", ["", "a b", "ä", "a/b", "a\n"])
def test_secret_keys(key):
    """CSI-WIRE-11."""
    for method, make in GOOD.items():
        if "secrets" in make().DESCRIPTOR.fields_by_name:
            assert refused(method, secrets={key: "hidden-value"}) == "secrets"


def test_a_secrets_value_is_not_in_the_refusal():
    request = csi.DeleteVolumeRequest(volume_id="v", secrets={"a b": "hidden-value"})
    with pytest.raises(InvalidArgumentError) as caught:
        check("DeleteVolume", request)
    assert "hidden-value" not in str(caught.value)


def test_publishing_without_a_staging_path():
    """Only for a driver that stages, and as FAILED_PRECONDITION (CSI-WIRE-16, CSI-WIRE-19)."""
    request = GOOD["NodePublishVolume"]()
    request.ClearField("staging_target_path")
    check("NodePublishVolume", request, stages=False)
    with pytest.raises(FailedPreconditionError, match=r"^staging_target_path: "):
        check("NodePublishVolume", request)


TEXT = st.text(max_size=300)


@given(
    request=st.builds(
        lambda a, b, c, d, flags: csi.NodePublishVolumeRequest(
            volume_id=a,
            target_path=b,
            staging_target_path=c,
            secrets=d,
            volume_capability=csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume(mount_flags=flags)),
        ),
        TEXT,
        TEXT,
        TEXT,
        st.dictionaries(TEXT, TEXT, max_size=3),
        st.lists(TEXT, max_size=3),
    )
)
def test_whatever_comes_is_refused_in_order(request):
    with pytest.raises(CsiError):
        check("NodePublishVolume", request)
