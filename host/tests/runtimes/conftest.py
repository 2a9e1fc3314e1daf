"""Containers' mounts, made up."""

import pytest

from volumehost.node.workloads.containers import ContainerDevice, ContainerMount, ContainerMounts


@pytest.fixture
def mount():
    """A mount of the volume ``v`` from ``/host/v`` at a path."""

    def make(path="/v", host="/host/v", **more):
        return ContainerMount("v", host, path, **more)

    return make


@pytest.fixture
def container():
    """A container with these mounts and devices."""

    def make(*items, groups=()):
        mounts = tuple(item for item in items if isinstance(item, ContainerMount))
        devices = tuple(item for item in items if isinstance(item, ContainerDevice))
        return ContainerMounts("app", "regular", mounts, devices, groups)

    return make
