"""Whose answers are waited for without a deadline when a pod's volumes are resolved: nobody's but the project's own."""

import threading

import pytest

from volumehost import hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import Pod
from volumehost.errors import SpecError
from volumehost.node.populating.pods import used_volumes
from volumehost.node.populating.resolver import Resolver

pytestmark = pytest.mark.root


class Remote:
    """An API that may be away."""

    def __init__(self, api):
        self._api = api

    def get(self, *args):
        return self._api.get(*args)


@pytest.fixture
def own(bind):
    class Own(bind):
        threads = ()

        @hookimpl
        def requires_remount(self, spec):
            self.threads = (*self.threads, threading.current_thread().name)
            return False

    Own.__module__ = "volumehost_hostpath.plugin"
    return Own


@pytest.fixture
def foreign(own):
    class Foreign(own):
        pass

    return Foreign


@pytest.fixture
def resolve(manager, nfs):
    def make(*plugins, api=lambda api: api, volume=None):
        services = manager(*plugins)._now.parts.services
        api = api(services.host.get_kube_client())
        services.host.get_kube_client = lambda: api
        resolver = Resolver(services.plugins, services.host, services.clock)
        mounts = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        volumes = [{**(volume or nfs()), "name": "v"}]
        pod = to_object(
            Pod,
            {"metadata": {"name": "web", "uid": "uid"}, "spec": {"containers": [mounts], "volumes": volumes}},
        )
        return lambda: resolver.resolve(pod, used_volumes(pod))["v"]

    return make


def test_a_plugin_of_the_project_is_asked_here_once_it_has_answered(resolve, own):
    plugin = own()
    ask = resolve(plugin)
    assert [ask().plugin.name, ask().plugin.name] == ["example.com/bind"] * 2
    assert plugin.threads == ("volumehost-kernel-call", threading.current_thread().name)


def test_a_plugin_of_others_always_has_a_deadline(resolve, foreign):
    plugin = foreign()
    ask = resolve(plugin)
    assert [ask().plugin.name, ask().plugin.name] == ["example.com/bind"] * 2
    assert set(plugin.threads) == {"volumehost-kernel-call"}


def test_so_has_the_projects_own_beside_one_of_others_that_is_asked_about_the_same(resolve, own, foreign):
    other = foreign("example.com/other")
    other.can_support = hookimpl(lambda spec: other.step("can_support") or False)
    plugin = own()
    ask = resolve(plugin, other)
    assert [ask().plugin.name, ask().plugin.name] == ["example.com/bind"] * 2
    assert set(plugin.threads) == {"volumehost-kernel-call"}


def test_an_api_elsewhere_has_a_deadline_too(resolve, own):
    plugin = own()
    ask = resolve(plugin, api=Remote)
    assert [ask().plugin.name, ask().plugin.name] == ["example.com/bind"] * 2
    assert set(plugin.threads) == {"volumehost-kernel-call"}


def test_what_the_plugin_raises_is_the_volumes_own_trouble(resolve, own):
    class Failing(own):
        @hookimpl
        def requires_remount(self, spec):
            raise SpecError("no such thing")

    Failing.__module__ = own.__module__
    ask = resolve(Failing())
    assert [str(ask()), str(ask())] == ["no such thing"] * 2


def test_a_claim_that_is_missing_is_told_as_ever(resolve, own):
    ask = resolve(own(), volume={"persistentVolumeClaim": {"claimName": "none"}})
    assert "failed to fetch PVC" in str(ask())
