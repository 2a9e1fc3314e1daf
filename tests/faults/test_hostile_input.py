"""Records that are spoilt, handles that lead elsewhere, claims that nobody can satisfy (BR-41, BR-56, CSI-PATH)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from world import NAME, Life, World, refused, until

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
from volumehost.errors import VolumesFailedError

pytestmark = pytest.mark.root


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _newer(content: bytes) -> bytes:
    return json.dumps({**json.loads(content), "version": "9", "topology": {"zone": ["a"]}}).encode()


#: What a record looks like afterwards; None: it is gone.
SPOILT: dict[str, Callable[[bytes], bytes | None]] = {
    "empty": lambda _content: b"",
    "half": _half,
    "garbage": lambda content: content + b"\x00\xff{",
    "a list": lambda _content: b"[]",
    "numbers": lambda content: json.dumps(dict.fromkeys(json.loads(content), 7)).encode(),
    "not text": lambda _content: b"\xff\xfe\x00",
    "newer": _newer,
    "gone": lambda _content: None,
}


def records(root: str) -> list[str]:
    return [f"{place}/vol_data.json" for place, _, names in os.walk(root) if "vol_data.json" in names]


@pytest.mark.parametrize(
    ("which", "journal"), [("both", "kept"), ("both", "gone"), ("pod", "gone"), ("device", "gone")]
)
def test_br56_volumes_whose_records_are_spoilt_are_unmounted_all_the_same(
    world: World, which: str, journal: str
) -> None:
    """After a restart; without the journal there are the other record, the mount table, and the API."""
    world.driver(block="loop")
    world.begin()
    world.prepare()
    lives = {}
    for number, name in enumerate(SPOILT):
        for mode in ("Filesystem", "Block"):
            if (name, journal) == ("gone", "gone") and (mode == "Block" or which == "both"):
                continue  # no witness is left on this disk that tells which volume it was
            lives[name, mode] = Life(world, f"life-{number}-{mode.lower()}", mode=mode)
    for life in lives.values():
        life.mount()
    uids = {status.name: status.uid for status in world.manager.status()}
    world.end()
    for (name, _), life in lives.items():
        of_pod = [path for path in records(world.root) if uids[life.name] in path]
        of_device = [path for path in records(world.root) if life.handle in Path(path).read_text(errors="replace")]
        of_device = [path for path in of_device if path not in of_pod]
        for path in {"pod": of_pod, "device": of_device, "both": of_pod + of_device}[which]:
            spoilt = SPOILT[name](Path(path).read_bytes())
            if spoilt is None:
                os.unlink(path)
            else:
                Path(path).write_bytes(spoilt)
    if journal == "gone":
        os.unlink(f"{world.root}/volumes.journal")
    world.begin(adopt=True)
    problems = []
    for (name, mode), life in lives.items():
        try:
            life.unmount()
        except Exception as error:
            problems.append(f"{name} {mode}: {type(error).__name__}: {error} {getattr(error, 'details', '')}")
    assert not problems, "\n".join(problems)
    for life in lives.values():
        life.delete()
    world.assert_nothing_left()


HANDLES = {
    "slashes": "pool/volume/1",
    "dots": "../../../../../../etc/passwd",
    "one dot": ".",
    "caret": "a^b^c",
    "spaces": "  two  words ",
    "tilde": "kubernetes.io~csi",
    "newline": "first\nsecond",
    "long": "h" * 128,
    "letters": "größe-\N{SNOWMAN}",
    "percent": "%2e%2e%2f",
}


def static(world: World, name: str, handle: str) -> None:
    world.manager.api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}"},
            "spec": {
                "capacity": {"storage": "16Mi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"name": name, "namespace": "default"},
                "csi": {"driver": NAME, "volumeHandle": handle, "fsType": "ext4"},
            },
        }
    )
    claim(world, name, storageClassName="", volumeName=f"pv-{name}")


def claim(world: World, name: str, size: str = "16Mi", **spec: Any) -> None:
    world.manager.api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
        }
    )


def pod(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
        },
    }


def test_br41_handles_that_are_no_file_names(world: World) -> None:
    """Each is mounted, found again after a restart, and unmounted; no two meet, and none leads out of the root."""
    world.driver()
    world.begin()
    world.prepare(attachRequired=False)
    names = {key.replace(" ", "-"): handle for key, handle in HANDLES.items()}
    for name, handle in names.items():
        static(world, name, handle)
    outside = sorted(os.listdir(os.path.dirname(world.root)))
    for name in names:
        (volume,) = world.manager.mount_pod(pod(name), timeout=20).volumes
        with open(f"{volume.path}/kept", "w") as file:
            file.write(name)
        assert os.path.realpath(volume.path).startswith(f"{world.root}/")
    assert len(set(world.mounts())) == 2 * len(names)
    world.end()
    world.begin()
    for name in names:
        (volume,) = world.manager.mount_pod(pod(name), timeout=20).volumes
        with open(f"{volume.path}/kept") as file:
            assert file.read() == name
    asked = {call.request.volume_id for call in world.drivers[NAME].calls("NodeStageVolume")}
    assert asked == set(names.values())
    for name in names:
        world.manager.unmount_pod(name, timeout=20)
    assert world.mounts() == []
    assert os.listdir(f"{world.root}/pods") == []
    staged = [volume["staged"] for volume in world.drivers[NAME].state()["volumes"].values()]
    assert staged == [""] * len(names)
    assert sorted(os.listdir(os.path.dirname(world.root))) == outside


def test_a_handle_of_4_kib_is_refused_by_the_driver_and_leaves_nothing(world: World) -> None:
    """It is longer than the specification allows (CSI-WIRE-08); no name on disk is made of it."""
    world.driver()
    world.begin()
    world.prepare(attachRequired=False)
    static(world, "huge", "h" * 4096)
    with pytest.raises(VolumesFailedError) as caught:
        world.manager.mount_pod(pod("huge"), timeout=20, attempts=1)
    assert "INVALID_ARGUMENT" in str(caught.value.details)
    world.manager.unmount_pod("huge", timeout=20)
    assert world.mounts() == []
    assert os.listdir(f"{world.root}/pods") == []


#: What a claim asks for, and what is said of it.
HOPELESS: dict[str, tuple[dict[str, Any], str]] = {
    "no-such-class": ({"storageClassName": "missing"}, "missing"),
    "no-such-driver": ({"storageClassName": "orphan"}, "nobody.example.com"),
    "too-large": ({"storageClassName": "fake", "size": "8Ei"}, NAME),
    "no-such-volume": ({"storageClassName": "", "volumeName": "missing"}, "missing"),
    "no-class": ({"storageClassName": ""}, "no persistent volumes available"),
    "no-such-source": (
        {"storageClassName": "fake", "dataSource": {"kind": "PersistentVolumeClaim", "name": "missing"}},
        "missing",
    ),
    "unknown-source": (
        {"storageClassName": "fake", "dataSource": {"apiGroup": "example.com", "kind": "Tape", "name": "t"}},
        "Tape",
    ),
}


def test_claims_that_nobody_can_satisfy_are_told_and_go_when_they_are_deleted(world: World) -> None:
    world.driver()
    world.begin()
    world.prepare()
    world.manager.api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "orphan"},
            "provisioner": "nobody.example.com",
        }
    )
    for name, (spec, said) in HOPELESS.items():
        claim(world, name, **spec)
        refused(partial(world.manager.mount_pod, pod(name), attempts=1), said)
    assert len(world.manager.unmount_all(timeout=40)) == len(HOPELESS)
    for name in HOPELESS:
        world.manager.api.delete(PersistentVolumeClaim, name, "default")
    world.assert_nothing_left()
    assert world.manager.api.list(PersistentVolume).items == []
    until(world.manager.control.settled, "nothing is tried any more")
