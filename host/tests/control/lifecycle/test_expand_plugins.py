"""The expand controller and what it cannot do itself: volumes of plugins, drivers that others serve."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.control.expanding.expand_controller import ExpandController
from volumehost.errors import NoPluginMatchedError, PluginCallError, PluginLookupError

from .expanding import GIB, ask, conditions, go, reasons, state


class Plugin:
    name = "example.com/disk"

    def __init__(self, *, fs_resize: bool) -> None:
        self.fs_resize = fs_resize
        self.calls: list[tuple[int, int]] = []

    def requires_fs_resize(self) -> bool:
        return self.fs_resize

    def expand_volume_device(self, spec: Any, new_size: int, old_size: int) -> int:
        self.calls.append((new_size, old_size))
        return new_size


def plugin_volume(world: Any, mode: str = "Filesystem") -> None:
    world.storage_class()
    claim = world.bound_claim(claim_spec={"volumeMode": mode, "volumeName": "disk"}, volume="unused")
    reference = {"name": "data", "namespace": "default", "uid": claim.metadata.uid}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "nfs": {"server": "s", "path": "/"},
        "volumeMode": mode,
        "claimRef": reference,
    }
    world.create("PersistentVolume", "disk", spec=spec)
    ask(world, "2Gi")


@pytest.mark.parametrize(
    ("fs_resize", "mode", "expected"),
    [
        (True, "Filesystem", "NodeResizePending"),
        (False, "Filesystem", ""),
        (True, "Block", ""),
    ],
)
def test_expc_04_volumes_of_plugins(world: Any, run: Any, fs_resize: bool, mode: str, expected: str) -> None:
    world.plugins.expandable = plugin = Plugin(fs_resize=fs_resize)
    plugin_volume(world, mode)
    run(ExpandController(world.context), "data", "default")
    assert plugin.calls == [(2 * GIB, GIB)]
    assert world.pv("disk").spec.capacity == {"storage": "2Gi"}
    assert state(world) == expected


@pytest.mark.parametrize("answer", [GIB, "2Gi", None, ValueError("no such disk")])
def test_expctl_06_a_plugin_that_answers_nonsense_is_told(world: Any, run: Any, answer: Any) -> None:
    class Nonsense(Plugin):
        def expand_volume_device(self, spec: Any, new_size: int, old_size: int) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    world.plugins.expandable = Nonsense(fs_resize=True)
    plugin_volume(world)
    assert isinstance(run(ExpandController(world.context), "data", "default"), PluginCallError)
    assert world.pv("disk").spec.capacity == {"storage": "1Gi"}
    assert conditions(world)["ControllerResizeError"].reason == "Failed"
    assert reasons(world) == ["Resizing", "VolumeResizeFailed"]


def test_expctl_04_a_driver_that_others_serve_is_theirs(world: Any, run: Any) -> None:
    world.external_drivers = True
    world.drivers.clear()
    world.storage_class()
    world.bound_claim()
    ask(world, "2Gi")
    assert go(world, run, ExpandController(world.context)) is None
    assert world.events == [("Normal", "ExternalExpanding", "waiting for an external controller to expand this PVC")]
    assert (state(world), world.driver.calls) == ("", [])


@pytest.mark.parametrize(
    ("found", "event_type"),
    [(None, "Normal"), (PluginLookupError("x"), "Warning"), (NoPluginMatchedError("x"), "Warning")],
)
def test_expctl_04_nobody_here_expands_it(world: Any, run: Any, found: Any, event_type: str) -> None:
    world.plugins.expandable = found
    plugin_volume(world)
    assert run(ExpandController(world.context), "data", "default") is None
    assert world.events == [(event_type, "ExternalExpanding", "waiting for an external controller to expand this PVC")]
