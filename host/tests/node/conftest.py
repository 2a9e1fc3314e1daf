"""A clock that tests move, pods, and plugins for the node's tests."""

import contextlib
import os

import pytest

from volumehost import Attributes, ReconstructedVolume, Spec, VolumeManager, hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from volumehost.errors import NotSupportedMetricsError
from volumehost.loader.events import NoProber
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table
from volumehost.sdk import cleanup_mount_point


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def move(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_pod():
    """A pod from its volumes; each is mounted by the one container unless ``mounts`` says otherwise."""

    def make(*volumes, name="web", uid="uid-1", namespace="default", mounts=None, spec=None, metadata=None):
        names = [volume["name"] for volume in volumes] if mounts is None else mounts
        container = {"name": "c", "image": "i", "volumeMounts": [{"name": n, "mountPath": f"/{n}"} for n in names]}
        return to_object(
            Pod,
            {
                "metadata": {"name": name, "namespace": namespace, "uid": uid, **(metadata or {})},
                "spec": {"containers": [container], "volumes": list(volumes), **(spec or {})},
            },
        )

    return make


class Bind:
    """A real volume plugin: bind-mounts a directory (the path of an nfs source) for the pod.

    ``trouble`` maps a step (``set_up``, ``tear_down``, ...) to what is called before it: it may raise or hang.
    """

    sources = ("nfs",)

    def __init__(self, name="example.com/bind"):
        self.name = name
        self.host = None
        self.calls = []
        self.trouble = {}
        self.remount = False
        self.mount_options = False

    def step(self, name, *details):
        self.calls.append((name, *details))
        action = self.trouble.get(name)
        if action is not None:
            action()

    def count(self, name):
        return sum(call[0] == name for call in self.calls)

    @hookimpl
    def init(self, host):
        self.host = host

    @hookimpl
    def get_plugin_name(self):
        return self.name

    @hookimpl
    def get_volume_name(self, spec):
        return source_of(spec)

    @hookimpl
    def can_support(self, spec):
        self.step("can_support")
        return spec.source() in self.sources

    @hookimpl
    def requires_remount(self, spec):
        return self.remount

    @hookimpl
    def supports_mount_option(self):
        return self.mount_options

    @hookimpl
    def new_mounter(self, spec, pod):
        self.step("new_mounter")
        target = self.host.get_pod_volume_dir(pod.metadata.uid, self.name, spec.name())
        return BindMounter(self, source_of(spec), target)

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        self.step("new_unmounter")
        return BindMounter(self, "", self.host.get_pod_volume_dir(pod_uid, self.name, volume_name))

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        self.step("construct_volume_spec")
        volume = to_object(Volume, {"name": volume_name, "nfs": {"server": "s", "path": "/unknown"}})
        return ReconstructedVolume(Spec.from_volume(volume), complete=False)


class BindMounter:
    """Mounts for and unmounts from a pod."""

    def __init__(self, plugin, source, target):
        self.plugin, self.source, self.target = plugin, source, target

    def get_path(self):
        return self.target

    def get_attributes(self):
        return Attributes()

    def get_metrics(self):
        raise NotSupportedMetricsError("none")

    def set_up(self, args):
        self.plugin.step("set_up", args)
        os.makedirs(self.target, mode=0o750, exist_ok=True)
        mounter = self.plugin.host.get_mounter()
        if not mounter.is_mount_point(self.target):
            mounter.mount(self.source, self.target, options=["bind"])
        if args.fs_group is not None:
            args.volume_ownership_applicator(self, self.target, args)

    def set_up_at(self, directory, args):
        raise NotImplementedError

    def tear_down(self):
        self.plugin.step("tear_down")
        cleanup_mount_point(self.target, self.plugin.host.get_mounter(), True)

    def tear_down_at(self, directory):
        raise NotImplementedError


class Disk(Bind):
    """The same with a device: attached to the node, mounted globally, and bound from there for each pod."""

    def __init__(self, name="example.com/disk", attaches=True):
        super().__init__(name)
        self.attaches = attaches
        self.attached = {}
        self.references = None

    def global_path(self, spec):
        return f"{self.host.get_plugin_dir(self.name)}/mounts/{source_of(spec).strip('/').replace('/', '-')}"

    @hookimpl
    def new_mounter(self, spec, pod):
        self.step("new_mounter")
        target = self.host.get_pod_volume_dir(pod.metadata.uid, self.name, spec.name())
        return BindMounter(self, self.global_path(spec), target)

    @hookimpl
    def can_device_mount(self, spec):
        return True

    @hookimpl
    def can_attach(self, spec):
        return self.attaches

    @hookimpl
    def verify_exhausted_resource(self, spec):
        return False

    @hookimpl
    def new_device_mounter(self):
        return DiskDevice(self)

    @hookimpl
    def new_device_unmounter(self):
        return DiskDevice(self)

    @hookimpl
    def new_attacher(self):
        return DiskDevice(self)

    @hookimpl
    def new_detacher(self):
        return DiskDevice(self)

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        if self.references is not None:
            return self.references
        return self.host.get_mounter().get_mount_refs(device_mount_path)


class DiskDevice:
    """Attaches, mounts globally, and the reverse."""

    def __init__(self, plugin):
        self.plugin = plugin

    def attach(self, spec, node_name):
        self.plugin.step("attach", node_name)
        self.plugin.attached[source_of(spec)] = node_name
        return "/dev/example"

    def volumes_are_attached(self, specs, node_name):
        return {spec: source_of(spec) in self.plugin.attached for spec in specs}

    def wait_for_attach(self, spec, device_path, pod, timeout):
        self.plugin.step("wait_for_attach", device_path, timeout)
        return f"{device_path}p1"

    def detach(self, volume_name, node_name):
        self.plugin.step("detach", volume_name, node_name)
        self.plugin.attached.pop(volume_name, None)

    def get_device_mount_path(self, spec):
        self.plugin.step("get_device_mount_path")
        return self.plugin.global_path(spec)

    def mount_device(self, spec, device_path, device_mount_path, args):
        self.plugin.step("mount_device", device_path, args)
        os.makedirs(device_mount_path, mode=0o750, exist_ok=True)
        mounter = self.plugin.host.get_mounter()
        if not mounter.is_mount_point(device_mount_path):
            mounter.mount(source_of(spec), device_mount_path, options=["bind"])

    def unmount_device(self, device_mount_path):
        self.plugin.step("unmount_device", device_mount_path)
        cleanup_mount_point(device_mount_path, self.plugin.host.get_mounter(), True)


class TroubledMounter:
    """The kernel's mounts, with a chance to interfere before or after an unmount."""

    def __init__(self):
        self._real = LinuxMounter()
        self.before_unmount = self.after_unmount = lambda target: None

    def __getattr__(self, name):
        return getattr(self._real, name)

    def unmount(self, target, **options):
        self.before_unmount(target)
        self._real.unmount(target, **options)
        self.after_unmount(target)


@pytest.fixture
def troubled_mounter():
    return TroubledMounter()


def source_of(spec):
    holder = spec.volume if spec.volume is not None else spec.persistent_volume.spec
    return next((source.path for source in (holder.nfs, holder.cephfs) if source is not None), "/var/empty")


@pytest.fixture
def bind():
    return Bind


@pytest.fixture
def disk():
    return Disk


@pytest.fixture
def mounts(tmp_path):
    """The paths that are mounted below the test's directory, the root's own filesystem aside."""

    def below():
        found = [mount.path for mount in read_mount_table()]
        return sorted(path for path in found if path.startswith(f"{tmp_path}/host/"))

    return below


@pytest.fixture
def data(tmp_path):
    """A directory of the host with a file in it, for plugins to mount."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").write_text("content")
    return str(directory)


@pytest.fixture
def manager(root):
    """Makes managers that know only the given plugins; each is left at the end."""
    with contextlib.ExitStack() as stack:

        def make(*plugins, enter=True, **options):
            made = VolumeManager(options.pop("root", root), plugins=plugins, prober=NoProber(), **options)
            return stack.enter_context(made) if enter else made

        yield make


@pytest.fixture
def nfs(data):
    """A volume that the Bind and Disk plugins serve."""

    def make(name="v", path=None):
        return {"name": name, "nfs": {"server": "s", "path": path or data}}

    return make


@pytest.fixture
def claimed(data):
    """Puts a claim and the volume that it is bound to into an API; both can be changed on the way."""

    def make(api, name="claim", *, phase="Bound", claim=None, volume=None, path=None, reference=True):
        made = api.create(
            to_object(
                PersistentVolumeClaim,
                {
                    "metadata": {"name": name, "namespace": "default", **(claim or {}).pop("metadata", {})},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        "volumeName": f"pv-{name}",
                        **(claim or {}),
                    },
                },
            )
        )
        made.status.phase = phase
        made = api.replace_status(made)
        api.create(
            to_object(
                PersistentVolume,
                {
                    "metadata": {"name": f"pv-{name}", **(volume or {}).pop("metadata", {})},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "nfs": {"server": "s", "path": path or data},
                        **(
                            {
                                "claimRef": {
                                    "kind": "PersistentVolumeClaim",
                                    "namespace": "default",
                                    "name": name,
                                    "uid": made.metadata.uid,
                                }
                            }
                            if reference
                            else {}
                        ),
                        **(volume or {}),
                    },
                },
            )
        )
        return made

    return make
