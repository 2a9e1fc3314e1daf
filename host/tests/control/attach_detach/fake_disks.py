"""A plugin whose volumes are attached, for tests: it remembers what it was asked, and fails or waits as it is told."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from volumehost import hookimpl
from volumehost.errors import ObjectNotFoundError
from volumehost.spec import Spec

PLUGIN = "example.com/disk"


class Disks:
    """Attaches PersistentVolumes with a ``gcePersistentDisk``. ``attached`` is the truth: disk to nodes."""

    def __init__(self) -> None:
        self.attached: dict[str, set[str]] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.errors: list[BaseException] = []
        self.attachable = True
        #: Disks whose name it fails to tell.
        self.nameless: set[str] = set()
        #: While it is not set, attaching waits.
        self.may_attach = threading.Event()
        self.may_attach.set()
        self.reached = threading.Event()

    # --- the plugin -------------------------------------------------------------------------------------------------

    @hookimpl
    def get_plugin_name(self) -> str:
        return PLUGIN

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        return spec.source() == "gce_persistent_disk"

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        assert spec.persistent_volume is not None
        source = spec.persistent_volume.spec.gce_persistent_disk
        assert source is not None
        if source.pd_name in self.nameless:
            raise RuntimeError("it cannot be told")
        return str(source.pd_name)

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Any) -> Any:
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def can_device_mount(self, spec: Spec) -> bool:
        return True

    @hookimpl
    def new_device_mounter(self) -> Any:
        raise NotImplementedError

    @hookimpl
    def new_device_unmounter(self) -> Any:
        raise NotImplementedError

    @hookimpl
    def get_device_mount_refs(self, device_mount_path: str) -> Sequence[str]:
        return ()

    @hookimpl
    def can_attach(self, spec: Spec) -> bool:
        return self.attachable

    @hookimpl
    def verify_exhausted_resource(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def new_attacher(self) -> Any:
        return self

    @hookimpl
    def new_detacher(self) -> Any:
        return self

    # --- attacher and detacher --------------------------------------------------------------------------------------

    def attach(self, spec: Spec, node_name: str) -> str:
        disk = self.get_volume_name(spec)
        self.calls.append(("attach", disk, node_name))
        self.reached.set()
        assert self.may_attach.wait(30)
        self._fail()
        self.attached.setdefault(disk, set()).add(node_name)
        return f"/dev/{disk}"

    def volumes_are_attached(self, specs: Sequence[Spec], node_name: str) -> Mapping[Spec, bool]:
        return {spec: node_name in self.attached.get(self.get_volume_name(spec), ()) for spec in specs}

    def wait_for_attach(self, spec: Spec, device_path: str, pod: Any, timeout: float) -> str:
        raise ObjectNotFoundError("only a node waits")

    def detach(self, volume_name: str, node_name: str) -> None:
        self.calls.append(("detach", volume_name, node_name))
        self._fail()
        self.attached.get(volume_name, set()).discard(node_name)

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
