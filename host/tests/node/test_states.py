"""Desired and actual state of world (DSW, ASW rules)."""

import pytest
from msgspec.structs import replace

from volumehost.api.objects import ObjectMeta, PersistentVolume
from volumehost.errors import VolumeHostError
from volumehost.node.state.actual import ActualState
from volumehost.node.state.desired import DesiredState, VolumeUse, same_spec
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, DeviceState, MountState, Need, ResizeHold
from volumehost.spec import Spec

EMPTY = {"name": "v", "emptyDir": {}}


class Changes(list):
    def __call__(self, volume, pod_uid):
        self.append((volume, pod_uid))

    def taken(self):
        found = list(self)
        self.clear()
        return found


@pytest.fixture
def changes():
    return Changes()


@pytest.fixture
def desired(changes):
    return DesiredState(changes)


@pytest.fixture
def actual(changes):
    return ActualState(changes)


@pytest.fixture
def use(make_pod):
    def make(volume="p/vol", uid="u1", outer="v", **fields):
        pod = make_pod({**EMPTY, "name": outer}, uid=uid)
        spec = fields.pop("spec", None) or Spec.from_volume(pod.spec.volumes[0])
        fields = {"attachable": False, "device_mountable": False, "requested_at": 1.0, **fields}
        return VolumeUse(volume=volume, pod=pod, spec=spec, outer_names=(outer,), plugin=None, **fields)

    return make


def _mount(volume="p/vol", uid="u1", state=MountState.MOUNTED, **fields):
    return MountedVolume(volume, uid, "web", "default", "a.b/p", "v", state, **fields)


# --- desired ----------------------------------------------------------------------------------------------------


def test_dsw_add_get_and_remove(desired, use, changes):
    one = use()
    assert desired.add(one) is None
    assert changes.taken() == [("p/vol", "u1")]
    assert desired.get("p/vol", "u1") == one
    assert desired.has_volume("p/vol")
    desired.remove("p/vol", "u1")
    desired.remove("p/vol", "u1")
    desired.remove("absent", "u1")
    assert changes.taken() == [("p/vol", "u1")]
    assert not desired.has_volume("p/vol")
    assert desired.volumes_of_pod("u1") == []


def test_dsw04_an_unchanged_refresh_marks_nothing_and_keeps_the_request_time(desired, use, changes):
    desired.add(use())
    changes.taken()
    former = desired.add(use(requested_at=9.0))
    assert former.requested_at == 1.0
    assert desired.get("p/vol", "u1").requested_at == 1.0
    assert changes.taken() == []


def test_dsw04_a_remountable_use_gets_a_new_request_time(desired, use):
    desired.add(use(remounts=True))
    desired.add(use(remounts=True, requested_at=9.0))
    assert desired.get("p/vol", "u1").requested_at == 9.0


def test_dsw04_a_changed_spec_marks_the_volume(desired, use, make_pod, changes):
    desired.add(use())
    changes.taken()
    other = make_pod({"name": "v", "emptyDir": {"medium": "Memory"}}).spec.volumes[0]
    desired.add(use(spec=Spec.from_volume(other)))
    assert changes.taken() == [("p/vol", "u1")]


def test_scen22_one_volume_under_two_names_of_a_pod(desired, use):
    desired.add(use(outer="a"))
    desired.add(use(outer="b"))
    desired.add(use(outer="a"))
    assert desired.get("p/vol", "u1").outer_names == ("a", "b")
    assert desired.names_of_pod("u1") == {"a": "p/vol", "b": "p/vol"}
    assert desired.volumes_of_pod("u1") == ["p/vol"]


def test_two_pods_share_a_volume(desired, use):
    desired.add(use(uid="u1"))
    desired.add(use(uid="u2"))
    desired.add(use(volume="p/other", uid="u2"))
    assert desired.pods_of_volume("p/vol") == ["u1", "u2"]
    desired.remove_pod("u2")
    assert desired.pods_of_volume("p/vol") == ["u1"]
    assert not desired.has_volume("p/other")
    assert desired.keys() == [("p/vol", "u1")]


def test_dsw07_reported_in_use(desired, use, changes):
    desired.add(use())
    changes.taken()
    desired.mark_reported_in_use(["p/vol", "unknown"])
    assert desired.reported_in_use("p/vol")
    assert not desired.reported_in_use("unknown")
    assert changes.taken() == [("p/vol", "u1")]
    desired.mark_reported_in_use(["p/vol"])
    assert changes.taken() == []
    desired.mark_reported_in_use([])
    assert not desired.reported_in_use("p/vol")


def test_same_spec(make_pod):
    volume = make_pod(EMPTY).spec.volumes[0]
    assert same_spec(Spec.from_volume(volume), Spec.from_volume(make_pod(EMPTY).spec.volumes[0]))
    one = PersistentVolume(metadata=ObjectMeta(name="pv", uid="1", resource_version="1"))
    other = PersistentVolume(metadata=ObjectMeta(name="pv", uid="1", resource_version="2"))
    assert same_spec(Spec.from_persistent_volume(one, False), Spec.from_persistent_volume(other, False))
    assert not same_spec(Spec.from_persistent_volume(one, False), Spec.from_persistent_volume(other, True))
    assert not same_spec(Spec.from_persistent_volume(one, False), Spec.from_volume(volume))
    reborn = PersistentVolume(metadata=ObjectMeta(name="pv", uid="2"))
    assert not same_spec(Spec.from_persistent_volume(one, False), Spec.from_persistent_volume(reborn, False))


# --- actual -----------------------------------------------------------------------------------------------------


@pytest.fixture
def spec(make_pod):
    return Spec.from_volume(make_pod(EMPTY).spec.volumes[0])


@pytest.fixture
def attached(actual, spec):
    actual.mark_attached("p/vol", "a.b/p", spec, Attachability.FALSE)
    return actual


def test_asw30_what_a_volume_lacks(actual, spec):
    assert actual.check("p/vol", "u1") is Need.ATTACH
    actual.mark_attached("p/vol", "a.b/p", spec, Attachability.TRUE, "/dev/x")
    assert actual.check("p/vol", "u1", attachable=True) is Need.MOUNT
    actual.put_mount(_mount(state=MountState.UNCERTAIN))
    assert actual.check("p/vol", "u1", attachable=True) is Need.MOUNT
    actual.put_mount(_mount())
    assert actual.check("p/vol", "u1", attachable=True) is Need.NOTHING
    actual.mark_remount_required("p/vol", "u1")
    assert actual.check("p/vol", "u1", attachable=True) is Need.REMOUNT
    actual.put_mount(_mount())
    assert actual.check("p/vol", "u1", attachable=True) is Need.NOTHING


def test_br47_an_attachment_that_is_not_confirmed_is_neither_used_nor_forgotten(actual, spec):
    actual.mark_maybe_attached("p/vol", "a.b/p", spec)
    assert actual.check("p/vol", "u1", attachable=True) is Need.ATTACH
    assert actual.forget_unless_held("p/vol") is not None
    actual.mark_attached("p/vol", "a.b/p", spec, Attachability.TRUE, "/dev/x")
    assert actual.check("p/vol", "u1", attachable=True) is Need.MOUNT
    actual.mark_unconfirmed("p/vol")
    assert actual.check("p/vol", "u1", attachable=True) is Need.ATTACH


def test_br49_an_attachment_that_is_not_needed_any_more_is_undone_before_the_first_mount(actual, spec):
    actual.mark_attached("p/vol", "a.b/p", spec, Attachability.TRUE, "/dev/x")
    assert actual.check("p/vol", "u1") is Need.ATTACH
    actual.put_mount(_mount(uid="u2"))
    assert actual.check("p/vol", "u1") is Need.MOUNT
    actual.mark_unmounted("p/vol", "u2")
    actual.mark_not_attachable("p/vol")
    assert actual.check("p/vol", "u1") is Need.MOUNT
    assert actual.forget_unless_held("p/vol") is None


def test_asw34_what_has_grown_is_to_be_grown_unless_something_holds_it(attached):
    attached.put_mount(_mount())
    assert attached.check("p/vol", "u1", size=20) is Need.NOTHING  # its size here is not known
    attached.initialize_size("p/vol", 10)
    attached.initialize_size("p/vol", 5)
    assert attached.check("p/vol", "u1", size=20) is Need.RESIZE
    attached.hold_resize("p/vol", ResizeHold.CLAIM)
    assert attached.check("p/vol", "u1", size=20) is Need.NOTHING
    attached.hold_resize("p/vol", ResizeHold.NONE)
    assert attached.check("p/vol", "u1", size=20) is Need.RESIZE
    assert attached.mark_resized("p/vol", 20)
    assert attached.check("p/vol", "u1", size=20) is Need.NOTHING
    assert not attached.mark_resized("p/unknown", 20)


def test_asw25_a_volume_that_cannot_grow_in_use_is_not_tried_again_until_its_entry_is_made_anew(attached):
    attached.put_mount(_mount())
    attached.initialize_size("p/vol", 10)
    attached.hold_resize("p/vol", ResizeHold.IN_USE)
    attached.hold_resize("p/vol", ResizeHold.NONE)
    assert attached.check("p/vol", "u1", size=20) is Need.NOTHING


def test_asw10_of_a_known_volume_the_device_path_changes(attached, spec):
    attached.set_device("p/vol", DeviceState.MOUNTED, device_path="/dev/a", device_mount_path="/g")
    attached.mark_attached("p/vol", "a.b/p", spec, Attachability.TRUE, "/dev/b")
    found = attached.get_volume("p/vol")
    assert (found.device_path, found.device_state, found.attachability) == (
        "/dev/b",
        DeviceState.MOUNTED,
        Attachability.TRUE,
    )


def test_asw12_forgetting(attached):
    attached.put_mount(_mount())
    with pytest.raises(VolumeHostError, match="still use it"):
        attached.mark_detached("p/vol")
    attached.mark_unmounted("p/vol", "u1")
    attached.mark_detached("p/vol")
    attached.mark_detached("p/vol")
    assert attached.volumes() == []


def test_asw13_a_mount_of_an_unknown_volume_is_an_error(actual):
    with pytest.raises(VolumeHostError, match='no volume with the name "p/vol" exists in the list of attached volumes'):
        actual.put_mount(_mount())
    with pytest.raises(VolumeHostError):
        actual.mark_unmounted("p/vol", "u1")
    with pytest.raises(VolumeHostError):
        actual.set_device("p/vol", DeviceState.MOUNTED)


def test_asw14_a_failed_teardown_downgrades_and_keeps_what_is_known(attached):
    attached.put_mount(_mount(attributes="m", path="/p", is_mount=True))
    attached.mark_uncertain("p/vol", "u1")
    found = attached.get_mount("p/vol", "u1")
    assert (found.state, found.attributes, found.path) == (MountState.UNCERTAIN, "m", "/p")
    attached.put_mount(_mount(attributes="n"))
    attached.put_mount(_mount())
    assert attached.get_mount("p/vol", "u1").attributes == "n"


def test_asw14_a_new_record_replaces_an_uncertain_one(attached):
    attached.put_mount(_mount(state=MountState.UNCERTAIN, attributes="m"))
    attached.put_mount(_mount(state=MountState.UNCERTAIN))
    assert attached.get_mount("p/vol", "u1").attributes is None


def test_asw15_being_mounted_ends_the_mark_of_reconstruction(attached):
    attached.enter([], [_mount(state=MountState.UNCERTAIN, reconstructed=True)])
    assert attached.get_mount("p/vol", "u1").reconstructed
    attached.put_mount(_mount(reconstructed=True))
    assert not attached.get_mount("p/vol", "u1").reconstructed


def test_asw17_unmounting(attached, changes):
    attached.put_mount(_mount())
    changes.taken()
    attached.mark_unmounted("p/vol", "u1")
    assert changes.taken() == [("p/vol", "u1"), ("p/vol", "")]
    attached.mark_unmounted("p/vol", "u1")
    assert changes.taken() == []
    assert not attached.has_mounts("u1")


def test_scen21_unmounting_the_device_keeps_its_path(attached, spec):
    attached.set_device("p/vol", DeviceState.MOUNTED, device_path="/dev/a", device_mount_path="/g")
    attached.set_device("p/vol", DeviceState.NOT_MOUNTED)
    found = attached.get_volume("p/vol")
    assert (found.device_path, found.device_mount_path) == ("/dev/a", "")
    attached.mark_attached("p/vol", "a.b/p", spec, Attachability.TRUE, "/dev/b")
    assert attached.get_volume("p/vol").device_path == "/dev/b"


def test_asw21_reconstruction_never_overwrites(attached):
    attached.put_mount(_mount(attributes="m"))
    found = [_mount(state=MountState.UNCERTAIN), _mount(uid="u2", state=MountState.UNCERTAIN)]
    assert attached.enter([AttachedVolume("p/vol", "x", None, Attachability.TRUE)], found) == []
    assert attached.get_mount("p/vol", "u1").attributes == "m"
    assert attached.get_mount("p/vol", "u2").state is MountState.UNCERTAIN
    assert attached.get_volume("p/vol").plugin_name == "a.b/p"
    assert attached.enter([AttachedVolume("p/new", "x", None, Attachability.TRUE)], []) == ["p/new"]


def test_recon23_a_device_of_which_only_the_disk_tells_is_owed_its_unmount(attached):
    """The record of it may have been lost while that of the pod's mount was not (BR-55, BR-56)."""
    staged = AttachedVolume(
        "p/vol", "x", None, Attachability.UNCERTAIN, DeviceState.UNCERTAIN, device_mount_path="/g", device_owed=True
    )
    attached.enter([staged], [])
    found = attached.get_volume("p/vol")
    assert (found.device_state, found.device_mount_path, found.device_owed) == (DeviceState.UNCERTAIN, "/g", True)
    attached.set_device("p/vol", DeviceState.MOUNTED, device_mount_path="/newer")
    attached.enter([staged], [])
    assert attached.get_volume("p/vol").device_mount_path == "/newer"


def test_the_recorded_spec_is_read_when_it_is_first_asked_for(changes, spec):
    asked = []
    actual = ActualState(changes, lambda name: asked.append(name) or spec)
    actual.mark_attached("p/vol", "x", spec, Attachability.TRUE)
    assert actual.get_volume("p/vol").spec is spec
    actual.read_spec_from_record("p/vol")
    volume = actual.get_volume("p/vol")
    assert asked == []
    assert volume.spec is spec
    assert asked == ["p/vol"]


def test_asw22_attachability_is_resolved_once(actual):
    volume = AttachedVolume("p/vol", "a.b/p", None, Attachability.UNCERTAIN, DeviceState.UNCERTAIN)
    actual.enter([volume], [])
    assert actual.uncertain_attachability() == ["p/vol"]
    actual.set_attachability("p/vol", Attachability.TRUE, "/dev/x")
    actual.set_attachability("p/vol", Attachability.FALSE, "/dev/y")
    found = actual.get_volume("p/vol")
    assert (found.attachability, found.device_path) == (Attachability.TRUE, "/dev/x")
    assert actual.uncertain_attachability() == []


def test_recon33_a_device_that_was_mounted_meanwhile_keeps_its_newer_path(actual):
    actual.enter([AttachedVolume("p/vol", "a.b/p", None, Attachability.UNCERTAIN, DeviceState.UNCERTAIN)], [])
    actual.set_device("p/vol", DeviceState.MOUNTED, device_path="/dev/new", device_mount_path="/g")
    actual.set_attachability("p/vol", Attachability.TRUE, "/dev/old")
    assert actual.get_volume("p/vol").device_path == "/dev/new"


def test_asw36_mounted_elsewhere_counts_uncertain_ones(attached):
    attached.put_mount(_mount())
    assert not attached.is_used_elsewhere("p/vol", "a.b/p", "pv", "u1")
    attached.put_mount(_mount(uid="u2", state=MountState.UNCERTAIN))
    assert attached.is_used_elsewhere("p/vol", "a.b/p", "pv", "u1")
    assert not attached.is_used_elsewhere("unknown", "a.b/p", "other", "u1")


def test_mountop05_a_pods_own_volume_of_the_same_name_is_not_the_persistent_volume(attached, spec):
    persistent = Spec.from_persistent_volume(PersistentVolume(metadata=ObjectMeta(name="pv")), False)
    attached.put_mount(replace(_mount(uid="u2"), spec=spec))
    assert not attached.is_used_elsewhere("p/other", "a.b/p", "v", "u1")
    attached.put_mount(replace(_mount(uid="u3"), spec=persistent))
    assert attached.is_used_elsewhere("p/other", "a.b/p", "v", "u1")
    attached.mark_unmounted("p/vol", "u3")
    attached.put_mount(replace(_mount(uid="u4"), spec=None))  # a restart found it: it is not known which of both it is
    assert attached.is_used_elsewhere("p/other", "a.b/p", "v", "u1")


def test_asw20_only_what_is_mounted_is_to_be_refreshed(attached):
    attached.mark_remount_required("p/vol", "u1")
    attached.put_mount(_mount(state=MountState.UNCERTAIN))
    attached.mark_remount_required("p/vol", "u1")
    assert not attached.get_mount("p/vol", "u1").remount_required
    attached.put_mount(_mount())
    attached.mark_remount_required("p/vol", "u1")
    assert attached.get_mount("p/vol", "u1").remount_required


def test_asw24_the_claims_size_is_taken_once_and_the_nodes_own_afterwards(attached):
    attached.initialize_size("p/vol", 1)
    attached.initialize_size("p/vol", 2)
    assert attached.get_volume("p/vol").size == 1
    assert attached.mark_resized("p/vol", 3)
    attached.initialize_size("p/vol", 2)
    assert attached.get_volume("p/vol").size == 3
    assert not attached.mark_resized("p/unknown", 3)
    attached.initialize_size("p/unknown", 3)


def test_asw24a_a_final_failure_to_grow_is_forgotten_with_a_success(attached):
    attached.hold_resize("p/vol", ResizeHold.NONE, failed=True)
    assert attached.get_volume("p/vol").resize_failed
    attached.mark_resized("p/vol", 3)
    assert not attached.get_volume("p/vol").resize_failed


def test_snapshots_do_not_change(attached):
    attached.put_mount(_mount())
    snapshot = attached.get_volume("p/vol")
    attached.mark_unmounted("p/vol", "u1")
    attached.set_device("p/vol", DeviceState.MOUNTED)
    assert set(snapshot.pods) == {"u1"}
    assert snapshot.device_state is DeviceState.NOT_MOUNTED
    with pytest.raises(AttributeError):
        snapshot.pods["u1"].state = MountState.UNCERTAIN


def test_asw37_and_listing(attached):
    attached.put_mount(_mount())
    assert attached.find_by_inner_name("u1", "v").volume == "p/vol"
    assert attached.find_by_inner_name("u1", "w") is None
    assert attached.pods() == ["u1"]
    assert attached.pods_of_volume("p/vol") == ["u1"]
    assert sorted(attached.keys()) == [("p/vol", ""), ("p/vol", "u1")]
