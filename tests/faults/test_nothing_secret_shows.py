"""Secrets and tokens go to the driver and nowhere else, whatever fails (BR-74, CSI-WIRE-10, CSI-TOK-05).

The driver repeats all that it was sent in its errors. Logs are those at debug level, records every file below the root
directory, the store's journal with them; the objects that hold the secrets for the API to give are what is left out.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from world import NAME, Life, World, until

from volumehost.api.objects import Event, PersistentVolume, PersistentVolumeClaim, Secret, VolumeAttachment
from volumehost.errors import VolumeHostError
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

SECRET = "MARKER-of-a-secret-27182818"
OPTION = "MARKER-of-an-option-31415926"
KINDS = ("provisioner", "controller-publish", "node-stage", "node-publish", "controller-expand", "node-expand")
CALLS = (
    *("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"),
    *("ControllerExpandVolume", "NodeExpandVolume", "CreateSnapshot", "DeleteSnapshot"),
    *("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume"),
)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    caplog.set_level(logging.DEBUG)
    return caplog


def parameters() -> dict[str, str]:
    found = {}
    for kind in (*KINDS, "snapshotter"):
        prefix = f"csi.storage.k8s.io/{kind}-secret"
        found |= {f"{prefix}-name": "credentials", f"{prefix}-namespace": "default"}
    return found


def lives_failing_at_every_call(world: World, told: list[str]) -> set[str]:
    """A volume for each call that fails twice with the marker in its message; returns the tokens that were sent."""

    def live(number: int, call: str) -> None:
        life = Life(world, f"life-{number}")
        rule = Rule(times=2, code="INTERNAL", message=f"cannot log in with {SECRET}, option password={OPTION}")
        if call != "DeleteSnapshot":
            life.fault(call, rule)

        def attempt(step: Any, **options: Any) -> None:
            try:
                step(**options)
            except VolumeHostError as error:
                told.extend([*traceback.format_exception(error), repr(error), str(error.__dict__)])
                step(timeout=40)

        attempt(life.mount, timeout=20, attempts=1)
        told.extend(volume.explain() for status in world.manager.status() for volume in status.volumes)
        life.wish()
        until(life.has, "the claim has grown", 40)
        life.snap()
        until(life.has_snapshot, "the snapshot is ready", 40)
        if call == "DeleteSnapshot":
            life.fault(call, rule)
        life.unsnap()
        until(life.snapshot_is_gone, "the snapshot is gone", 40)
        attempt(life.unmount, timeout=0.4)
        claim = life.claim()
        life.delete()
        told.extend(world.manager.control.explain(claim))
        until(life.is_gone, "the volume is gone", 40)

    with ThreadPoolExecutor(len(CALLS)) as pool:
        list(pool.map(live, range(len(CALLS)), CALLS))
    tokens = set()
    for call in world.drivers[NAME].calls("NodePublishVolume"):
        for name, value in call.request.volume_context.items():
            if name.endswith("serviceAccount.tokens"):
                tokens |= {part for part in value.split('"') if len(part) > 40}
    return tokens


def test_br74_no_marker_shows_anywhere(world: World, logged: pytest.LogCaptureFixture, capfd: Any) -> None:
    world.driver()
    world.begin()
    world.prepare(
        parameters=parameters(),
        tokenRequests=[{"audience": "vault"}],
        podInfoOnMount=True,
        requiresRepublish=True,
    )
    api = world.manager.api
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
    secret = {"password": SECRET, "user": "acme"}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "credentials", "namespace": "default"},
            "stringData": secret,
        }
    )
    told: list[str] = []
    tokens = lives_failing_at_every_call(world, told)
    sent = {call.name for call in world.drivers[NAME].calls() if SECRET in str(call.request)}
    assert sent >= {"CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume", "DeleteVolume"}
    assert sent >= {"ControllerExpandVolume", "NodeExpandVolume", "CreateSnapshot", "DeleteSnapshot"}
    assert tokens
    told += [repr(event) for event in api.list(Event).items]
    for kind in (PersistentVolume, PersistentVolumeClaim, VolumeAttachment):
        told += [repr(each) for each in api.list(kind).items]
    told += [repr(world.manager.drivers.statuses()), repr(api.get(Secret, "credentials", "default"))]
    told += [record.getMessage() + str(record.exc_info) + str(record.__dict__) for record in logged.records]
    told += command(world, "-v", "get", "events"), command(world, "status"), command(world, "drivers", "show", NAME)
    out, err = capfd.readouterr()
    told += [out, err, world.drivers[NAME].log()]
    assert len(logged.records) > 100
    markers = {SECRET, OPTION, *tokens}
    found = [text[:2000] for text in told if any(marker in text for marker in markers)]
    assert not found, found[:3]
    api.delete(Secret, "credentials", "default")
    world.assert_nothing_left()
    world.end()
    assert records_with(world.root, markers) == []


def command(world: World, *arguments: str) -> str:
    program = str(Path(sys.executable).with_name("volumehost"))
    done = subprocess.run(
        [program, "--root-dir", world.root, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def records_with(root: str, markers: set[str]) -> list[str]:
    """Files that have one of the markers in them, but for the store, which has the secrets themselves."""
    found = []
    for place, _, names in os.walk(root):
        for name in names:
            path = f"{place}/{name}"
            if not os.path.isfile(path) or "/store" in path or name.startswith("store"):
                continue
            content = Path(path).read_bytes()
            if any(marker.encode() in content for marker in markers):
                found.append(path)
    return found
