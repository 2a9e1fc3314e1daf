"""A store, plugins and pods for tests of the hosts."""

import pytest

from volumehost import hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import Pod
from volumehost.api.store import EmbeddedStore


@pytest.fixture
def store(tmp_path):
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as opened:
        yield opened


@pytest.fixture
def pod():
    """A pod with one volume of each kind that is asked for, all used by its container."""

    def make(*volumes, name="web", uid="uid-1"):
        return to_object(
            Pod,
            {
                "metadata": {"name": name, "namespace": "default", "uid": uid},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "volumeMounts": [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes],
                        }
                    ],
                    "volumes": list(volumes),
                },
            },
        )

    return make


class ScratchPlugin:
    """Supports emptyDir volumes and notes what it is asked."""

    def __init__(self, name="example.com/scratch", error=None):
        self.name = name
        self.error = error
        self.calls = []

    @hookimpl
    def get_plugin_name(self):
        return self.name

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return spec.source() == "empty_dir"

    @hookimpl
    def new_mounter(self, spec, pod):
        self.calls.append(("mounter", spec, pod))
        if self.error is not None:
            raise self.error
        return ("mounter", spec.name())

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        if self.error is not None:
            raise self.error
        return ("unmounter", volume_name, pod_uid)

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError


@pytest.fixture
def scratch_plugin():
    return ScratchPlugin
