"""A copy of another API's objects to try changes in."""

from __future__ import annotations

import pytest

from volumehost.api.copied_store import copied_store
from volumehost.api.objects import ConfigMap, ObjectMeta, Pod, Secret
from volumehost.api.store import EmbeddedStore
from volumehost.errors import AlreadyExistsError, ObjectNotFoundError, StoreError


@pytest.fixture
def source(tmp_path):
    with EmbeddedStore(tmp_path / "source.sqlite3") as store:
        store.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
                      "spec": {"containers": [{"name": "c", "image": "i"}]}})  # fmt: skip
        store.create(Secret(metadata=ObjectMeta(name="key", namespace="default")))
        yield store


class Watched:
    """Passes reads on, and notes them."""

    def __init__(self, api):
        self.api, self.calls = api, []

    def get(self, kind, name, namespace=""):
        self.calls.append(("get", kind, name))
        return self.api.get(kind, name, namespace)

    def list(self, kind, namespace=None, labels=None):
        self.calls.append(("list", kind))
        return self.api.list(kind, namespace, labels)


def test_objects_are_those_of_the_source_with_their_uids(source):
    with copied_store(source) as copy:
        assert copy.get(Pod, "web", "default").metadata.uid == source.get(Pod, "web", "default").metadata.uid
        assert [each.metadata.name for each in copy.list(Pod, labels="app=web").items] == ["web"]


def test_each_kind_is_read_once_when_it_is_asked_for(source):
    watched = Watched(source)
    with copied_store(watched) as copy:
        assert watched.calls == []
        copy.list(Pod)
        copy.get(Pod, "web", "default")
        assert watched.calls == [("list", Pod)]


def test_secrets_are_read_by_name_only(source):
    """Whoever plans need not be allowed to see all secrets."""
    watched = Watched(source)
    with copied_store(watched) as copy:
        copy.get(Secret, "key", "default")
        copy.get(Secret, "key", "default")
        with pytest.raises(ObjectNotFoundError):
            copy.get(ConfigMap, "none", "default")
    assert watched.calls == [("get", Secret, "key"), ("get", ConfigMap, "none")]


def test_changes_stay_in_the_copy(source):
    before = source.list(Pod).resource_version
    with copied_store(source) as copy:
        copy.patch(Pod, "web", {"metadata": {"labels": {"app": "other"}}}, "default")
        copy.delete(Pod, "web", "default")
        with pytest.raises(ObjectNotFoundError):
            copy.get(Pod, "web", "default")
    assert source.get(Pod, "web", "default").metadata.labels == {"app": "web"}
    assert source.list(Pod).resource_version == before


def test_what_is_there_cannot_be_created_anew(source):
    with copied_store(source) as copy, pytest.raises(AlreadyExistsError):
        copy.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
                     "spec": {"containers": [{"name": "c", "image": "i"}]}})  # fmt: skip


def test_a_source_that_fails_is_asked_again(source):
    class Failing(Watched):
        fails = True

        def list(self, kind, namespace=None, labels=None):
            if self.fails:
                raise StoreError("it is away")
            return super().list(kind, namespace, labels)

    failing = Failing(source)
    with copied_store(failing) as copy:
        with pytest.raises(StoreError):
            copy.list(Pod)
        failing.fails = False
        assert len(copy.list(Pod).items) == 1
