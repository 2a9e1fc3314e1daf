"""The demo's tour: a pod of four volumes, mounted, looked at, used and taken away. Every step checks its promise."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from volumehost._version import __version__
from volumehost.cli.demo_telling import Telling, errno_of, read_file, write_file
from volumehost.cli.kernel_view import KernelView, format_size, mounts_below, view_paths
from volumehost.cli.pod_report import volume_table
from volumehost.cli.tables import format_fields
from volumehost.errors import VolumesFailedError
from volumehost.mount.mounter import LinuxMounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.cli.demo_place import DemoPlace
    from volumehost.node.workloads.containers import ContainerMount

LIMIT = 4 << 20
_POD = "demo"
_TIMEOUT = 60.0


class Tour:
    """One run of the demo in its place."""

    def __init__(self, place: DemoPlace) -> None:
        self._place = place
        self._tell = Telling()
        self._uid = ""
        self._mounts: Sequence[ContainerMount] = ()

    def run(self) -> None:
        """All steps in order.

        :raises BrokenPromiseError: a step did not do what it must.
        :raises VolumeHostError: a step failed.
        """
        self._tell.say(f"volumehost {__version__}, in a directory of its own: DEMO={self._place.base}")
        manifest = self._manifest()
        self._prepare_host_data()
        self._show_manifest(manifest)
        self._mount(manifest)
        self._bind_into_container()
        self._show_kernel_view()
        self._write_and_read_back()
        self._try_read_only()
        self._try_limit()
        self._unmount()
        self._prove_that_nothing_is_left()

    # --- steps ----------------------------------------------------------------------------------------------------

    def _manifest(self) -> dict[str, Any]:
        host = self._place.host_dir
        volumes = [
            {"name": "scratch", "emptyDir": {}},
            {"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": f"{LIMIT >> 20}Mi"}},
            {"name": "site", "hostPath": {"path": f"{host}/site", "type": "Directory"}},
            {"name": "config", "hostPath": {"path": f"{host}/app.conf", "type": "File"}},
        ]
        mounts = [
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "cache", "mountPath": "/cache"},
            {"name": "site", "mountPath": "/srv/site"},
            {"name": "config", "mountPath": "/etc/app.conf", "readOnly": True},
        ]
        container = {"name": "app", "image": "example.com/app", "volumeMounts": mounts}
        spec = {"containers": [container], "volumes": volumes}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _POD}, "spec": spec}

    def _prepare_host_data(self) -> None:
        os.mkdir(f"{self._place.host_dir}/site")
        write_file(f"{self._place.host_dir}/app.conf", b"colour = blue\n")

    def _show_manifest(self, manifest: dict[str, Any]) -> None:
        from volumehost.api.yaml_writer import dump_yaml

        self._tell.step("A pod as for any cluster")
        self._tell.text(self._short(dump_yaml(manifest)))

    def _mount(self, manifest: dict[str, Any]) -> None:
        from volumehost.api.objects import Pod
        from volumehost.node.manager import VolumeManager

        self._tell.step("volumehost mount -f pod.yaml")
        with VolumeManager(self._place.root_dir) as manager:
            try:
                status = manager.mount_pod(manifest, timeout=_TIMEOUT, attempts=1)
            except VolumesFailedError as error:
                error.hint = "are the plugins there? pip install volumehost-emptydir volumehost-hostpath"
                raise
            self._uid = status.uid
            (container,) = manager.container_mounts(manager.api.get(Pod, _POD, "default"))
        self._mounts = container.mounts
        self._tell.text(self._short(volume_table([status], with_pod=False)))
        self._tell.say("  The manager has ended; the mounts stay.")

    def _bind_into_container(self) -> None:
        """What a container runtime does with what it is told: bind each volume to its place in the container."""
        mounter = LinuxMounter()
        for mount in self._mounts:
            target = self._inside(mount)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(mount.host_path):
                os.mkdir(target)
            else:
                write_file(target, b"")
            mounter.mount(mount.host_path, target, "", ["bind", *(["ro"] if mount.read_only else [])])

    def _show_kernel_view(self) -> None:
        self._tell.step("What the kernel says of the volumes, where a container runtime puts them ($DEMO/container)")
        views = view_paths([self._inside(mount) for mount in self._mounts])
        for mount, view in zip(self._mounts, views, strict=True):
            self._tell.check(view.own_mount, f"{mount.container_path} is no mount point")
            self._tell.text(f"volume {mount.volume}\n{format_fields(self._fields(view), indent=2)}")
            if mount.volume == "cache":
                self._tell.check(view.fs_type == "tmpfs" and view.size == LIMIT, "the cache has another type or size")

    def _fields(self, view: KernelView) -> list[tuple[str, object]]:
        return [
            ("target", self._short(view.target)),
            ("source", self._short(view.source)),
            ("fstype", view.fs_type),
            ("options", ",".join(view.options)),
            ("size", format_size(view.size)),
        ]

    def _write_and_read_back(self) -> None:
        self._tell.step("Written in the container, read on the host")
        for mount in self._mounts:
            if mount.read_only:
                continue
            text = f"hello from {mount.volume}\n".encode()
            write_file(f"{self._inside(mount)}/hello", text)
            found = read_file(f"{mount.host_path}/hello")
            self._tell.check(found == text, f"{mount.host_path}/hello holds {found!r}, not {text!r}")
            self._tell.ok(
                f"{mount.container_path}/hello is {self._short(mount.host_path)}/hello: {found.decode().strip()}"
            )

    def _try_read_only(self) -> None:
        (mount,) = [mount for mount in self._mounts if mount.read_only]
        found = read_file(self._inside(mount))
        self._tell.check(found == b"colour = blue\n", f"{mount.container_path} holds {found!r}")
        self._tell.ok(f"{mount.container_path} is the host's file: {found.decode().strip()}")
        refused = errno_of(lambda: write_file(self._inside(mount), b"colour = red\n"))
        self._tell.check(refused == errno.EROFS, f"writing to {mount.container_path} was not refused")
        self._tell.ok(f"{mount.container_path} cannot be written: {os.strerror(errno.EROFS)}")

    def _try_limit(self) -> None:
        (mount,) = [mount for mount in self._mounts if mount.volume == "cache"]
        path = f"{self._inside(mount)}/big"
        os.unlink(f"{self._inside(mount)}/hello")
        refused = errno_of(lambda: write_file(path, b"\0" * (LIMIT + 1)))
        written = os.stat(path).st_size
        self._tell.check(refused == errno.ENOSPC, f"the cache took more than its {format_size(LIMIT)}")
        self._tell.check(written <= LIMIT, f"the cache holds {written} bytes")
        self._tell.ok(f"{mount.container_path} takes {format_size(written)} and no more: {os.strerror(errno.ENOSPC)}")

    def _unmount(self) -> None:
        from volumehost.node.manager import VolumeManager

        self._tell.step(f"volumehost unmount {_POD}")
        mounter = LinuxMounter()
        for mount in reversed(self._mounts):
            mounter.unmount(self._inside(mount), timeout=_TIMEOUT)
        with VolumeManager(self._place.root_dir) as manager:
            manager.unmount_pod(_POD, timeout=_TIMEOUT)

    def _prove_that_nothing_is_left(self) -> None:
        left = mounts_below(self._place.base)
        self._tell.check(not left, f"still mounted: {', '.join(entry.path for entry in left)}")
        self._tell.ok("the mount table has nothing of it")
        pods = os.listdir(f"{self._place.root_dir}/pods")
        self._tell.check(not pods, f"left in the root directory: {', '.join(pods)}")
        self._tell.ok("the root directory has nothing of the pod")
        kept = read_file(f"{self._place.host_dir}/site/hello")
        self._tell.check(kept == b"hello from site\n", "the data of the hostPath volume is gone")
        self._tell.ok("what the host owns is where it was: $DEMO/host/site/hello")

    def _inside(self, mount: ContainerMount) -> str:
        return f"{self._place.container_dir}{mount.container_path}"

    def _short(self, text: str) -> str:
        return self._place.short(text, self._uid)
