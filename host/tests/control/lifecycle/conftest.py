"""A world for controllers of what exists already: a real store, a fake driver, and objects that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.objects import (
    CSINode,
    KubeObject,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Secret,
    StorageClass,
    VolumeAttachment,
)
from volumehost.api.store import EmbeddedStore
from volumehost.control.expanding.expand_controller import ExpandController
from volumehost.control.machinery.controller import ControlContext, Controller, Key
from volumehost.errors import StorageDriverUnavailableError, VolumeHostError
from volumehost.testing.storage_driver import FakeStorageDriver

DRIVER = "driver.example.com"
NODE = "node-1"
HANDLE = "vol-1"
#: Must never be seen anywhere.
SECRET = "hunter2-never-to-be-seen"


class Plugins:
    """No plugin can expand or translate anything, unless a test says which can."""

    def __init__(self) -> None:
        self.expandable: Any = None
        self.translate: Any = None

    def find_translator(self, spec: Any) -> Any:
        return self.translate if spec.source() == "aws_elastic_block_store" else None

    def find_expandable_plugin_by_spec(self, spec: Any) -> Any:
        if isinstance(self.expandable, Exception):
            raise self.expandable
        return self.expandable


@dataclass
class World:
    api: EmbeddedStore
    driver: FakeStorageDriver
    drivers: dict[str, FakeStorageDriver] = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    now: float = 1_800_000_000.0
    external_drivers: bool = False
    unavailable: bool = False
    plugins: Plugins = field(default_factory=Plugins)

    @property
    def context(self) -> ControlContext:
        return ControlContext(
            api=self.api,
            plugins=self.plugins,  # type: ignore[arg-type]
            driver=self._driver,
            knows_driver=lambda name: name in self.drivers,
            node_name=NODE,
            event=lambda involved, event_type, reason, message: self.events.append((event_type, reason, message)),
            progress=lambda obj, step: self.steps.append(step),
            wall_clock=lambda: self.now,
            external_drivers=self.external_drivers,
        )

    def _driver(self, name: str) -> FakeStorageDriver:
        if self.unavailable:
            raise StorageDriverUnavailableError("it does not run", driver=name)
        return self.drivers[name]

    # --- objects ----------------------------------------------------------------------------------------------------

    def create(self, kind: str, name: str, *, namespace: str = "", version: str = "v1", **fields: Any) -> Any:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | fields.pop("metadata", {})
        document = {"apiVersion": version, "kind": kind, "metadata": metadata} | fields
        status = document.pop("status", None)
        made = self.api.create(document)
        if status is not None:
            made = self.api.replace_status(
                {"apiVersion": version, "kind": kind, "metadata": metadata, "status": status}
            )
        return made

    def csi_node(self, node_id: str = "node-id") -> CSINode:
        drivers = [{"name": DRIVER, "nodeID": node_id}]
        return self.create("CSINode", NODE, version="storage.k8s.io/v1", spec={"drivers": drivers})

    def node(self, *in_use: str) -> Node:
        return self.create("Node", NODE, status={"volumesInUse": list(in_use)})

    def secret(self, name: str = "keys") -> Secret:
        return self.create("Secret", name, namespace="vault", stringData={"password": SECRET})

    def volume(self, name: str = "pv", *, size: str = "1Gi", claim: Any = None, **csi: Any) -> PersistentVolume:
        spec = csi.pop("spec", {})
        source = {"driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4", "volumeAttributes": {"a": "b"}} | csi
        if claim is not None:
            spec = spec | {"claimRef": {"namespace": claim.metadata.namespace, "name": claim.metadata.name,
                                        "uid": claim.metadata.uid}}  # fmt: skip
        wanted = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "csi": source} | spec
        if source["volumeHandle"] not in self.driver.volumes:
            self.driver.add_volume(source["volumeHandle"], 2**30)
        return self.create("PersistentVolume", name, spec=wanted, status={"phase": "Bound"})

    def attachment(self, name: str = "va", **fields: Any) -> VolumeAttachment:
        spec = {"attacher": DRIVER, "nodeName": NODE, "source": {"persistentVolumeName": "pv"}} | fields
        return self.create("VolumeAttachment", name, version="storage.k8s.io/v1", spec=spec)

    def storage_class(self, name: str = "fast", *, expansion: bool | None = True) -> StorageClass:
        return self.create(
            "StorageClass",
            name,
            version="storage.k8s.io/v1",
            provisioner=DRIVER,
            allowVolumeExpansion=expansion,
        )

    def bound_claim(self, name: str = "data", *, size: str = "1Gi", volume: str = "pv", **csi: Any) -> Any:
        """A claim that is bound to a volume of that size, and its volume."""
        spec = csi.pop("claim_spec", {})
        claim: PersistentVolumeClaim = self.create(
            "PersistentVolumeClaim",
            name,
            namespace="default",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
                "storageClassName": "fast",
                "volumeName": volume,
            }
            | spec,
            status={"phase": "Bound", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]},
        )
        self.volume(volume, size=size, claim=claim, **csi)
        return claim

    def get(self, kind: type[Any], name: str, namespace: str = "") -> Any:
        return self.api.get(kind, name, namespace)

    def va(self, name: str = "va") -> VolumeAttachment:
        return self.api.get(VolumeAttachment, name)

    def pv(self, name: str = "pv") -> PersistentVolume:
        return self.api.get(PersistentVolume, name)

    def pvc(self, name: str = "data") -> PersistentVolumeClaim:
        return self.api.get(PersistentVolumeClaim, name)

    def all_text(self) -> str:
        """Everything that anybody could read afterwards, but the secrets themselves."""
        kinds = [VolumeAttachment, PersistentVolume, PersistentVolumeClaim]
        stored = [str(self.api.list(kind).items) for kind in kinds]
        return "\n".join([*stored, str(self.events), str(self.steps)])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as api:
        driver = FakeStorageDriver()
        yield World(api, driver, {DRIVER: driver})


@pytest.fixture
def run() -> Callable[..., Any]:
    """Reconcile one object; what it raised, when it raised, else what it returned."""

    def reconcile(controller: Controller, obj: KubeObject | str, namespace: str = "") -> Any:
        key = Key(obj, namespace) if isinstance(obj, str) else Key.of(obj)
        try:
            return controller.reconcile(key)
        except VolumeHostError as error:
            return error

    return reconcile


@pytest.fixture
def expander(world: Any) -> ExpandController:
    """The controller, for a bound claim of a class that allows expansion."""
    world.storage_class()
    world.bound_claim()
    return ExpandController(world.context)
