"""What is wished for in a storm: pods with volumes of every kind, claims, and the objects that go with them."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any, Final

LOOP: Final = "loop.csi.volumehost"
FAKE: Final = "fake.csi.example.com"

#: Kinds of volumes. The first four are the node's own; ``inline`` and ``generic`` are made for their pod alone; the
#: others are claims, of a driver whose volumes lie on loop devices and of one that has to attach them.
OWN: Final = ("scratch", "memory", "host", "created")
FOR_POD: Final = ("inline", "generic")
CLAIMED: Final = ("loop", "loop-block", "fake", "fake-block")
KINDS: Final = (*OWN, *FOR_POD, *CLAIMED)

#: The node's name, as it is without an option.
NODE: Final = socket.gethostname().lower()

CLAIM_SIZE: Final = "16Mi"


@dataclass(frozen=True)
class Volume:
    """One volume of a pod. ``claim`` names the claim of a claimed kind; ``sub_path`` is a part that is mounted too."""

    name: str
    kind: str
    claim: str = ""
    sub_path: str = ""

    @property
    def is_block(self) -> bool:
        """Whether the pod sees a device."""
        return self.kind.endswith("-block")

    @property
    def has_sub_path(self) -> bool:
        """Whether a part of it is mounted too."""
        return bool(self.sub_path) and not self.is_block

    @property
    def is_csi(self) -> bool:
        """Whether a driver serves it."""
        return self.kind not in OWN

    @property
    def driver(self) -> str:
        """Which driver, "" for none."""
        return "" if not self.is_csi else FAKE if self.kind.startswith("fake") else LOOP


@dataclass
class Pod:
    """One pod that is wanted. ``uid`` is known when somebody has taken it in."""

    name: str
    volumes: tuple[Volume, ...]
    static: bool = False
    fs_group: int | None = None
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def stored_name(self) -> str:
        """Of its object in the store: a static pod's has the node's name too."""
        return f"{self.name}-{NODE}" if self.static else self.name

    def manifest(self, host_data: str) -> dict[str, Any]:
        """As in a file; ``host_data`` is the directory of the host whose content pods share."""
        mounts = [{"name": v.name, "mountPath": f"/{v.name}"} for v in self.volumes if not v.is_block]
        mounts += [
            {"name": v.name, "mountPath": f"/sub-{v.name}", "subPath": v.sub_path}
            for v in self.volumes
            if v.has_sub_path
        ]
        devices = [{"name": v.name, "devicePath": f"/dev/{v.name}"} for v in self.volumes if v.is_block]
        spec: dict[str, Any] = {
            "containers": [{"name": "main", "image": "none", "volumeMounts": mounts, "volumeDevices": devices}],
            "volumes": [{"name": v.name, **_source(v, host_data)} for v in self.volumes],
        }
        if self.fs_group is not None:
            spec["securityContext"] = {"fsGroup": self.fs_group}
        metadata: dict[str, Any] = {"name": self.name, "namespace": "default"}
        if self.labels:
            metadata["labels"] = self.labels
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def host_path(volume: Volume, host_data: str) -> str:
    """The directory of the host that a hostPath volume leads to."""
    return f"{host_data}/shared" if volume.kind == "host" else f"{host_data}/created-{volume.name}"


def _source(volume: Volume, host_data: str) -> dict[str, Any]:
    if volume.claim:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    sources: dict[str, dict[str, Any]] = {
        "scratch": {"emptyDir": {}},
        "memory": {"emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}},
        "host": {"hostPath": {"path": host_path(volume, host_data), "type": "Directory"}},
        "created": {"hostPath": {"path": host_path(volume, host_data), "type": "DirectoryOrCreate"}},
        "inline": {"csi": {"driver": LOOP, "volumeAttributes": {"size": CLAIM_SIZE}}},
        "generic": {"ephemeral": {"volumeClaimTemplate": {"spec": claim_spec("loop")}}},
    }
    return sources[volume.kind]


def claim_spec(kind: str, size: str = CLAIM_SIZE) -> dict[str, Any]:
    """Of a claim for a volume of that kind."""
    return {
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Block" if kind.endswith("-block") else "Filesystem",
        "storageClassName": kind.removesuffix("-block"),
        "resources": {"requests": {"storage": size}},
    }


def claim(name: str, kind: str) -> dict[str, Any]:
    """The manifest of a claim."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim_spec(kind)}


def driver_objects(*, attach: bool = True) -> list[dict[str, Any]]:
    """Storage class and CSIDriver of the fake driver; the loop driver brings its own."""
    spec = {"attachRequired": attach, "volumeLifecycleModes": ["Persistent", "Ephemeral"], "podInfoOnMount": True}
    storage = {"apiVersion": "storage.k8s.io/v1"}
    return [
        {**storage, "kind": "CSIDriver", "metadata": {"name": FAKE}, "spec": spec},
        {
            **storage,
            "kind": "StorageClass",
            "metadata": {"name": "fake"},
            "provisioner": FAKE,
            "allowVolumeExpansion": True,
        },
    ]
