"""PVC-30 to -33: which volume a claim gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.control.binding.matching import (
    NodeView,
    find_match,
    mismatch,
    refers_to,
    requested_volume_problem,
    storage_of,
    why_none,
)

MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany")
SIZES = ("500Mi", "1Gi", "1024Mi", "2Gi", "5G")


def available(volume: Any) -> Any:
    volume.status.phase = "Available"
    return volume


def find(claim: Any, *volumes: Any, node: Any = None, delayed: bool = False) -> str | None:
    match = find_match(claim, volumes, node=node, delayed=delayed)
    return match.metadata.name if match is not None else None


def test_pvc_30_the_smallest_that_suffices(make: Any) -> None:
    volumes = [available(make.volume(name, size=size)) for name, size in (("a", "5Gi"), ("b", "2Gi"), ("c", "1Gi"))]
    assert find(make.claim(size="1500Mi"), *volumes) == "b"


def test_pvc_30_equal_ones_go_by_name(make: Any) -> None:
    assert find(make.claim(), available(make.volume("b")), available(make.volume("a"))) == "a"


def test_pvc_30_fewest_modes_win_even_over_a_smaller_or_pre_bound_one(make: Any) -> None:
    small = available(make.volume("small", modes=["ReadWriteOnce", "ReadWriteMany"]))
    mine = make.volume("mine", modes=MODES, claim_ref={"namespace": "default", "name": "data"})
    large = available(make.volume("large", size="9Gi"))
    assert find(make.claim(), small, mine, large) == "large"


def test_pvc_30_within_a_group_a_pre_bound_one_wins(make: Any) -> None:
    mine = make.volume("mine", size="9Gi", claim_ref={"namespace": "default", "name": "data"})
    assert find(make.claim(), available(make.volume("small")), mine) == "mine"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"size": "1Mi"}, "too small"),
        ({"modes": ["ReadOnlyMany"]}, "does not offer ReadWriteOnce"),
        ({"volumeMode": "Block"}, "its volumeMode is Block"),
        ({"storage_class": "slow"}, "its class is slow"),
        ({"claim_ref": {"namespace": "other", "name": "data"}}, "another claim"),
        ({"claim_ref": {"namespace": "default", "name": "data", "uid": "u2"}}, "another claim"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "being deleted"),
        ({"volumeAttributesClassName": "gold"}, "volumeAttributesClassName"),
    ],
)
def test_pvc_31_what_does_not_suit_is_told(make: Any, fields: Any, reason: str) -> None:
    claim, volume = make.claim(), available(make.volume(**fields))
    claim.metadata.uid = "u1"
    assert find(claim, volume) is None
    assert reason in why_none(claim, [volume], node=None, delayed=False)


def test_pvc_31_only_available_volumes(make: Any) -> None:
    released = make.volume()
    released.status.phase = "Released"
    assert find(make.claim(), released) is None


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_a_volume_that_was_only_just_made_counts(make: Any, phase: str) -> None:
    """A manifest with both must not have a second volume provisioned."""
    new = make.volume()
    new.status.phase = phase
    assert find(make.claim(), new) == "pv"


def test_pvc_31_selector(make: Any) -> None:
    labelled = available(make.volume("yes", size="5Gi", metadata={"labels": {"tier": "hot"}}))
    claim = make.claim(selector={"matchExpressions": [{"key": "tier", "operator": "In", "values": ["hot"]}]})
    assert find(claim, available(make.volume("no")), labelled) == "yes"


def test_pvc_31_node_affinity_counts_once_the_node_is_known(make: Any) -> None:
    there = {"key": "zone", "operator": "In", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    volume = available(make.volume(nodeAffinity=affinity))
    assert find(make.claim(), volume, node=NodeView("n", {"zone": "a"}), delayed=True) == "pv"
    assert find(make.claim(), volume, node=NodeView("n", {"zone": "b"}), delayed=True) is None
    assert find(make.claim(), volume, delayed=True) is None


def test_pvc_31_a_delayed_claim_takes_a_pre_bound_volume_at_once(make: Any) -> None:
    mine = make.volume(claim_ref={"namespace": "default", "name": "data"})
    assert find(make.claim(), mine, delayed=True) == "pv"


def test_pvc_33_in_order(make: Any) -> None:
    claim = make.claim(volumeMode="Filesystem")
    wrong = make.volume(
        size="1Mi",
        storage_class="slow",
        modes=["ReadOnlyMany"],
        volumeMode="Block",
        volumeAttributesClassName="gold",
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
    )
    seen = [requested_volume_problem(wrong, claim)]
    wrong.metadata.deletion_timestamp = None
    seen.append(requested_volume_problem(wrong, claim))
    wrong.spec.capacity = {"storage": "1Gi"}
    seen.append(requested_volume_problem(wrong, claim))
    wrong.spec.storage_class_name = "fast"
    seen.append(requested_volume_problem(wrong, claim))
    wrong.spec.volume_attributes_class_name = None
    seen.append(requested_volume_problem(wrong, claim))
    wrong.spec.volume_mode = None
    seen.append(requested_volume_problem(wrong, claim))
    wrong.spec.access_modes = ["ReadWriteOnce", "ReadOnlyMany"]
    assert requested_volume_problem(wrong, claim) == ""
    assert seen == [
        'the volume is marked for deletion "pv"',
        "requested PV is too small",
        "storageClassName does not match",
        "volumeAttributesClassName does not match",
        "incompatible volumeMode",
        "incompatible accessMode",
    ]


@st.composite
def a_volume(draw: st.DrawFn) -> dict[str, Any]:
    reference = draw(st.sampled_from([None, "data", "other"]))
    fields: dict[str, Any] = {
        "size": draw(st.sampled_from(SIZES)),
        "storage_class": draw(st.sampled_from(["fast", "slow", ""])),
        "modes": draw(st.lists(st.sampled_from(MODES), min_size=1, unique=True)),
        "volumeMode": draw(st.sampled_from(["Filesystem", "Block"])),
        "phase": draw(st.sampled_from(["Available", "Bound", "Released", "Failed"])),
        "claim_ref": {"namespace": "default", "name": reference} if reference else None,
    }
    return fields


@given(st.lists(a_volume(), max_size=8), st.sampled_from(SIZES), st.sampled_from(MODES), st.booleans())
def test_the_match_is_sound_complete_and_the_best(
    make: Any, drawn: list[dict[str, Any]], size: str, mode: str, delayed: bool
) -> None:
    claim = make.claim(size=size, modes=[mode])
    volumes = []
    for number, fields in enumerate(drawn):
        volume = make.volume(f"pv-{number}", **{name: each for name, each in fields.items() if name != "phase"})
        volume.status.phase = fields["phase"]
        volumes.append(volume)
    match = find_match(claim, volumes, node=None, delayed=delayed)
    suitable = [each for each in volumes if not mismatch(each, claim, node=None, delayed=delayed)]
    if match is None:
        assert not suitable
        assert why_none(claim, volumes, node=None, delayed=delayed) or not volumes
        return
    assert match in suitable
    assert storage_of(match.spec.capacity) >= storage_of(claim.spec.resources.requests)
    assert mode in match.spec.access_modes
    fewest = min(len(each.spec.access_modes) for each in suitable)
    assert len(match.spec.access_modes) == fewest
    rivals = [each for each in suitable if sorted(each.spec.access_modes) == sorted(match.spec.access_modes)]
    if not refers_to(match, claim):
        assert not any(refers_to(each, claim) for each in rivals)
        assert storage_of(match.spec.capacity) == min(storage_of(each.spec.capacity) for each in rivals)
