"""The size of a volume in memory: the vectors of EMPTYDIR-13, and pods that Kubernetes allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.objects import (
    Container,
    EmptyDirVolumeSource,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from volumehost.errors import VolumeHostError
from volumehost_emptydir.size import memory_size, pod_memory_limit, size_limit

GIB = 1 << 30
NODE = {"memory": 16 * GIB}


def source(limit: str | None = None) -> EmptyDirVolumeSource:
    return EmptyDirVolumeSource(medium="Memory", size_limit=limit)


def container(limit: str | None = None, **kwargs) -> Container:
    resources = ResourceRequirements(limits={"memory": limit}) if limit else None
    return Container(name="c", resources=resources, **kwargs)


@pytest.mark.parametrize(
    ("limits", "requests", "limit", "wanted"),
    [
        ({"memory": "10Gi"}, {}, "0", 10 * GIB),
        ({"memory": "10Gi"}, {}, "1Gi", GIB),
        ({}, {"memory": "10Gi"}, "0", 16 * GIB),
        ({"memory": "10Gi"}, {}, "20Gi", 10 * GIB),
        ({}, {}, None, 16 * GIB),
        ({}, {}, "20Gi", 16 * GIB),
        ({"memory": "32Gi"}, {}, None, 16 * GIB),
        ({"memory": "0"}, {}, "1Gi", GIB),
    ],
)
def test_vectors(make_pod, limits, requests, limit, wanted):
    assert memory_size(source(limit), make_pod(limits=limits, requests=requests), NODE) == wanted


@pytest.mark.parametrize("allocatable", [{}, {"memory": 0}, {"cpu": 4000}])
def test_without_allocatable_memory_there_is_no_size(make_pod, allocatable):
    with pytest.raises(VolumeHostError, match="allocatable memory"):
        memory_size(source("1Gi"), make_pod(), allocatable)


def test_one_container_without_a_limit_means_no_pod_limit(make_pod):
    assert pod_memory_limit(make_pod(containers=[container("1Gi"), container()])) == 0
    assert pod_memory_limit(make_pod(containers=[container("1Gi")], init_containers=[container()])) == 0


def test_containers_add_up_and_init_containers_count_one_at_a_time(make_pod):
    pod = make_pod(
        containers=[container("1Gi"), container("2Gi")], init_containers=[container("2Gi"), container("2500Mi")]
    )
    assert pod_memory_limit(pod) == 3 * GIB
    pod = make_pod(containers=[container("1Gi")], init_containers=[container("2Gi"), container("5Gi")])
    assert pod_memory_limit(pod) == 5 * GIB


def test_sidecars_run_beside_both(make_pod):
    sidecar = container("1Gi", restart_policy="Always")
    assert pod_memory_limit(make_pod(containers=[container("1Gi")], init_containers=[sidecar])) == 2 * GIB
    pod = make_pod(containers=[container("1Gi")], init_containers=[sidecar, container("4Gi")])
    assert pod_memory_limit(pod) == 5 * GIB
    pod = make_pod(containers=[container("1Gi")], init_containers=[container("4Gi"), sidecar])
    assert pod_memory_limit(pod) == 4 * GIB


def test_the_pods_own_limit_wins_and_overhead_is_added(make_pod):
    own = ResourceRequirements(limits={"memory": "3Gi"})
    assert pod_memory_limit(make_pod(containers=[container()], resources=own)) == 3 * GIB
    assert pod_memory_limit(make_pod(containers=[container("1Gi")], overhead={"memory": "1Gi"})) == 2 * GIB


def test_a_pod_without_containers_has_no_limit(make_pod):
    assert pod_memory_limit(make_pod(containers=[])) == 0


def test_the_limit_of_a_volume():
    assert size_limit(source("1500M")) == 1_500_000_000
    assert size_limit(source()) == 0


@given(
    node=st.integers(1, 1 << 50),
    limit=st.none() | st.integers(0, 1 << 50),
    containers=st.lists(st.none() | st.integers(0, 1 << 50), max_size=4),
)
def test_never_more_than_any_bound_and_always_more_than_nothing(node, limit, containers):
    pod = Pod(
        metadata=ObjectMeta(name="p"),
        spec=PodSpec(containers=[container(None if bound is None else str(bound)) for bound in containers]),
    )
    size = memory_size(source(None if limit is None else str(limit)), pod, {"memory": node})
    assert 0 < size <= node
    if limit:
        assert size <= max(limit, 1)
    if containers and all(containers):
        assert size <= sum(bound for bound in containers if bound)
