"""Plugins that break in ways that no contract foresees cost nobody else anything, and leave nothing behind (BR-18)."""

import os
import pathlib
import threading

import pytest

from volumehost import hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import Pod
from volumehost.errors import VolumesFailedError
from volumehost.node.populating.pods import used_volumes
from volumehost.node.populating.resolver import Resolver

pytestmark = pytest.mark.root

OTHER = {"name": "keys", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}


class Panic(BaseException):
    """What a plugin in another language may raise: no Exception at all."""


class Once:
    """Raises the first time."""

    def __init__(self, error):
        self.error = error

    def __call__(self):
        error, self.error = self.error, None
        if error is not None:
            raise error


def _raise(error):
    def action():
        raise error

    return action


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


@pytest.mark.parametrize("step", ["new_mounter", "set_up"])
def test_what_is_no_exception_fails_the_operation_and_not_the_worker(manager, bind, nfs, mounts, step):
    class Named(bind):
        @hookimpl
        def can_support(self, spec):
            return self.name.endswith(spec.name())

    bad, good = Named("example.com/bad"), Named("example.com/good")
    volumes = nfs("bad"), nfs("good")
    bad.trouble[step] = _raise(Panic("index out of bounds"))
    node = manager(bad, good)
    with pytest.raises(VolumesFailedError, match="index out of bounds"):
        node.mount_pod(_pod(*volumes), attempts=1)
    assert len(mounts()) == 1
    bad.trouble.clear()
    assert node.mount_pod(_pod(*volumes)).ready, "the retry finds a worker, and nothing that runs"
    bad.trouble["tear_down"] = Once(Panic("index out of bounds"))
    node.unmount_pod("web")
    assert bad.count("tear_down") == 2
    assert mounts() == []


def test_what_is_no_exception_fails_the_resolution_alone(manager, bind, nfs):
    class Bad(bind):
        sources = ("iscsi",)

        @hookimpl
        def requires_remount(self, spec):
            raise Panic("index out of bounds")

    node = manager(Bad("example.com/bad"), bind())
    with pytest.raises(VolumesFailedError, match="index out of bounds") as caught:
        node.mount_pod(_pod(nfs(), OTHER))
    assert len(caught.value.details) == 1


@pytest.mark.parametrize("error", [Panic("index out of bounds"), SystemExit(3)], ids=lambda error: type(error).__name__)
def test_br57_no_plugin_keeps_the_manager_from_starting(manager, bind, nfs, root, mounts, error):
    plugin = bind()
    with manager(plugin, enter=False) as node:
        status = node.mount_pod(_pod(nfs()))
    os.unlink(f"{root}/volumes.journal")
    plugin.trouble["construct_volume_spec"] = _raise(error)
    with manager(plugin, enter=False) as node:
        assert plugin.count("construct_volume_spec") == 1
        assert [found.uid for found in node.status()] == [status.uid]
        node.unmount_pod("web")
    assert mounts() == []


@pytest.mark.parametrize("wrong", [_raise(RuntimeError("lost")), lambda: pathlib.Path("/x")], ids=["raises", "no str"])
def test_a_volume_that_was_set_up_and_cannot_tell_its_path_is_torn_down(manager, bind, nfs, mounts, wrong):
    class Lost(bind):
        @hookimpl
        def new_mounter(self, spec, pod):
            made = super().new_mounter(spec, pod)
            made.get_path = wrong
            return made

    plugin = Lost()
    node = manager(plugin)
    with pytest.raises(VolumesFailedError, match=r"lost|not a str"):
        node.mount_pod(_pod(nfs()), attempts=1)
    assert len(mounts()) == 1
    node.unmount_pod("web")
    assert plugin.count("tear_down") == 1
    assert mounts() == []


def test_br52_a_plugin_that_never_answers_does_not_use_up_the_threads_for_all(manager, bind, nfs):
    answer = threading.Event()

    class Silent(bind):
        @hookimpl
        def requires_remount(self, spec):
            answer.wait(60)
            return False

    good = bind("example.com/good")
    good.sources = ("iscsi",)
    services = manager(Silent(), good)._now.parts.services
    resolver = Resolver(services.plugins, services.host, services.clock, together=0.01, alone=0.02)
    pods = [to_object(Pod, _pod(volume)) for volume in (nfs(), OTHER)]
    try:
        for _ in range(70):
            (refused,) = resolver.resolve(pods[0], used_volumes(pods[0])).values()
        assert "the volume plugin example.com/bind has not answered for" in str(refused)
        (use,) = resolver.resolve(pods[1], used_volumes(pods[1])).values()
        assert use.plugin.name == "example.com/good"
    finally:
        answer.set()


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_mount_that_a_failed_set_up_left_behind_is_torn_down(manager, bind, nfs, mounts, attempts):
    class Sloppy(bind):
        @hookimpl
        def new_mounter(self, spec, pod):
            made = super().new_mounter(spec, pod)
            set_up = made.set_up

            def fail(args):
                set_up(args)
                raise RuntimeError("too late")

            made.set_up = fail
            return made

    node = manager(Sloppy())
    with pytest.raises(VolumesFailedError, match="too late"):
        node.mount_pod(_pod(nfs()), attempts=attempts)
    assert len(mounts()) == 1
    node.unmount_pod("web", timeout=20)
    assert mounts() == []
