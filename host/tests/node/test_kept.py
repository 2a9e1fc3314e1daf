"""What is kept small of pods of which nothing is to be done: pods, specs, what a volume has for each of its pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume
from volumehost.node.state import of_pods
from volumehost.node.state.desired import DesiredState, VolumeUse
from volumehost.node.state.kept_pods import OBJECTS, KeptPods
from volumehost.spec import Spec


class Item:
    def __init__(self, pod_uid, value):
        self.pod_uid, self.value = pod_uid, value


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers() | st.none())))
def test_what_a_volume_has_for_its_pods_behaves_like_a_dictionary(steps):
    held, model = None, {}
    for uid, value in steps:
        if value is None:
            held = of_pods.without(held, uid)
            model.pop(uid, None)
        else:
            held = of_pods.put(held, Item(uid, value))
            model[uid] = value
        assert {item.pod_uid: item.value for item in of_pods.items(held)} == model
        assert (held is None) == (not model)
        for each in "abc":
            found = of_pods.get(held, each)
            assert (found.value if found is not None else None) == model.get(each)


def test_a_pod_that_was_used_last_is_the_object_that_was_given(make_pod):
    pods, pod = KeptPods(), make_pod({"name": "v", "emptyDir": {}})
    kept = pods.keep(pod)
    assert kept.pod is pod
    assert pods.keep(kept.pod) is kept
    assert kept.uid == pod.metadata.uid


def test_a_pod_that_nobody_used_for_long_is_read_again_and_is_the_same(make_pod):
    pods = KeptPods()
    made = [
        make_pod(
            {"name": "v", "emptyDir": {"medium": "Memory"}},
            uid=f"uid-{number}",
            metadata={"labels": {"a": "b"}, "annotations": {"é": "☃"}},
            spec={"securityContext": {"fsGroup": 7}},
        )
        for number in range(OBJECTS + 5)
    ]
    kept = [pods.keep(pod) for pod in made]
    first = kept[0].pod
    assert first is not made[0]
    assert first == made[0]
    assert kept[0].pod is first  # as long as it is among the last
    assert kept[-1].pod is made[-1]


def test_a_pod_that_was_told_anew_replaces_the_object_and_not_what_others_have(make_pod):
    pods, old, new = KeptPods(), make_pod(name="old"), make_pod(name="new")
    before, after = pods.keep(old), pods.keep(new)
    assert (before.pod.metadata.name, after.pod.metadata.name) == ("old", "new")
    assert (before.pod.metadata.name, after.pod.metadata.name) == ("old", "new")


def test_a_pod_with_a_name_that_is_no_text_is_kept_as_it_is(make_pod):
    pod = make_pod(metadata={"labels": {"a": "b"}})
    pod.metadata.labels["a"] = "\udcff"
    assert KeptPods().keep(pod).pod is pod


@pytest.fixture
def desired():
    return DesiredState(lambda volume, pod: None)


def _forget_objects(desired, make_pod):
    """As when many other pods have been worked on since."""
    for number in range(OBJECTS):
        desired.pods.keep(make_pod(uid=f"other-{number}"))


def _use(pod, spec, **fields):
    return VolumeUse("p/vol", pod, spec, ("v",), None, False, False, requested_at=1.0, **fields)


def test_dsw10_a_use_is_handed_out_whole_however_it_was_kept(desired, make_pod):
    pod = make_pod({"name": "v", "emptyDir": {"sizeLimit": "1Mi"}})
    use = _use(pod, Spec.from_volume(pod.spec.volumes[0]), size_limit=1 << 20, fs_group=7)
    desired.add(use)
    assert desired.get("p/vol", "uid-1") == use
    _forget_objects(desired, make_pod)
    found = desired.get("p/vol", "uid-1")
    assert (found.pod, found.spec.volume, found.size_limit, found.fs_group) == (pod, pod.spec.volumes[0], 1 << 20, 7)
    assert found.spec.volume in found.pod.spec.volumes
    assert desired.get("p/vol", "uid-1").spec is found.spec


@pytest.mark.parametrize(
    "flags", [{}, {"read_only": True}, {"migrated": True}, {"inline_volume_spec_for_csi_migration": True}]
)
def test_a_persistent_volume_is_kept_with_all_that_is_said_of_it(desired, make_pod, flags):
    volume = to_object(
        PersistentVolume,
        {
            "metadata": {"name": "pv", "uid": "u", "annotations": {"a": "b"}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "d", "volumeHandle": "h"},
                "volumeMode": "Block",
            },
        },
    )
    pod = make_pod({"name": "v", "persistentVolumeClaim": {"claimName": "c"}})
    desired.add(_use(pod, Spec(persistent_volume=volume, **flags)))
    _forget_objects(desired, make_pod)
    spec = desired.get("p/vol", "uid-1").spec
    assert spec.persistent_volume == volume
    assert {
        name: getattr(spec, name) for name in ("read_only", "migrated", "inline_volume_spec_for_csi_migration")
    } == {
        "read_only": False,
        "migrated": False,
        "inline_volume_spec_for_csi_migration": False,
        **flags,
    }


def test_a_spec_that_is_not_the_pods_own_volume_is_kept_as_it_is(desired, make_pod):
    """A translator may have made it."""
    other = make_pod({"name": "v", "emptyDir": {"medium": "Memory"}}).spec.volumes[0]
    pod = make_pod({"name": "v", "emptyDir": {}})
    spec = Spec.from_volume(other)
    desired.add(_use(pod, spec))
    _forget_objects(desired, make_pod)
    assert desired.get("p/vol", "uid-1").spec is spec
