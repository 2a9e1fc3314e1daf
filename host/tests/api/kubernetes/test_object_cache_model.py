"""The cache of an informer against a model of a server: whatever the order in which events, lists and answers of own
writes arrive, own writes are read back, nothing goes back in time, and in the end everything is as on the server.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from volumehost.api.kinds import kind_of
from volumehost.api.kubernetes.change_log import ChangeLog
from volumehost.api.kubernetes.codec import RawEvent, read_heading
from volumehost.api.kubernetes.object_cache import ObjectCache
from volumehost.api.kubernetes.scope import scope
from volumehost.api.objects import ConfigMap

NAMES = st.sampled_from(["a", "b"])


def body(name: str, uid: int, version: int) -> bytes:
    metadata = {"name": name, "namespace": "default", "uid": f"u{uid}", "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": metadata})


class CacheMachine(RuleBasedStateMachine):
    """``objects`` is what the server holds, ``events`` all that has happened, ``told`` how many of them were told."""

    @initialize()
    def begin(self) -> None:
        self.cache = ObjectCache(kind_of(ConfigMap), ChangeLog(), scope(None, "", ""))
        self.version, self.uid = 10, 0
        self.objects: dict[str, tuple[int, int]] = {}
        self.events: list[tuple[int, str, str, bytes]] = []
        self.told = 0
        self.answers: list[bytes] = []
        self.listing: tuple[dict[str, tuple[int, int]], int, int] | None = None
        self.seen: dict[str, int] = {}
        self.acknowledged: dict[str, int] = {}
        self.deleted: set[int] = set()
        self.own_deletions: set[int] = set()
        self.cache.replace([], "10", self.cache.begin_list())

    # --- what the server does ---

    def write(self, name: str) -> bytes:
        self.version += 1
        old = self.objects.get(name)
        if old is None:
            self.uid += 1
        uid = self.uid if old is None else old[0]
        self.objects[name] = (uid, self.version)
        made = body(name, uid, self.version)
        self.events.append((self.version, "ADDED" if old is None else "MODIFIED", name, made))
        return made

    def delete(self, name: str) -> bytes:
        self.version += 1
        uid, version = self.objects.pop(name)
        self.events.append((self.version, "DELETED", name, body(name, uid, self.version)))
        return body(name, uid, version)

    @rule(name=NAMES)
    def others_write(self, name: str) -> None:
        self.write(name)

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def others_delete(self, data: Any) -> None:
        self.delete(data.draw(st.sampled_from(sorted(self.objects))))

    @rule()
    def something_else_happens(self) -> None:
        self.version += 1

    # --- what this program does ---

    @rule(name=NAMES, at_once=st.booleans())
    def own_write(self, name: str, at_once: bool) -> None:
        made = self.write(name)
        self.answers.append(made)
        if at_once:
            self.take(len(self.answers) - 1)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def an_answer_arrives(self, data: Any) -> None:
        self.take(data.draw(st.integers(0, len(self.answers) - 1)))

    def take(self, index: int) -> None:
        made = self.answers.pop(index)
        heading = read_heading(made)
        self.cache.wrote(made)
        self.acknowledged[heading.name] = max(self.acknowledged.get(heading.name, 0), int(heading.version))

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def own_delete(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.objects)))
        uid = self.objects[name][0]
        known = self.cache.get(("default", name))
        last = self.delete(name)
        # The state that the server gives back, or the one that was known.
        self.cache.removed(known if known is not None and read_heading(known).uid == f"u{uid}" else last)
        self.deleted.add(uid)
        self.own_deletions.add(self.version)
        self.acknowledged.pop(name, None)

    # --- what the watch does ---

    @precondition(lambda self: self.told < len(self.events) and self.listing is None)
    @rule(count=st.integers(1, 4))
    def events_are_told(self, count: int) -> None:
        for _version, kind, _name, made in self.events[self.told : self.told + count]:
            self.cache.apply(RawEvent(kind, msgspec.Raw(made)))
        self.told = min(len(self.events), self.told + count)

    @precondition(lambda self: self.told == len(self.events) and self.listing is None)
    @rule()
    def a_bookmark_is_told(self) -> None:
        made = msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}})
        self.cache.apply(RawEvent("BOOKMARK", msgspec.Raw(made)))

    @precondition(lambda self: self.listing is None)
    @rule()
    def a_list_begins(self) -> None:
        self.listing = (dict(self.objects), self.version, self.cache.begin_list())

    @precondition(lambda self: self.listing is not None)
    @rule()
    def a_list_ends(self) -> None:
        assert self.listing is not None
        objects, version, began = self.listing
        self.listing = None
        self.cache.replace([body(name, *state) for name, state in objects.items()], str(version), began)
        self.told = len([event for event in self.events if event[0] <= version])

    # --- what must hold ---

    @invariant()
    def own_writes_are_read_and_nothing_goes_back(self) -> None:
        position = int(self.cache.version)
        for name in ("a", "b"):
            found = self.cache.get(("default", name))
            written = self.acknowledged.get(name, 0)
            if found is None:
                # Somebody deleted it after the write, and that has been told or was this program.
                if written:
                    gone = [event[0] for event in self.events if event[1] == "DELETED" and event[2] == name]
                    known = {version for version in gone if version <= position} | self.own_deletions
                    assert any(written < version for version in known & set(gone))
                continue
            heading = read_heading(found)
            assert int(heading.version) >= written
            assert int(heading.version) >= self.seen.get(name, 0)
            assert int(heading.uid[1:]) not in self.deleted
            self.seen[name] = int(heading.version)

    def teardown(self) -> None:
        if self.listing is not None:
            self.a_list_ends()
        while self.answers:
            self.take(0)
        if self.told < len(self.events):
            self.events_are_told(len(self.events))
        self.a_bookmark_is_told()
        found = {heading.name: heading for heading in map(read_heading, self.cache.bodies())}
        assert {name: (int(one.uid[1:]), int(one.version)) for name, one in found.items()} == self.objects
        assert self.cache.bodies() == self.cache.bodies(own=False)


TestCache = CacheMachine.TestCase
TestCache.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
