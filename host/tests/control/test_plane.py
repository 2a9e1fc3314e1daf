"""The plane: starts lazily, runs controllers side by side, tells what keeps them, stops in time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from volumehost.api.objects import ConfigMap, KubeObject, ObjectMeta, Secret
from volumehost.api.store import EmbeddedStore
from volumehost.control.machinery.changes import ChangeFeed
from volumehost.control.machinery.controller import Key
from volumehost.control.machinery.progress import Steps
from volumehost.control.plane import ControlPlane
from volumehost.errors import (
    OperationError,
    StorageDriverUnavailableError,
    StorageDriverUncertainError,
    WaitTimeoutError,
)


class Recorder:
    """A controller of config maps that does what a test says."""

    name = "recorder"
    kind: type[KubeObject] = ConfigMap

    def __init__(self, work: Callable[[Key], float | None] = lambda _key: None) -> None:
        self.seen: list[Key] = []
        self.work = work

    def watches(self) -> Mapping[type[KubeObject], Any]:
        def own(obj: KubeObject) -> Iterable[Key]:
            return [Key.of(obj)]

        return {ConfigMap: own}

    def reconcile(self, key: Key) -> float | None:
        self.seen.append(key)
        return self.work(key)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


def threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("volumehost-control"))


def test_nothing_runs_before_start_and_nothing_after_stop(world: Any) -> None:
    made = []
    plane = ControlPlane(world.api, lambda _plane: made.append(1) or [Recorder()], Steps())
    assert not plane.started
    assert not plane.settled()
    assert plane.explain(config_map("a")) == []
    assert (made, threads()) == ([], [])
    plane.start()
    plane.start()
    assert plane.started
    assert made == [1]
    plane.wait_until(plane.settled, 30, "the plane to settle")
    assert len(threads()) <= 3
    assert plane.stop(30)
    assert not plane.started
    plane.start()
    assert not plane.started
    assert plane.stop(30)


def test_a_plane_that_was_never_started_stops_at_once(world: Any) -> None:
    assert ControlPlane(world.api, lambda _plane: [], Steps()).stop(0)


def test_what_is_there_and_what_comes_is_reconciled(world: Any) -> None:
    world.api.create(config_map("before"))
    recorder = Recorder()
    world.run(lambda _context: recorder)
    world.settle()
    assert recorder.seen == [("before", "default")]
    world.api.create(config_map("after"))
    world.settle()
    assert recorder.seen[1:] == [("after", "default")]


def test_writes_of_another_process_are_seen(world: Any) -> None:
    recorder = Recorder()
    world.run(lambda _context: recorder)
    world.settle()
    with EmbeddedStore(world.api.path) as other:
        other.create(config_map("theirs"))
        world.settle()
    assert recorder.seen == [("theirs", "default")]


def test_keys_run_side_by_side_and_one_key_never_with_itself(world: Any) -> None:
    together = threading.Barrier(4, timeout=30)
    running: set[Key] = set()

    def work(key: Key) -> None:
        assert key not in running
        running.add(key)
        together.wait()
        running.discard(key)

    for name in "abcd":
        world.api.create(config_map(name))
    world.run(lambda _context: Recorder(work))
    world.settle()


def test_a_key_that_hangs_holds_up_no_other(world: Any) -> None:
    release = threading.Event()
    done: list[Key] = []

    def work(key: Key) -> None:
        if key.name == "stuck":
            assert release.wait(60)
        done.append(key)

    world.api.create(config_map("stuck"))
    world.run(lambda _context: Recorder(work))
    for number in range(20):
        world.api.create(config_map(f"quick-{number}"))
    world.wait(lambda: len(done) == 20)
    release.set()
    world.settle()


def test_no_more_workers_than_allowed(world: Any) -> None:
    release = threading.Event()
    plane = ControlPlane(
        world.api, lambda _plane: [Recorder(lambda _key: release.wait(60) and None)], Steps(), workers=3
    )
    for number in range(10):
        world.api.create(config_map(f"c-{number}"))
    plane.start()
    world.planes.append(plane)
    world.wait(lambda: len(threads()) == 4)
    release.set()
    world.settle()
    assert len(threads()) <= 4


def test_stop_has_an_end_although_something_hangs(world: Any) -> None:
    release, began = threading.Event(), threading.Event()

    def work(_key: Key) -> None:
        began.set()
        assert release.wait(60)

    world.api.create(config_map("stuck"))
    plane = world.run(lambda _context: Recorder(work))
    assert began.wait(30)
    assert not plane.stop(0.05)
    release.set()


def test_br_83_a_wait_that_ends_says_what_failed(world: Any) -> None:
    error = StorageDriverUncertainError("timed out", driver="d", call="CreateVolume", code="DEADLINE_EXCEEDED")

    def work(_key: Key) -> None:
        raise error

    world.api.create(config_map("a"))
    plane = world.run(lambda _context: Recorder(work), first_delay=1000.0)
    world.wait(lambda: bool(plane.explain(config_map("a"))))
    (line,) = plane.explain(config_map("a"))
    assert line.startswith("recorder: DEADLINE_EXCEEDED: timed out (failed once, next try in ")
    with pytest.raises(WaitTimeoutError) as caught:
        plane.wait_until(lambda: False, 0.0, "the impossible")
    assert caught.value.details == (f"configmap default/a: {line}",)
    assert "waiting for the impossible" in str(caught.value)


def test_steps_are_told_to_those_who_wait(world: Any) -> None:
    world.steps(config_map("a"), "creating the volume")
    plane = world.run(lambda _context: Recorder())
    assert plane.explain(config_map("a")) == ["creating the volume"]
    with pytest.raises(WaitTimeoutError) as caught:
        plane.wait_until(lambda: False, 0.0, "it")
    assert caught.value.details == ("configmap default/a: creating the volume",)
    world.steps(config_map("a"), "")
    assert plane.explain(config_map("a")) == []


def test_br_27_a_driver_that_comes_ends_the_wait_for_it(world: Any) -> None:
    here: list[str] = []

    def work(key: Key) -> None:
        if key.name not in here:
            raise StorageDriverUnavailableError("not registered yet", driver=key.name)

    for name in ("one", "two"):
        world.api.create(config_map(name))
    plane = world.run(lambda _context: Recorder(work), first_delay=1000.0)
    world.wait(lambda: all(plane.explain(config_map(name)) for name in ("one", "two")))
    here.append("one")
    plane.driver_changed("one")
    world.wait(lambda: not plane.explain(config_map("one")))
    assert plane.explain(config_map("two"))


def test_status_of_ones_own_does_not_cut_the_backoff_short(world: Any, make: Any) -> None:
    """CSI-EXA-10: a controller may report its failure there."""
    from volumehost.api.objects import PersistentVolume
    from volumehost.control.binding.bind_writes import set_volume_phase

    class Failing(Recorder):
        kind = PersistentVolume

        def watches(self) -> Mapping[type[KubeObject], Any]:
            return {PersistentVolume: lambda volume: [Key.of(volume)]}

        def reconcile(self, key: Key) -> float | None:
            self.seen.append(key)
            volume = world.volume(key.name)
            set_volume_phase(world.api, volume, "Failed", f"attempt {len(self.seen)}")
            world.api.patch(
                PersistentVolume, key.name, {"metadata": {"annotations": {"volumehost.io/n": str(len(self.seen))}}}
            )
            raise OperationError("no")

    failing = Failing()
    world.api.create(make.volume())
    world.run(lambda _context: failing, first_delay=1000.0)
    world.wait(lambda: bool(world.planes[-1].explain(world.volume("pv"))))
    world.settle()
    assert len(failing.seen) == 1
    world.api.patch(PersistentVolume, "pv", {"metadata": {"labels": {"a": "b"}}})
    world.wait(lambda: len(failing.seen) == 2)


class _Plain:
    """An API without a watch of several kinds."""

    def __init__(self, api: EmbeddedStore) -> None:
        self.get, self.list, self.create, self.watch = api.get, api.list, api.create, api.watch
        self.replace, self.replace_status, self.patch, self.delete = (
            api.replace,
            api.replace_status,
            api.patch,
            api.delete,
        )


def test_an_api_without_a_watch_of_several_kinds_does_too(world: Any) -> None:
    class Both(Recorder):
        def watches(self) -> Mapping[type[KubeObject], Any]:
            return {**super().watches(), Secret: lambda secret: [Key(f"secret-{secret.metadata.name}")]}

    recorder = Both()
    plane = ControlPlane(_Plain(world.api), lambda _plane: [recorder], Steps())  # type: ignore[arg-type]
    plane.start()
    world.planes.append(plane)
    world.api.create(config_map("a"))
    world.api.create(Secret(metadata=ObjectMeta(name="s")))
    world.wait(lambda: set(recorder.seen) == {("a", "default"), ("secret-s", "")})


def test_a_watch_that_fell_behind_looks_at_everything_anew(world: Any) -> None:
    """BR-75: with what was missed in between."""
    from volumehost.errors import GoneError

    recorder = Recorder()
    gaps = [1]

    class Gappy(EmbeddedStore):
        def watch_kinds(self, kinds: Any, **options: Any) -> Any:
            for event in super().watch_kinds(kinds, **options):
                yield event
                if event.type == "BOOKMARK" and gaps:
                    gaps.pop()
                    with EmbeddedStore(self.path) as other:
                        other.create(config_map("missed"))
                    raise GoneError("too old")

    with Gappy(world.api.path) as api:
        plane = ControlPlane(api, lambda _plane: [recorder], Steps())
        plane.start()
        plane.wait_until(lambda: ("missed", "default") in recorder.seen, 30, "the missed one")
        assert plane.stop(30)


def test_an_affects_that_raises_does_not_end_the_watch(world: Any) -> None:
    class Broken(Recorder):
        broken = True

        def watches(self) -> Mapping[type[KubeObject], Any]:
            def affects(obj: KubeObject) -> Iterable[Key]:
                if self.broken:
                    self.broken = False
                    raise ValueError("oops")
                return [Key.of(obj)]

            return {ConfigMap: affects}

    recorder = Broken()
    world.api.create(config_map("a"))
    world.run(lambda _context: recorder)
    world.wait(lambda: recorder.seen == [("a", "default")])


def test_a_feed_is_caught_up_only_after_its_first_list(world: Any) -> None:
    from volumehost.control.machinery.queue import WorkQueue

    feed = ChangeFeed(world.api, [Recorder()], WorkQueue(lambda: 0.0, 1.0))
    assert not feed.caught_up()


class _Counting(EmbeddedStore):
    """Counts what is read of it, watches aside."""

    reads = 0

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return super().get(*args, **kwargs)

    def list(self, *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return super().list(*args, **kwargs)


def test_an_idle_plane_reads_nothing(world: Any) -> None:
    """A quiet watch looks at shared memory, and that is all."""
    recorder = Recorder()
    with _Counting(world.api.path) as api:
        plane = ControlPlane(api, lambda _plane: [recorder], Steps())
        plane.start()
        plane.wait_until(plane.settled, 30, "the plane to settle")
        before = api.reads
        with pytest.raises(WaitTimeoutError):
            plane.wait_until(lambda: False, 0.3, "nothing")
        assert (api.reads, recorder.seen) == (before, [])
        assert plane.stop(30)
