"""StoredPods on a real store: what is wanted, what has ended, and a store that cannot be read for a while."""

import threading
import time

import pytest

from volumehost.agent.stored_pods import StoredPods
from volumehost.api.mirrors import MIRROR_ANNOTATION
from volumehost.api.objects import Pod
from volumehost.errors import FailedPreconditionError, GoneError, StoreError
from volumehost.node.populating.pod_objects import FINALIZER
from volumehost.node.populating.pods import ENDED_ANNOTATION


class Told:
    """Stands in for PodSources: the last word on each pod."""

    def __init__(self):
        self.last, self.count, self.complete, self.touched = {}, 0, threading.Event(), []

    def _tell(self, pod, word):
        self.last[pod.metadata.name] = word
        self.count += 1

    def want(self, source, pod):
        self._tell(pod, "want")

    def keep(self, source, pod):
        self._tell(pod, "keep")

    def end(self, source, pod):
        self._tell(pod, "end")

    def told(self, source):
        self.complete.set()


@pytest.fixture
def sources():
    return Told()


@pytest.fixture
def source(manager, sources):
    made = StoredPods(manager, lambda: sources.touched.append(True))
    yield made
    made.stop()


@pytest.fixture
def until():
    def wait(condition):
        deadline, pause = time.monotonic() + 30, threading.Event()
        while not condition():
            assert time.monotonic() < deadline
            pause.wait(0.005)

    return wait


def test_the_store_is_followed(source, sources, store, pod_document, manager, until):
    store.create(pod_document("there"))
    store.create({**pod_document("elsewhere"), "spec": {**pod_document()["spec"], "nodeName": "other"}})
    store.create(pod_document("mirror", annotations={MIRROR_ANNOTATION: "a" * 32}))
    source.start(sources)
    assert sources.complete.wait(30)
    assert sources.last == {"there": "want"}
    store.patch(Pod, "mirror", {"metadata": {"finalizers": [FINALIZER]}}, "default")
    store.delete(Pod, "mirror", "default")
    until(lambda: sources.touched)
    store.create(pod_document("later"))
    until(lambda: sources.last.get("later") == "want")
    store.replace_status({**pod_document("later"), "status": {"phase": "Failed"}})
    until(lambda: sources.last["later"] == "end")


def test_br51_a_deletion_is_no_word_while_something_may_be_in_use(source, sources, store, pod_document, manager, until):
    used = store.create(pod_document("used", finalizers=[FINALIZER]))
    store.create(pod_document("unused", finalizers=[FINALIZER]))
    manager.in_use.add(used.metadata.uid)
    for name in ("used", "unused"):
        store.delete(Pod, name, "default")
    source.start(sources)
    until(lambda: sources.last == {"used": "want", "unused": "end"})
    store.patch(Pod, "used", {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    until(lambda: sources.last["used"] == "end")


def test_an_object_that_is_gone_has_ended(source, sources, store, pod_document, until):
    store.create(pod_document("web"))
    source.start(sources)
    assert sources.complete.wait(30)
    store.delete(Pod, "web", "default")
    until(lambda: sources.last == {"web": "end"})


def test_what_changes_nothing_for_volumes_is_not_told(source, sources, store, pod_document, until):
    store.create(pod_document("web"))
    source.start(sources)
    assert sources.complete.wait(30)
    store.patch(Pod, "web", {"metadata": {"finalizers": [FINALIZER]}}, "default")
    store.replace_status({**pod_document("web"), "status": {"phase": "Pending", "message": "new"}})
    store.create(pod_document("last"))
    until(lambda: "last" in sources.last)
    assert sources.count == 2
    store.patch(Pod, "web", {"metadata": {"labels": {"a": "b"}}}, "default")
    until(lambda: sources.count == 3)


class Troubled:
    """A store of which the first listing, and the first watch, fail."""

    def __init__(self, store):
        self._store = store
        self.listings = [StoreError("is locked", action="read the store")]
        self.watches = [GoneError("too old"), StoreError("is locked", action="watch the store")]

    def list(self, *arguments):
        if self.listings:
            raise self.listings.pop()
        return self._store.list(*arguments)

    def watch(self, *arguments, **more):
        if self.watches:
            raise self.watches.pop()
        return self._store.watch(*arguments, **more)


def test_a_store_that_cannot_be_read_for_a_while(manager, sources, store, pod_document, until, monkeypatch, caplog):
    """Pods whose objects went meanwhile have ended; those that came are wanted; nothing is told twice."""
    monkeypatch.setattr("volumehost.agent.stored_pods.RETRY_SECONDS", 0.01)
    store.create(pod_document("stays"))
    troubled = manager.api = Troubled(store)
    source = StoredPods(manager)
    source.start(sources)
    until(lambda: not troubled.watches)
    store.create(pod_document("new"))
    until(lambda: sources.last == {"stays": "want", "new": "want"})
    until(lambda: source.problems() == [])
    assert sources.count == 2
    assert "tried again" in caplog.text
    source.stop()


def test_the_finalizer_comes_before_the_first_mount(source, store, pod_document):
    made = store.create(pod_document("web"))
    prepared = source.prepare(made)
    assert prepared.metadata.finalizers == [FINALIZER]
    assert source.prepare(prepared) is prepared
    store.patch(Pod, "web", {"metadata": {"finalizers": None}}, "default")
    store.delete(Pod, "web", "default")
    assert source.prepare(made) is None
    store.create(pod_document("web"))  # another pod of that name
    assert source.prepare(made) is None
    store.delete(Pod, "web", "default")
    with pytest.raises(FailedPreconditionError):
        source.prepare(made)


def test_static_pods_without_their_directory_stay(manager, sources, store, pod_document, until):
    store.create(pod_document("web", annotations={MIRROR_ANNOTATION: "a" * 32}))
    source = StoredPods(manager)
    source.start(sources)
    until(lambda: sources.last == {"web": "keep"})
    assert "--static-pods" in source.problem_of(store.get(Pod, "web", "default"))
    source.stop()
