"""Several processes on one store: counted writes, watches across processes, and death at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from volumehost.api.objects import ConfigMap, ObjectMeta
from volumehost.api.store import EmbeddedStore

PATIENCE = 30.0

COUNTER = """
import sys
from volumehost.api.objects import ConfigMap
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ConflictError

with EmbeddedStore(sys.argv[1]) as store:
    for _ in range(int(sys.argv[2])):
        while True:
            found = store.get(ConfigMap, "counter")
            found.data["n"] = str(int(found.data["n"]) + 1)
            try:
                store.replace(found)
            except ConflictError:
                continue
            break
"""

#: Writes pairs of objects that agree, and says which number is certainly on disk.
WRITER = """
import sys
from volumehost.api.objects import ConfigMap, ObjectMeta
from volumehost.api.store import EmbeddedStore

with EmbeddedStore(sys.argv[1]) as store:
    number = int(sys.argv[2])
    while True:
        number += 1
        store.patch(ConfigMap, "big", {"data": {"n": str(number), "fill": "x" * 20000}})
        print(number, flush=True)
"""

CREATOR = """
import sys
from volumehost.api.objects import ConfigMap, ObjectMeta
from volumehost.api.store import EmbeddedStore

with EmbeddedStore(sys.argv[1]) as store:
    sys.stdin.readline()
    store.create(ConfigMap(metadata=ObjectMeta(name=sys.argv[2])))
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite3")


@pytest.fixture
def start(path: str) -> Iterator[Start]:
    """Starts Python on a script with the store's path; whatever still runs after the test is ended."""
    running: list[subprocess.Popen[str]] = []

    def run(script: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def test_no_count_is_lost_between_processes(path: str, start: Start) -> None:
    with EmbeddedStore(path) as store:
        store.create(config_map("counter", n="0"))
        counters = [start(COUNTER, "40") for _ in range(3)]
        for counter in counters:
            assert counter.wait(timeout=PATIENCE) == 0
        assert store.get(ConfigMap, "counter").data["n"] == "120"


def test_processes_that_open_a_new_store_at_once_all_succeed(path: str, start: Start) -> None:
    creators = [start(CREATOR, f"c{number}") for number in range(5)]
    for creator in creators:
        assert creator.stdin is not None
        creator.stdin.write("go\n")
        creator.stdin.flush()
    for creator in creators:
        assert creator.wait(timeout=PATIENCE) == 0
    with EmbeddedStore(path) as store:
        assert len(store.list(ConfigMap).items) == 5


def test_a_watcher_hears_of_another_process(path: str, start: Start) -> None:
    with EmbeddedStore(path) as store:
        version = store.list(ConfigMap).resource_version
        creator = start(CREATOR, "from-afar")
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: next(iter(store.watch(ConfigMap, resource_version=version, timeout=PATIENCE))))
            assert creator.stdin is not None
            creator.stdin.write("go\n")
            creator.stdin.flush()
            event = first.result(timeout=PATIENCE)
        assert (event.type, event.object.metadata.name) == ("ADDED", "from-afar")
        assert creator.wait(timeout=PATIENCE) == 0


def test_all_watchers_of_a_process_hear_though_one_looks_for_them(path: str) -> None:
    """Whoever looks for the others may leave, or be slow: the rest is told all the same."""
    with EmbeddedStore(path) as store, EmbeddedStore(path) as elsewhere, ThreadPoolExecutor(4) as pool:
        stops = [threading.Event() for _ in range(4)]
        heard: list[list[str]] = [[] for _ in stops]

        def watch(number: int) -> None:
            for event in store.watch(ConfigMap, resource_version="0", stop=stops[number].is_set, timeout=PATIENCE):
                if event.type != "BOOKMARK":
                    heard[number].append(event.object.metadata.name)

        watching = [pool.submit(watch, number) for number in range(4)]
        for round_ in range(4):
            for count in range(5):
                (elsewhere if count % 2 else store).create(config_map(f"m-{round_}-{count}"))
            deadline = time.monotonic() + PATIENCE
            while any(len(each) < 5 * (round_ + 1) for each in heard[round_:]):
                assert time.monotonic() < deadline, heard
            stops[round_].set()
            watching[round_].result(timeout=PATIENCE)
        for number, each in enumerate(heard):
            assert len(each) == len(set(each)) == 5 * (number + 1)


def test_kill_in_mid_write_loses_nothing_that_was_confirmed(path: str, start: Start) -> None:
    choice = random.Random(20260101)
    with EmbeddedStore(path) as store:
        store.create(config_map("big", n="0"))
    confirmed = 0
    for _ in range(12):
        writer = start(WRITER, str(confirmed))
        assert writer.stdout is not None
        confirmed = int(writer.stdout.readline())
        killer = threading.Timer(choice.uniform(0.0, 0.02), writer.send_signal, [signal.SIGKILL])
        killer.start()
        for line in writer.stdout:
            if line.endswith("\n"):
                confirmed = int(line)
        killer.join()
        assert writer.wait(timeout=PATIENCE) == -signal.SIGKILL
        with EmbeddedStore(path) as store:
            found = store.get(ConfigMap, "big")
            number = int(found.data["n"])
            assert number in {confirmed, confirmed + 1}
            assert found.data["fill"] == "x" * 20000
            history = list(store.watch(ConfigMap, resource_version="0", timeout=0.0))
            assert not history or history[-1].object == found
            confirmed = number


def test_a_process_that_dies_holding_the_lock_blocks_nobody(path: str, start: Start) -> None:
    script = """
import os, sys
from volumehost.api.store import EmbeddedStore

store = EmbeddedStore(sys.argv[1])
with store._database.write() as connection:
    connection.execute("UPDATE versions SET latest = 999")
    print("locked", flush=True)
    sys.stdin.readline()
"""
    with EmbeddedStore(path) as store:
        holder = start(script)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        assert store.list(ConfigMap).resource_version == "0"
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=PATIENCE)
        assert store.create(config_map("c")).metadata.resource_version == "1"


def test_a_watch_costs_little_while_nothing_happens(path: str) -> None:
    with EmbeddedStore(path) as store:
        before = time.thread_time()
        assert list(store.watch(ConfigMap, resource_version="0", timeout=1.0)) == []
        # A busy loop would use nearly the whole second.
        assert time.thread_time() - before < 0.5


def test_nothing_but_the_store_is_left_behind(path: str, start: Start) -> None:
    with EmbeddedStore(path) as store:
        store.create(config_map("c"))
    assert os.listdir(os.path.dirname(path)) == ["store.sqlite3"]
