"""Static pods as objects of a real store: same uid, kept while mounted, put right when somebody meddles."""

import json
from types import SimpleNamespace

import pytest

from volumehost.agent.mirror_pods import MirrorPods
from volumehost.agent.static_manifests import read_static_pods
from volumehost.api.mirrors import MIRROR_ANNOTATION
from volumehost.api.objects import Pod
from volumehost.errors import ObjectNotFoundError, StoreError
from volumehost.node.populating.pod_objects import FINALIZER, release_pod


@pytest.fixture
def pod(tmp_path, pod_document):
    """Makes a static pod."""

    def make(name="web", **metadata):
        path = tmp_path / f"{name}.yaml"
        path.write_text(json.dumps(pod_document(name, **metadata)))
        return next(iter(read_static_pods(str(path), "node")[0].values()))

    return make


@pytest.fixture
def mirrors(manager):
    return MirrorPods(manager)


@pytest.fixture
def shown(store):
    def find(name="web"):
        try:
            return store.get(Pod, f"{name}-node", "default")
        except ObjectNotFoundError:
            return None

    return find


def test_the_object_has_the_uid_of_the_pod_and_goes_when_nothing_is_mounted(mirrors, pod, shown, store):
    web = pod()
    mirrors.show(web)
    metadata = shown().metadata
    assert metadata.uid == metadata.annotations[MIRROR_ANNOTATION] == web.metadata.uid
    assert metadata.finalizers == [FINALIZER]
    mirrors.show(web)
    assert shown().metadata.resource_version == metadata.resource_version
    mirrors.hide(web)
    assert shown().metadata.deletion_timestamp
    release_pod(store, "web-node", "default", web.metadata.uid)
    assert shown() is None
    mirrors.hide(web)


def test_one_that_somebody_deleted_is_made_anew(mirrors, pod, shown, store):
    web = pod()
    mirrors.show(web)
    store.delete(Pod, "web-node", "default")
    mirrors.show(web)
    assert shown().metadata.deletion_timestamp is None
    assert shown().metadata.uid == web.metadata.uid


def test_the_new_content_of_a_file_waits_for_the_old_pods_end(mirrors, pod, shown, store):
    old = pod()
    mirrors.show(old)
    new = pod(labels={"a": "b"})
    mirrors.show(new)
    assert shown().metadata.uid == old.metadata.uid
    assert shown().metadata.deletion_timestamp
    release_pod(store, "web-node", "default", old.metadata.uid)
    mirrors.refresh([new])
    assert shown().metadata.uid == new.metadata.uid


def test_refreshing_shows_what_is_missing_and_ends_what_shows_nothing(mirrors, pod, shown, manager):
    stale, web = pod("stale"), pod()
    mirrors.show(stale)
    mirrors.refresh([web])
    assert shown() is not None
    assert shown("stale").metadata.deletion_timestamp
    assert manager.told == [("end", "stale-node")]
    mirrors.refresh([])  # not due
    assert shown().metadata.deletion_timestamp is None


def test_those_of_another_node_are_none_of_its_business(manager, mirrors, pod, shown, store):
    elsewhere = type(manager)(store, "elsewhere")
    mirrors.show(pod())
    MirrorPods(elsewhere).refresh([])
    assert shown().metadata.deletion_timestamp is None


def test_a_pod_of_the_store_is_not_replaced(mirrors, pod, shown, store, pod_document, caplog):
    store.create({**pod_document("web-node"), "metadata": {"name": "web-node", "namespace": "default"}})
    mirrors.show(pod())
    mirrors.hide(pod())
    assert MIRROR_ANNOTATION not in shown().metadata.annotations
    assert shown().metadata.deletion_timestamp is None
    assert "a pod of that name is in the store already" in caplog.text


def test_a_store_that_cannot_be_used_is_told_once(pod, manager, caplog):
    def fail(*_arguments, **_more):
        raise StoreError("is broken", action="read the store")

    manager.api = SimpleNamespace(get=fail, list=fail, create=fail, delete=fail)
    mirrors = MirrorPods(manager)
    for _ in range(3):
        mirrors.show(pod())
        mirrors.hide(pod())
        mirrors._due = 0.0
        mirrors.refresh([pod()])
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


@pytest.mark.parametrize("uid", ["../../etc", "x" * 32, ""])
def test_a_uid_that_is_none_is_not_taken(store, pod_document, uid):
    document = pod_document("web", namespace="default", annotations={MIRROR_ANNOTATION: uid})
    assert store.create(document).metadata.uid not in {uid, ""}
