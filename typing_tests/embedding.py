"""An embedding program, typed: what it hands in, and what it gets back.

Read by mypy, never run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_type

from volumehost import MountInterface, VolumeManager, errors
from volumehost.api.objects import Pod
from volumehost.node.status.records import PodStatus, VolumeStatus
from volumehost.node.workloads.containers import ContainerMounts


class Plugin:
    """Any object may be handed over as a plugin."""


def mounted(root_dir: Path, pod: Pod | Mapping[str, Any] | str, mounter: MountInterface) -> list[tuple[str, str]]:
    with VolumeManager(root_dir, node_name="here", plugins=[Plugin, Plugin()], mounter=mounter) as manager:
        assert_type(manager, VolumeManager)
        status = manager.mount_pod(pod, timeout=60, attempts=1)
        assert_type(status, PodStatus)
        assert_type(status.volumes, tuple[VolumeStatus, ...])
        assert_type(status.ready, bool)
        containers = manager.container_mounts(status)
        assert_type(containers, list[ContainerMounts])
        assert_type(manager.status(), list[PodStatus])
        manager.unmount_pod("name", "namespace", timeout=1.5)
        return [(mount.host_path, mount.container_path) for entry in containers for mount in entry.mounts]


def failures(root_dir: str, pod: Pod) -> Sequence[str]:
    try:
        with VolumeManager(root_dir) as manager:
            manager.sync_pod(pod)
            assert_type(manager.wait_for_pod(pod), PodStatus)
    except errors.WaitTimeoutError as error:
        assert_type(error.details, tuple[str, ...])
        return error.details
    except errors.RootDirectoryLockedError as error:
        assert_type(error.pid, int | None)
        return [error.reason, error.hint]
    return []


VolumeManager()  # type: ignore[call-arg]  # a root directory must be named
VolumeManager("/srv", plugins=Plugin)  # type: ignore[arg-type]  # several may come
VolumeManager("/srv", mounter="tmpfs")  # type: ignore[arg-type]
