"""The demo's second half: a claim, and a real CSI driver that provisions, mounts, expands and removes its volume."""

from __future__ import annotations

import os
import select
import shutil
from typing import TYPE_CHECKING, Any

from volumehost.cli.demo_telling import Telling, read_file, write_file
from volumehost.cli.kernel_view import format_size, loop_devices_below, mounts_below, view_paths
from volumehost.cli.pod_report import volume_table
from volumehost.cli.tables import format_fields, format_table
from volumehost.mount.privileges import may_grow_mounted_ext

if TYPE_CHECKING:
    from volumehost.cli.demo_place import DemoPlace
    from volumehost.node.manager import VolumeManager

DRIVER = "loop.csi.volumehost"
_CLAIM = "data"
_POD = "database"
_TIMEOUT = 60.0
_BEFORE, _AFTER = "320Mi", "512Mi"  # xfs does not go below 300
_MIB = 1 << 20
_ENDING_SECONDS = 5.0


def missing_distributions() -> list[str]:
    """What has to be installed for this half, in pip's words."""
    from volumehost.loader.entry_points import InstalledEntryPoints
    from volumehost.loader.trust import TrustPolicy

    installed = InstalledEntryPoints(TrustPolicy.from_environment())
    missing = []
    if not any(each.distribution == "volumehost-csi" for each in installed.of("volumehost.plugins")):
        missing.append("volumehost-csi")
    if not any(each.name == DRIVER for each in installed.of("volumehost.csi_drivers")):
        missing.append("volumehost-loop-driver")
    return missing


class ClaimTour:
    """One run of it in the demo's place."""

    def __init__(self, place: DemoPlace) -> None:
        self._place = place
        self._tell = Telling()
        self._path = ""
        self._uid = ""
        self._volume = ""
        self._driver_pid: int | None = None

    def run(self) -> None:
        """All steps in order; each manager is a program of its own, with mounts and data to find.

        :raises BrokenPromiseError: a step did not do what it must.
        :raises VolumeHostError: a step failed.
        """
        from volumehost.api.yaml_writer import dump_yaml

        filesystem = growable_filesystem()
        objects = self._objects(filesystem)
        self._tell.step("A storage class of a CSI driver that pip installed, a claim, and a pod that uses it")
        self._tell.text("---\n".join(dump_yaml(each) for each in objects))
        with self._manager() as manager:
            self._apply(manager, objects[:-1])
        with self._manager() as manager:
            self._mount(manager, objects[-1])
        self._look(_BEFORE)
        write_file(f"{self._path}/table", b"kept\n")
        self._tell.ok(f"{self._short(self._path)}/table is written")
        with self._manager() as manager:
            self._expand(manager)
        self._look(_AFTER)
        found = read_file(f"{self._path}/table")
        self._tell.check(found == b"kept\n", f"{self._path}/table holds {found!r}")
        self._tell.ok("it grew while it was mounted, and $DEMO/.../table still says: kept")
        with self._manager() as manager:
            self._remove(manager)
        self._prove_that_nothing_is_left()

    # --- steps ------------------------------------------------------------------------------------------------------

    def _objects(self, filesystem: str) -> list[dict[str, Any]]:
        storage_class = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "disk"},
            "provisioner": DRIVER,
            "parameters": {"csi.storage.k8s.io/fstype": filesystem},
            "allowVolumeExpansion": True,
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": _CLAIM},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "disk",
                "resources": {"requests": {"storage": _BEFORE}},
            },
        }
        mount = {"name": _CLAIM, "mountPath": "/var/lib/database"}
        container = {"name": "db", "image": "example.com/db", "volumeMounts": [mount]}
        volume = {"name": _CLAIM, "persistentVolumeClaim": {"claimName": _CLAIM}}
        spec = {"containers": [container], "volumes": [volume]}
        return [
            storage_class,
            claim,
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _POD}, "spec": spec},
        ]

    def _apply(self, manager: VolumeManager, objects: list[dict[str, Any]]) -> None:
        """Apply, and wait for what the controllers do."""
        from volumehost.api.objects import PersistentVolumeClaim

        self._tell.step("volumehost apply -f claim.yaml")
        for each in objects:
            manager.api.create(each)

        def is_bound() -> bool:
            return manager.api.get(PersistentVolumeClaim, _CLAIM, "default").status.phase == "Bound"

        manager.control.wait_until(is_bound, _TIMEOUT, f"the volume of claim {_CLAIM}")
        claim = manager.api.get(PersistentVolumeClaim, _CLAIM, "default")
        self._volume = claim.spec.volume_name
        self._tell.text(self._claim_table(manager))
        self._tell.ok(f"the driver {DRIVER} made the volume")

    def _claim_table(self, manager: VolumeManager) -> str:
        from volumehost.api.objects import PersistentVolumeClaim

        claim = manager.api.get(PersistentVolumeClaim, _CLAIM, "default")
        size = claim.status.capacity.get("storage", "-")
        rows = [(_CLAIM, claim.status.phase, self._short(claim.spec.volume_name), size)]
        return format_table(("claim", "status", "volume", "capacity"), rows)

    def _mount(self, manager: VolumeManager, pod: dict[str, Any]) -> None:
        self._tell.step("volumehost mount -f pod.yaml")
        status = manager.mount_pod(pod, timeout=_TIMEOUT, attempts=1)
        self._uid, self._path = status.uid, status.volumes[0].path
        self._tell.text(self._short(volume_table([status], with_pod=False)))
        self._driver_pid = next(each.pid for each in manager.drivers.statuses() if each.name == DRIVER)
        self._tell.say("  The manager has ended, and the driver with it; the mount stays.")

    def _look(self, size: str) -> None:
        (view,) = view_paths([self._path])
        fields = [("source", view.source), ("fstype", view.fs_type), ("size", format_size(view.size))]
        self._tell.text(format_fields(fields, indent=0))
        self._tell.check(view.own_mount, f"{self._path} is no mount point")
        wanted = int(size.removesuffix("Mi")) * _MIB
        self._tell.check(wanted * 3 // 4 <= view.size <= wanted, f"the volume has {view.size} bytes, not about {size}")

    def _expand(self, manager: VolumeManager) -> None:
        from volumehost.api.objects import PersistentVolumeClaim, Pod

        self._tell.step(f"volumehost expand {_CLAIM} {_AFTER}")
        wish = {"spec": {"resources": {"requests": {"storage": _AFTER}}}}
        manager.api.patch(PersistentVolumeClaim, _CLAIM, wish, "default")
        manager.sync_pod(manager.api.get(Pod, _POD, "default"))

        def has_grown() -> bool:
            claim = manager.api.get(PersistentVolumeClaim, _CLAIM, "default")
            return claim.status.capacity.get("storage") == _AFTER

        manager.control.wait_until(has_grown, _TIMEOUT, f"claim {_CLAIM} to have {_AFTER}")
        self._tell.text(self._claim_table(manager))

    def _remove(self, manager: VolumeManager) -> None:
        from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

        self._tell.step(f"volumehost unmount {_POD}; volumehost delete pvc {_CLAIM}")
        manager.unmount_pod(_POD, timeout=_TIMEOUT)
        manager.api.delete(PersistentVolumeClaim, _CLAIM, "default")

        def is_gone() -> bool:
            return not manager.api.list(PersistentVolumeClaim).items and not manager.api.list(PersistentVolume).items

        manager.control.wait_until(is_gone, _TIMEOUT, f"the volume of claim {_CLAIM} to be deleted")

    def _prove_that_nothing_is_left(self) -> None:
        left = [entry.path for entry in mounts_below(self._place.root_dir)]
        self._tell.check(not left, f"still mounted: {', '.join(left)}")
        self._tell.ok("the mount table has nothing of it")
        attached = loop_devices_below(self._place.base)
        self._tell.check(not attached, f"loop devices are left: {', '.join(attached)}")
        self._tell.ok("no loop device is left")
        size = _size_of_files(f"{self._place.root_dir}/drivers")
        self._tell.check(size < 8 * _MIB, f"the driver still holds {format_size(size)}")
        self._tell.ok("the driver has deleted the volume's file")
        self._tell.check(self._driver_has_ended(), f"the driver's process {self._driver_pid} still runs")
        self._tell.ok("the driver's process has ended")

    # --- inside -----------------------------------------------------------------------------------------------------

    def _manager(self) -> VolumeManager:
        from volumehost.node.manager import VolumeManager

        return VolumeManager(self._place.root_dir)

    def _driver_has_ended(self) -> bool:
        """Whether the process that served the mount is gone; its end may take a moment."""
        if self._driver_pid is None:
            return False
        try:
            process = os.pidfd_open(self._driver_pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([process], [], [], _ENDING_SECONDS)[0])
        finally:
            os.close(process)

    def _short(self, text: str) -> str:
        shown = self._place.short(text, self._uid)
        return shown.replace(self._volume, "$VOLUME") if self._volume else shown


def growable_filesystem() -> str:
    """A filesystem that grows while it is mounted: ext4 needs a capability for that, xfs its programs."""
    if may_grow_mounted_ext() or shutil.which("mkfs.xfs") is None:
        return "ext4"
    return "xfs"


def _size_of_files(directory: str) -> int:
    return sum(os.lstat(f"{where}/{name}").st_blocks * 512 for where, _, names in os.walk(directory) for name in names)
