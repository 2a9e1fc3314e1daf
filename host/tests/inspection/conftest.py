"""Root directories for inspections: a kubelet's with real mounts, put together by hand, and this host's own."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from volumehost import VolumeManager
from volumehost.api.store import EmbeddedStore
from volumehost.inspection.inspect import Sources, inspect_root
from volumehost.inspection.repair import apply_repair, plan_repair
from volumehost.loader.events import NoProber
from volumehost.mount import loop, syscalls
from volumehost.mount.block_path import BlockPathHandler, mapping_label
from volumehost.mount.mountinfo import read_mount_table

from .acme_plugins import Shares

FUSE_DAEMON = Path(__file__).parents[1] / "mount" / "fuse_daemon.py"
DRIVER = "csi.example.com"


def pod_uid(number):
    """A uid as the API gives them."""
    return f"0000000{number}-aaaa-4bbb-8ccc-dddddddddddd"


class Kubelet:
    """A kubelet's root directory, in which pods with volumes are put as a kubelet would leave them."""

    def __init__(self, area):
        self.area = area
        self.root = str(area / "kubelet")
        for name in ("pods", "plugins/kubernetes.io/csi", "plugins_registry", "pod-resources", "device-plugins"):
            os.makedirs(f"{self.root}/{name}")

    # --- parts ------------------------------------------------------------------------------------------------

    def data(self, name):
        """A directory of the host with a file in it, as what a disk holds."""
        path = self.area / "data" / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "file").write_text(name)
        return str(path)

    def bind(self, source, target):
        if os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(target).touch()
        syscalls.mount(source, target, "", syscalls.MS_BIND, "")
        return target

    def tmpfs(self, target, source="tmpfs"):
        os.makedirs(target, exist_ok=True)
        syscalls.mount(source, target, "tmpfs", 0, "size=1m")
        return target

    def pod(self, number):
        uid = number if isinstance(number, str) else pod_uid(number)
        path = f"{self.root}/pods/{uid}"
        os.makedirs(f"{path}/volumes")
        os.makedirs(f"{path}/containers/app")
        Path(f"{path}/containers/app/0a1b2c3d").write_text("the end")
        Path(f"{path}/etc-hosts").write_text("127.0.0.1 localhost\n")
        return uid

    def volume_dir(self, uid, plugin, name):
        return f"{self.root}/pods/{uid}/volumes/{plugin.replace('/', '~')}/{name}"

    # --- volumes ----------------------------------------------------------------------------------------------

    def empty_dir(self, uid, name="scratch", *, memory=False):
        path = self.volume_dir(uid, "kubernetes.io/empty-dir", name)
        os.makedirs(f"{self.root}/pods/{uid}/plugins/kubernetes.io~empty-dir/{name}")
        Path(f"{self.root}/pods/{uid}/plugins/kubernetes.io~empty-dir/{name}/ready").touch()
        if memory:
            return self.tmpfs(path)
        os.makedirs(path)
        return path

    def projected(self, uid, name="kube-api-access"):
        path = self.tmpfs(self.volume_dir(uid, "kubernetes.io/projected", name))
        Path(f"{path}/token").write_text("secret")
        return path

    def nfs(self, uid, name="share"):
        return self.bind(self.data(f"nfs-{name}"), self.volume_dir(uid, "kubernetes.io/nfs", name))

    def staging(self, handle, driver=DRIVER):
        digest = hashlib.sha256(handle.encode()).hexdigest()
        return f"{self.root}/plugins/kubernetes.io/csi/{driver}/{digest}"

    def record(self, directory, **fields):
        os.makedirs(directory, exist_ok=True)
        Path(f"{directory}/vol_data.json").write_text(json.dumps(fields) + "\n")

    def stage(self, handle, driver=DRIVER):
        directory = self.staging(handle, driver)
        self.record(directory, driverName=driver, volumeHandle=handle)
        return self.bind(self.data(handle), f"{directory}/globalmount")

    def csi(self, uid, handle="vol-1", name="pv-1", driver=DRIVER, lifecycle="Persistent"):
        """Staged, unless it was, and published; returns where the pod sees it."""
        staged = f"{self.staging(handle, driver)}/globalmount"
        if lifecycle == "Persistent" and not os.path.isdir(staged):
            self.stage(handle, driver)
        path = self.volume_dir(uid, "kubernetes.io/csi", name)
        self.record(
            path,
            driverName=driver,
            volumeHandle=handle,
            specVolID=name,
            nodeName="node-1",
            attachmentID="csi-1",
            volumeLifecycleMode=lifecycle,
        )
        return self.bind(self.data(handle) if lifecycle == "Ephemeral" else staged, f"{path}/mount")

    def subpath(self, uid, volume, source, container="app", index=0):
        return self.bind(source, f"{self.root}/pods/{uid}/volume-subpaths/{volume}/{container}/{index}")

    def block(self, uid, handle="vol-raw", name="pv-raw"):
        """A loop device as the disk, published, mapped globally, linked for the pod, and locked."""
        base = f"{self.root}/plugins/kubernetes.io/csi/volumeDevices"
        self.record(f"{base}/{name}/data", driverName=DRIVER, volumeHandle=handle, specVolID=name)
        image = self.area / f"{name}.img"
        with image.open("wb") as file:
            file.truncate(1 << 20)
        device = loop.attach(str(image))
        self.bind(device, f"{base}/publish/{name}/{uid}")
        self.bind(device, f"{base}/{name}/dev/{uid}")
        os.makedirs(f"{base}/staging/{name}")
        links = f"{self.root}/pods/{uid}/volumeDevices/kubernetes.io~csi"
        os.makedirs(links)
        os.symlink(device, f"{links}/{name}")
        self.labels |= {mapping_label(f"{base}/{name}/dev/{uid}"), str(image)[:63]}
        BlockPathHandler.attach_file_device(f"{base}/{name}/dev/{uid}")
        return device

    # --- what is asked ----------------------------------------------------------------------------------------

    def pods_file(self, *uids, more=(), age=0.0, **extra):
        """A list of pods as kubectl prints it; the pods are called pod-<n>."""
        items = [
            {"kind": "Pod", "metadata": {"uid": uid, "namespace": "default", "name": f"pod-{uid[:8]}"}, "spec": {}}
            for uid in uids
        ]
        path = self.area / "pods.json"
        path.write_text(json.dumps({"kind": "List", "items": [*items, *more], **extra}))
        if age:
            os.utime(path, (time.time() - age,) * 2)
        return str(path)

    def inspect(self, *uids, pods=None, **sources):
        """Inspect it, told that these are all pods of the node."""
        return inspect_root(self.root, Sources(pods=pods or self.pods_file(*uids), **sources), answer_seconds=1.0)

    def plan(self, *uids, choice=None, **sources):
        return plan_repair(self.root, Sources(pods=self.pods_file(*uids), **sources), choice)

    def repair(self, *uids, choice=None, **options):
        return apply_repair(self.root, Sources(pods=self.pods_file(*uids)), choice, **options)

    def mounts(self):
        return mounts_below(self.root)

    def pods(self):
        return sorted(os.listdir(f"{self.root}/pods"))


def mounts_below(path):
    return [mount.path for mount in read_mount_table() if mount.path.startswith(f"{path}/")]


def kinds(inspection):
    """(kind, subject) of every finding."""
    return sorted(finding.key for finding in inspection.findings)


@pytest.fixture
def area(tmp_path):
    """A tmpfs of its own; in the end everything below it is unmounted, and its loop devices are detached."""
    place = tmp_path / "area"
    place.mkdir()
    syscalls.mount("area", str(place), "tmpfs", 0, "")
    before, made = set(loop.list_attached()), set()
    Kubelet.labels = made
    yield place
    for _ in range(2):  # what is mounted keeps devices, what is attached keeps mounts
        for device in set(loop.list_attached()) - before:
            if device.backing_file.startswith(f"{tmp_path}/") or device.label in made:
                loop.detach(device.device, timeout=0.1)
        for path in reversed(mounts_below(str(tmp_path))):
            with contextlib.suppress(OSError):
                syscalls.umount2(path.removesuffix("//deleted"), syscalls.MNT_DETACH)


@pytest.fixture
def kubelet(area, monkeypatch):
    """A kubelet's directory; no volume plugin is there, unless a test brings one."""
    monkeypatch.setenv("VOLUMEHOST_PLUGINS", "none")
    return Kubelet(area)


@pytest.fixture
def fuse():
    """Mounts FUSE filesystems; their daemons are there to be killed or stopped, and end with the test."""
    daemons = []

    def mount(path):
        if not os.path.exists("/dev/fuse"):
            pytest.skip("needs /dev/fuse")
        os.makedirs(path, exist_ok=True)
        daemon = subprocess.Popen([sys.executable, FUSE_DAEMON, path], stdout=subprocess.PIPE)
        daemons.append(daemon)
        if daemon.stdout.readline() != b"ready\n":
            pytest.skip("FUSE does not work here")
        os.stat(path)  # the kernel's greeting is answered
        return daemon

    yield mount
    for daemon in daemons:
        daemon.kill()
        daemon.wait(30)
        daemon.stdout.close()


@pytest.fixture
def dead(fuse):
    """Mounts a filesystem whose daemon has died."""

    def mount(path):
        daemon = fuse(path)
        daemon.kill()
        daemon.wait(30)
        return path

    return mount


@pytest.fixture
def hung(fuse):
    """Mounts a filesystem whose daemon does not answer."""

    def mount(path):
        fuse(path).send_signal(signal.SIGSTOP)
        return path

    return mount


UNSHARE = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); libc.unshare(0x20000)"
#: A bind of its own somewhere else, on a tree that follows the host's and from which the host's is gone, and a slave.
CONTAINER = f"""{UNSHARE}
def mount(source, target, flags, kind=None):
    assert not libc.mount(source, target, kind, flags, None), ctypes.get_errno()
mount(b"", b"/", 0x84000)  # MS_REC | MS_SLAVE
mount(b"rootfs", b"/mnt", 0, b"tmpfs")
mount(b"", b"/mnt", 0x40000)  # MS_PRIVATE
os.mkdir("/mnt/data")
mount(os.fsencode(path), b"/mnt/data", 4096)  # MS_BIND
mount(b"", b"/mnt/data", 0x80000)  # MS_SLAVE
"""
HOLD = {
    "file": "held = open(path + '/file')",
    "directory": "import os; os.chdir(path)",
    "namespace": UNSHARE,
    "container": CONTAINER,
}


@pytest.fixture
def holding():
    """Starts processes that hold a directory in some way; ends them with the block."""

    @contextlib.contextmanager
    def hold(how, path):
        program = f"import sys; path = sys.argv[1]\n{HOLD[how]}\nprint('ready', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", program, path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as process:
            try:
                assert process.stdout.readline() == b"ready\n"
                yield process
            finally:
                process.kill()

    return hold


# --- this host's own ------------------------------------------------------------------------------------------------


class Own:
    """This host's root directory; called, it makes a manager."""

    def __init__(self, area):
        self.root = str(area / "root")
        (area / "data").mkdir()
        (area / "data" / "file").write_text("content")
        self.data = str(area / "data")

    def __call__(self, plugin=None, **options):
        return VolumeManager(self.root, plugins=[plugin or Shares()], prober=NoProber(), **options)

    def pod(self, name="web"):
        container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        volumes = [{"name": "v", "nfs": {"server": "s", "path": self.data}}]
        return {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container], "volumes": volumes},
        }

    def inspect(self, sources=None):
        return inspect_root(self.root, sources)

    def repair(self, plugin=None, choice=None, **options):
        return apply_repair(self.root, choice=choice, plugins=[plugin] if plugin is not None else [], **options)

    def forget_pods(self):
        """As when a store from before the pods were made was put back."""
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.root}/store.sqlite3{suffix}")
        EmbeddedStore(f"{self.root}/store.sqlite3").close()


@pytest.fixture
def own(area, monkeypatch):
    monkeypatch.setenv("VOLUMEHOST_PLUGINS", "none")
    return Own(area)
