"""Volumes are refreshed when what they are made of changes in the store of this host (PLUG-05, POP-16, BR-53)."""

from __future__ import annotations

import threading
import time

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import ConfigMap, ObjectMeta, Pod, Secret
from volumehost.api.store import EmbeddedStore
from volumehost.node.execution.timers import Timers
from volumehost.node.populating.content_following import ContentFollowing

CONFIG_MAP = {"name": "settings", "configMap": {"name": "app"}}
SECRET = {"name": "login", "secret": {"secretName": "db"}}
BOTH = {
    "name": "all",
    "projected": {"sources": [{"configMap": {"name": "app"}}, {"secret": {"name": "db"}}, {"downwardAPI": {}}]},
}


def make_pod(uid, *volumes, namespace="default"):
    metadata = {"name": f"pod-{uid}", "namespace": namespace, "uid": uid}
    return to_object(Pod, {"metadata": metadata, "spec": {"volumes": list(volumes)}})


class Followed:
    """What was told to be refreshed."""

    def __init__(self, api, *, at_once=True):
        self.told = []
        self.came = threading.Condition()
        self.timers = Timers(time.monotonic)
        self.following = ContentFollowing(api, self.timers, lambda function: function(), at_once=at_once)
        self.following.changed = self._changed

    def _changed(self, uid, volumes):
        with self.came:
            self.told.append((uid, sorted(volumes)))
            self.came.notify_all()

    def wait_for(self, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self.told) >= count, 20), self.told
            return sorted(self.told)


@pytest.fixture
def store(tmp_path):
    with EmbeddedStore(f"{tmp_path}/store.sqlite3") as store:
        yield store


@pytest.fixture
def followed(store):
    made = Followed(lambda: store)
    yield made
    made.following.stop()
    made.timers.stop()


def put(store, kind, name, namespace="default", **fields):
    return store.create(kind(metadata=ObjectMeta(name=name, namespace=namespace), **fields))


def test_each_pod_that_is_made_of_it_hears_of_it(store, followed):
    for pod in (make_pod("1", CONFIG_MAP, SECRET), make_pod("2", BOTH), make_pod("3", SECRET)):
        followed.following.follow(pod)
    followed.following.follow(make_pod("4", CONFIG_MAP, namespace="other"))
    put(store, ConfigMap, "app", data={"a": "1"})
    assert followed.wait_for(2) == [("1", ["settings"]), ("2", ["all"])]
    put(store, Secret, "db", data={"a": b"1"})
    assert followed.wait_for(5)[-3:] == [("2", ["all"]), ("2", ["all"]), ("3", ["login"])]
    followed.following.forget("1")
    followed.following.forget("3")
    store.delete(Secret, "db", "default")
    put(store, ConfigMap, "app", "other")
    assert len(followed.wait_for(7)) == 7
    assert followed.told[-2:] == [("2", ["all"]), ("4", ["settings"])]


def test_what_is_there_already_is_no_change(store, followed):
    put(store, ConfigMap, "app", data={"a": "1"})
    followed.following.follow(make_pod("1", CONFIG_MAP))
    put(store, ConfigMap, "other")
    store.patch(ConfigMap, "app", {"data": {"a": "2"}}, "default")
    assert followed.wait_for(1) == [("1", ["settings"])]


def test_pods_without_such_volumes_cost_no_watch(store, followed):
    before = threading.active_count()
    followed.following.follow(make_pod("1", {"name": "x", "emptyDir": {}}))
    assert threading.active_count() == before


def test_elsewhere_than_in_the_own_store_nothing_is_watched(store):
    """In a cluster an agent may get these objects by name, and no more."""

    class Api:
        def watch(self, *_args, **_options):
            raise AssertionError("watched")

    followed = Followed(Api)
    before = threading.active_count()
    followed.following.follow(make_pod("1", CONFIG_MAP))
    assert threading.active_count() == before
    followed.following.stop()


def test_who_leaves_soon_does_not_watch(store):
    followed = Followed(lambda: store, at_once=False)
    before = threading.active_count()
    followed.following.follow(make_pod("1", CONFIG_MAP))
    assert not [each for each in threading.enumerate() if each.name == "volumehost-changes"]
    assert threading.active_count() <= before + 1  # the timers' own
    followed.following.stop()
    followed.timers.stop()
