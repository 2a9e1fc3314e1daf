"""Pods for explanations and plans, and what they say in a form to be asked."""

import pytest


def raising(error):
    """A step that fails."""

    def action():
        raise error

    return action


@pytest.fixture
def fails():
    return raising


@pytest.fixture
def pod_with():
    """A pod manifest; each volume is mounted by its one container."""

    def make(*volumes, name="web", **spec):
        mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
        container = {"name": "c", "image": "i", "volumeMounts": mounts}
        return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes), **spec}}

    return make


@pytest.fixture
def claimed_volume():
    """A volume of a pod that leads to a claim."""

    def make(claim="claim", name="v"):
        return {"name": name, "persistentVolumeClaim": {"claimName": claim}}

    return make


@pytest.fixture
def volume_of():
    """One volume of an explanation or of a plan."""

    def find(told, name="v"):
        return next(volume for volume in told.volumes if volume.volume == name)

    return find


@pytest.fixture
def here():
    """The phase that a volume is in, and what came before it."""

    def find(volume):
        states = [point.state for point in volume.sequence]
        assert states.count("here") == 1
        index = states.index("here")
        assert states == ["done"] * index + ["here"] + ["to-come"] * (len(states) - index - 1)
        return volume.sequence[index].name

    return find
