"""Generic ephemeral volumes: a claim for the pod, gone with it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from volumehost.api.objects import PersistentVolumeClaim, Pod
from volumehost.control.machinery.controller import Key
from volumehost.control.provisioning.ephemeral import EphemeralClaims

VOLUME = {
    "name": "scratch",
    "ephemeral": {
        "volumeClaimTemplate": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    },
}


@pytest.fixture
def running(world: Any, make: Any) -> Any:
    world.api.create(make.storage_class())
    world.run_all()
    return world


def has_claim(world: Any, *, not_uid: str = "") -> bool:
    claims = [each.metadata for each in world.api.list(PersistentVolumeClaim).items]
    return any(each.name == "web-scratch" and each.uid != not_uid for each in claims)


def test_the_claim_is_made_for_the_pod_and_goes_with_it(running: Any, make: Any) -> None:
    pod = running.api.create(make.pod(volumes=[VOLUME]))
    running.wait(lambda: has_claim(running) and running.bound("web-scratch"))
    claim = running.claim("web-scratch")
    (owner,) = claim.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "web", pod.metadata.uid, True)
    assert (claim.metadata.labels, claim.metadata.annotations["c"]) == ({"a": "b"}, "d")
    running.api.delete(Pod, "web", "default")
    running.wait(lambda: running.gone(claim))
    running.wait(lambda: not running.driver.volumes)


def test_a_pod_that_comes_again_under_its_name_gets_a_claim_of_its_own(running: Any, make: Any) -> None:
    running.api.create(make.pod(volumes=[VOLUME]))
    running.wait(lambda: has_claim(running))
    first = running.claim("web-scratch")
    running.stop()
    running.api.delete(Pod, "web", "default")
    again = running.api.create(make.pod(volumes=[VOLUME]))
    running.run_all()
    running.wait(lambda: has_claim(running, not_uid=first.metadata.uid))
    assert running.claim("web-scratch").metadata.owner_references[0].uid == again.metadata.uid


def test_a_claim_of_that_name_that_is_not_the_pods_is_left_alone(running: Any, make: Any) -> None:
    theirs = running.api.create(make.claim("web-scratch"))
    pod = running.api.create(make.pod(volumes=[VOLUME]))
    plane = running.planes[-1]
    running.wait(lambda: any("pod is not owner" in line for line in plane.explain(pod)))
    running.api.delete(Pod, "web", "default")
    running.settle()
    assert not running.gone(theirs)


def test_a_finished_pod_gets_none(running: Any, make: Any) -> None:
    running.stop()
    pod = running.api.create(make.pod(volumes=[VOLUME]))
    pod.status.phase = "Failed"
    running.api.replace_status(pod)
    running.run_all()
    running.settle()
    assert not has_claim(running)


def test_only_pods_with_such_volumes_are_looked_at(make: Any) -> None:
    context: Any = SimpleNamespace(api=None)
    affects = EphemeralClaims(context).watches()[Pod]
    assert list(affects(make.pod(volumes=[{"name": "a", "emptyDir": {}}]))) == []
    assert list(affects(make.pod(volumes=[VOLUME]))) == [Key("web", "default")]
