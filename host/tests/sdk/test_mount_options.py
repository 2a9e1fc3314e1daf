"""UTIL-04, UTIL-05 (improved: order is kept)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost import Spec
from volumehost.api.objects import ObjectMeta, PersistentVolume, PersistentVolumeSpec, Volume
from volumehost.sdk import join_mount_options, mount_options_from_spec

ANNOTATION = "volume.beta.kubernetes.io/mount-options"


def pv(mount_options=(), annotation=None) -> Spec:
    annotations = {} if annotation is None else {ANNOTATION: annotation}
    return Spec.from_persistent_volume(
        PersistentVolume(
            metadata=ObjectMeta(name="pv", annotations=annotations),
            spec=PersistentVolumeSpec(mount_options=list(mount_options)),
        ),
        read_only=False,
    )


def test_a_pods_own_volume_has_no_user_options():
    assert mount_options_from_spec(Spec.from_volume(Volume(name="v")), "ro") == ["ro"]
    assert mount_options_from_spec(Spec()) == []


def test_the_annotation_replaces_the_field():
    assert mount_options_from_spec(pv(["hard"], "soft,,nolock"), "ro") == ["soft", "nolock", "ro"]
    assert mount_options_from_spec(pv(["hard"], ""), "ro") == ["ro"]


def test_the_field():
    assert mount_options_from_spec(pv(["nfsvers=4.1", "hard"]), "ro") == ["nfsvers=4.1", "hard", "ro"]
    assert mount_options_from_spec(pv(), "ro", "ro") == ["ro", "ro"]  # the plugin's own, unchanged


def test_commas_in_quotes_do_not_split():
    context = 'context="system_u:object_r:tmp_t:s0:c1,c2"'
    assert mount_options_from_spec(pv(annotation=f"{context},ro")) == [context, "ro"]


@pytest.mark.parametrize(
    ("user", "own", "joined"),
    [
        (["rw"], ["ro"], ["rw", "ro"]),
        (["ro", "hard"], ["ro"], ["hard", "ro"]),
        (["", "a", ""], ["b"], ["a", "b"]),
        (["a", "b", "a"], [], ["b", "a"]),
        ([], [], []),
    ],
)
def test_the_last_of_duplicates_stays(user, own, joined):
    assert join_mount_options(user, own) == joined


@given(st.lists(st.sampled_from(["ro", "rw", "a", "b", ""])), st.lists(st.sampled_from(["ro", "rw", "c"])))
def test_nothing_is_lost_or_doubled_and_the_last_word_is_the_plugins(user, own):
    joined = join_mount_options(user, own)
    assert set(joined) == {option for option in user if option} | set(own)
    assert len(joined) == len(set(joined))
    assert not own or joined[-1] == own[-1]
