"""Explanations and plans answer while a volume's filesystem answers nobody (BR-52): they never touch a mount."""

import os
import threading
from functools import partial

import pytest

from volumehost.loader.events import NoProber
from volumehost.node.explaining.explain import explain_recorded
from volumehost.node.explaining.plan import planner
from volumehost.testing.hung import hung_filesystem

pytestmark = pytest.mark.root


@pytest.fixture
def answered():
    """The result of a call that must come back by itself."""

    def call(function):
        found = []
        thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
        thread.start()
        thread.join(30)
        assert found, "it waits for the mount that hangs"
        return found[0]

    return call


def test_a_mounted_volume_that_hangs(manager, bind, nfs, pod_with, root, answered):
    from volumehost.api.objects import Pod

    node = manager(bind())
    (volume,) = node.mount_pod(pod_with(nfs("v")), timeout=20).volumes
    pod = node.api.get(Pod, "web", "default")
    with hung_filesystem(volume.path):
        assert answered(lambda: node.explain(pod)).ready
        assert answered(lambda: explain_recorded(root, None, "default", "web")).ready
        with planner(root, node_name="here", plugins=[bind()], prober=NoProber()) as made:
            plan = answered(lambda: made.mount(made.api.get(Pod, "web", "default")))
            assert plan.works
            assert answered(lambda: made.unmount("web", "default")).works


def test_an_unmount_that_hangs(manager, bind, nfs, pod_with, volume_of, here, root, answered, kept, until):
    from volumehost.api.objects import Pod

    plugin = bind()
    node = manager(plugin)
    (volume,) = node.mount_pod(pod_with(nfs("v")), timeout=20).volumes
    with hung_filesystem(volume.path) as hung:
        plugin.trouble["tear_down"] = lambda: _read(volume.path)
        kept(node, "web", "tear-down")
        pod = node.api.get(Pod, "web", "default")
        until(lambda: volume_of(answered(lambda: node.explain(pod))).hangs)
        told = volume_of(answered(lambda: node.explain(pod)))
        assert (told.direction, here(told), told.age is not None) == ("unmount", "tear-down", True)
        assert told.hangs
        recorded = partial(answered, lambda: explain_recorded(root, None, "default", "web"))
        # A step is recorded once the operation is slow.
        until(lambda: here(volume_of(recorded())) == "tear-down", what="that the record tells the step")
        hung.die()


def _read(path):
    os.stat(f"{path}/anything")
