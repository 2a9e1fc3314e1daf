"""What the tests of the agent's process put into the world and look at in it."""

import contextlib
import os

from volumehost.mount.mountinfo import read_mount_table

MEMORY = {"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
DISK = {"name": "scratch", "emptyDir": {}}


def pod(name="web", *volumes, **metadata):
    """A pod with one container that uses all its volumes."""
    volumes = volumes or (MEMORY,)
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": mounts}], "volumes": list(volumes)},
    }


def claim(name="data", size="16Mi"):
    """A claim that the loop driver provides for."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "loop",
            "resources": {"requests": {"storage": size}},
        },
    }


def claimed(name="data"):
    """The volume of a pod that uses the claim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def mounted_below(root):
    """Paths that are mounted below the root directory, the driver's own places and the root itself aside."""
    paths = sorted(mount.path for mount in read_mount_table())
    return [path for path in paths if path.startswith((f"{root}/pods/", f"{root}/plugins/"))]


def is_mounted(path):
    return any(mount.path == path for mount in read_mount_table())


def volume_path(root, uid, volume="cache", plugin="kubernetes.io~empty-dir"):
    return f"{root}/pods/{uid}/volumes/{plugin}/{volume}"


def pod_directories(root):
    with contextlib.suppress(FileNotFoundError):
        return sorted(os.listdir(f"{root}/pods"))
    return []
