"""PVC-10 to -34: claims and volumes find each other, and stay together."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

MANUAL = "kubernetes.io/no-provisioner"
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


@pytest.fixture
def manual(world: Any, make: Any) -> Any:
    """A world whose class has only volumes that somebody made by hand."""
    world.api.create(make.storage_class(provisioner=MANUAL))
    return world


def test_pvc_34_both_sides_say_so(manual: Any, make: Any) -> None:
    manual.api.create(make.volume(size="5Gi"))
    manual.api.create(make.claim())
    manual.run_all()
    manual.wait(manual.bound)
    claim, volume = manual.claim(), manual.volume("pv")
    assert (volume.spec.claim_ref.uid, volume.status.phase) == (claim.metadata.uid, "Bound")
    assert BY_CONTROLLER in volume.metadata.annotations
    assert claim.spec.volume_name == "pv"
    assert {COMPLETED, BY_CONTROLLER} <= claim.metadata.annotations.keys()
    assert claim.status.capacity == {"storage": "5Gi"}
    assert claim.status.access_modes == ["ReadWriteOnce"]


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_pvc_34_an_interrupted_binding_goes_on(manual: Any, make: Any, writes: int) -> None:
    """Only the first ``writes`` of the four were made before the crash."""
    from volumehost.control.binding import bind_writes

    volume, claim = manual.api.create(make.volume()), manual.api.create(make.claim())
    volume.status.phase = "Available"
    volume = manual.api.replace_status(volume)
    if writes >= 1:
        volume = bind_writes._give_volume_to_claim(manual.api, volume, claim)
    if writes >= 2:
        volume = bind_writes.set_volume_phase(manual.api, volume, "Bound")
    if writes >= 3:
        bind_writes._give_claim_its_volume(manual.api, volume, claim)
    manual.api.create(make.volume("better", size="1Gi"))
    manual.run_all()
    manual.wait(manual.bound)
    manual.settle()
    assert manual.claim().spec.volume_name == "pv"
    assert manual.volume("better").status.phase == "Available"


def test_two_claims_for_one_volume(manual: Any, make: Any) -> None:
    """PVC-34: the volume is written first, so that only one can win it."""
    for number in range(4):
        manual.api.create(make.claim(f"claim-{number}"))
    manual.run_all()
    manual.api.create(make.volume())
    manual.wait(lambda: manual.volume("pv").status.phase == "Bound")
    manual.settle()
    claims = manual.api.list(PersistentVolumeClaim).items
    assert sorted(claim.status.phase for claim in claims) == ["Bound", "Pending", "Pending", "Pending"]
    winner = next(claim for claim in claims if claim.status.phase == "Bound")
    assert manual.volume("pv").spec.claim_ref.uid == winner.metadata.uid


def test_as_many_volumes_as_claims_all_find_each_other(manual: Any, make: Any) -> None:
    manual.run_all()
    for number in range(12):
        manual.api.create(make.claim(f"claim-{number}"))
        manual.api.create(make.volume(f"pv-{number}"))
    manual.wait(lambda: all(each.status.phase == "Bound" for each in manual.api.list(PersistentVolumeClaim).items))
    manual.settle()
    claims = manual.api.list(PersistentVolumeClaim).items
    assert len({claim.spec.volume_name for claim in claims}) == 12
    assert all(volume.status.phase == "Bound" for volume in manual.volumes())


def test_a_claim_that_nobody_can_satisfy_says_why(manual: Any, make: Any) -> None:
    manual.api.create(make.volume("small", size="1Mi"))
    manual.api.create(make.volume("block", volumeMode="Block"))
    manual.api.create(make.claim())
    plane = manual.run_all()
    manual.wait(lambda: any("block: its volumeMode is Block" in line for line in plane.explain(manual.claim())))
    (line,) = plane.explain(manual.claim())
    assert "small: it is too small (1Mi)" in line


def test_pvc_11_a_claim_names_its_volume(manual: Any, make: Any) -> None:
    manual.api.create(make.volume("small"))
    manual.api.create(make.volume("wanted", size="9Gi"))
    manual.api.create(make.claim(volumeName="wanted"))
    manual.run_all()
    manual.wait(manual.bound)
    assert manual.claim().spec.volume_name == "wanted"
    assert BY_CONTROLLER not in manual.claim().metadata.annotations


def test_pvc_11_a_named_volume_that_is_missing_is_waited_for(manual: Any, make: Any) -> None:
    manual.api.create(make.claim(volumeName="pv"))
    plane = manual.run_all()
    manual.wait(lambda: any("is not there" in line for line in plane.explain(manual.claim())))
    manual.api.create(make.volume())
    manual.wait(manual.bound)


def test_pvc_11_a_named_volume_that_does_not_fit(manual: Any, make: Any) -> None:
    manual.api.create(make.volume(size="1Mi"))
    manual.api.create(make.claim(volumeName="pv"))
    manual.run_all()
    manual.wait(lambda: bool(manual.events("VolumeMismatch")))
    (event,) = manual.events("VolumeMismatch")[:1]
    assert event.message == 'Cannot bind to requested volume "pv": requested PV is too small'
    assert event.event_type == "Warning"
    manual.settle()
    assert manual.claim().status.phase == "Pending"


def test_pvc_11_a_named_volume_of_somebody_else(manual: Any, make: Any) -> None:
    manual.api.create(make.volume(claim_ref={"namespace": "default", "name": "other"}))
    manual.api.create(make.claim(volumeName="pv"))
    manual.run_all()
    manual.wait(lambda: bool(manual.events("FailedBinding")))
    assert manual.events("FailedBinding")[0].message == 'volume "pv" already bound to a different claim.'
    manual.settle()
    assert manual.claim().status.phase == "Pending"


def test_pvc_20_a_pre_bound_volume_waits_for_its_claim_and_takes_no_other(manual: Any, make: Any) -> None:
    manual.api.create(make.volume(claim_ref={"namespace": "default", "name": "data"}))
    manual.api.create(make.claim("stranger"))
    manual.run_all()
    manual.settle()
    assert manual.volume("pv").status.phase == "Available"
    assert manual.claim("stranger").status.phase == "Pending"
    manual.api.create(make.claim())
    manual.wait(manual.bound)
    assert BY_CONTROLLER not in manual.volume("pv").metadata.annotations


def test_pvc_12_a_claim_whose_volume_is_gone_is_lost(manual: Any, make: Any) -> None:
    claim = make.claim(volumeName="never", annotations={COMPLETED: "yes"})
    manual.api.create(claim)
    manual.run_all()
    manual.wait(lambda: manual.claim().status.phase == "Lost")
    manual.settle()
    assert [event.event_type for event in manual.events("ClaimLost")] == ["Warning"]


def test_pvc_12_a_volume_that_is_another_claims(manual: Any, make: Any) -> None:
    manual.api.create(make.claim("owner"))
    manual.api.create(make.volume())
    manual.run_all()
    manual.wait(lambda: manual.bound("owner"))
    manual.api.create(make.claim("thief", volumeName="pv", annotations={COMPLETED: "yes"}))
    manual.wait(lambda: manual.claim("thief").status.phase == "Lost")
    assert manual.events("ClaimMisbound")[0].event_type == "Warning"
    assert manual.bound("owner")


def test_pvc_12_a_bound_claim_whose_volume_lost_its_reference_gets_it_back(manual: Any, make: Any) -> None:
    manual.api.create(make.claim())
    manual.api.create(make.volume())
    manual.run_all()
    manual.wait(manual.bound)
    manual.api.patch(PersistentVolume, "pv", {"spec": {"claimRef": None}})
    manual.wait(lambda: manual.volume("pv").spec.claim_ref is not None)
    manual.settle()
    assert manual.volume("pv").status.phase == "Bound"
    assert manual.volume("pv").spec.claim_ref.uid == manual.claim().metadata.uid


def test_pvc_25_26_a_volume_whose_claim_took_another_is_offered_again(manual: Any, make: Any) -> None:
    claim = manual.api.create(make.claim(volumeName="other"))
    reference = {"namespace": "default", "name": "data", "uid": claim.metadata.uid}
    manual.api.create(make.volume("user-set", claim_ref=reference))
    manual.api.create(make.volume("set-by-us", claim_ref=reference, metadata={"annotations": {BY_CONTROLLER: "yes"}}))
    manual.run_all()
    manual.wait(lambda: manual.volume("set-by-us").status.phase == "Available")
    manual.wait(lambda: manual.volume("user-set").status.phase == "Available")
    assert manual.volume("set-by-us").spec.claim_ref is None
    kept = manual.volume("user-set").spec.claim_ref
    assert (kept.name, kept.uid) == ("data", "")


def test_pvc_23_a_pre_bound_volume_of_another_mode_is_told_to_both(manual: Any, make: Any) -> None:
    claim = manual.api.create(make.claim())
    reference = {"namespace": "default", "name": "data", "uid": claim.metadata.uid}
    manual.api.create(make.volume(volumeMode="Block", claim_ref=reference))
    manual.run_all()
    manual.wait(lambda: len(manual.events("VolumeMismatch")) >= 2)
    assert {event.involved.kind for event in manual.events("VolumeMismatch")} == {
        "PersistentVolume",
        "PersistentVolumeClaim",
    }
    manual.settle()
    assert manual.claim().status.phase == "Pending"


def test_a_claim_that_vanished_in_the_middle_of_its_binding_releases_the_volume(manual: Any, make: Any) -> None:
    """PVC-22: after the first of the four writes."""
    reference = {"namespace": "default", "name": "data", "uid": "long-gone"}
    manual.api.create(make.volume(claim_ref=reference))
    manual.run_all()
    manual.wait(lambda: manual.volume("pv").status.phase == "Released")
