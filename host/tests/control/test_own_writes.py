"""An attempt's own writes, told from those of other threads and other times."""

from __future__ import annotations

import threading
from typing import Any

from volumehost.api.objects import ConfigMap, ObjectMeta
from volumehost.control.machinery.own_writes import OwnWrites


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))


def test_every_write_of_an_attempt_is_known_by_its_version(world: Any) -> None:
    writes = OwnWrites(world.api)
    api = writes.client
    api.create(config_map("before"))
    writes.begin()
    made = api.create(config_map("a"))
    made.data = {"k": "1"}
    replaced = api.replace(made)
    patched = api.patch(ConfigMap, "a", {"data": {"k": "2"}}, "default")
    versions = {each.metadata.resource_version for each in (made, replaced, patched)}
    assert writes.end() == versions | {api.get(ConfigMap, "a", "default").metadata.resource_version}
    assert len(versions) == 3
    api.create(config_map("after"))
    assert writes.end() == frozenset()


def test_what_another_thread_writes_meanwhile_is_not_the_attempts_own(world: Any) -> None:
    writes = OwnWrites(world.api)
    writes.begin()
    other = threading.Thread(target=lambda: writes.client.create(config_map("b")))
    other.start()
    other.join(30)
    assert writes.end() == frozenset()
    assert writes.client.get(ConfigMap, "b", "default").metadata.name == "b"
