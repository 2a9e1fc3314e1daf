"""A vendor's volume plugin, installed in a directory of the search path as pip would do it; gates hold up its steps.

Its volumes are flexVolumes of driver example.com/acme. Option ``kind``: ``tmpfs`` (the default), or ``content``,
files that are written atomically.
"""

import os
import shutil
from pathlib import Path

DISTRIBUTION = "acme_volumes-1.0.dist-info"


def acme(name="acme", **options):
    """A volume of a pod."""
    return {"name": name, "flexVolume": {"driver": "example.com/acme", "options": options}}


class Site:
    """The directory on the search path, and the gates.

    A file ``<gate>`` in ``gates`` holds up that step while it is there; ``fail-<gate>`` makes it fail.
    """

    def __init__(self, directory):
        self.path, self.gates = f"{directory}/site", f"{directory}/gates"
        os.makedirs(self.path)
        os.makedirs(self.gates)

    @property
    def environment(self):
        """For processes that are to find the plugin."""
        others = filter(None, [os.environ.get("PYTHONPATH")])
        return {"PYTHONPATH": os.pathsep.join([self.path, *others]), "ACME_GATES": self.gates}

    def install(self):
        Path(self.path, "acme_volumes.py").write_text(SOURCE)
        info = Path(self.path, DISTRIBUTION)
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-volumes\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[volumehost.plugins]\nacme = acme_volumes:Plugin\n")
        (info / "RECORD").write_text("")

    def uninstall(self):
        shutil.rmtree(f"{self.path}/{DISTRIBUTION}")
        os.unlink(f"{self.path}/acme_volumes.py")
        shutil.rmtree(f"{self.path}/__pycache__", ignore_errors=True)

    def close(self, gate):
        Path(self.gates, gate).write_text("closed")

    def open(self, gate):
        os.unlink(f"{self.gates}/{gate}")


SOURCE = """
import os
import threading

from volumehost import Attributes, ReconstructedVolume, Spec, hookimpl
from volumehost.errors import NotSupportedMetricsError
from volumehost.sdk import AtomicWriter, FileProjection, cleanup_mount_point, make_directories
from volumehost.sdk import remove_all_one_filesystem


def gate(name):
    gates = os.environ["ACME_GATES"]
    while os.path.exists(f"{gates}/{name}"):
        threading.Event().wait(0.01)
    if os.path.exists(f"{gates}/fail-{name}"):
        raise RuntimeError(open(f"{gates}/fail-{name}").read())


gate("import")


class AcmeVolume:
    def __init__(self, host, path, kind="tmpfs"):
        self.host, self.path, self.kind = host, path, kind

    def get_path(self):
        return self.path

    def get_attributes(self):
        return Attributes()

    def get_metrics(self):
        raise NotSupportedMetricsError("none")

    def set_up(self, args):
        gate("set-up")
        make_directories(self.path)
        if self.kind == "content":
            files = {"key": FileProjection(b"content of acme", 0o644)}
            AtomicWriter(self.path).write(files)
            return
        mounter = self.host.get_mounter()
        if mounter.is_mount_point(self.path):
            return
        mounter.mount("acme", self.path, "tmpfs", ["size=64k"])

    def set_up_at(self, directory, args):
        raise NotImplementedError

    def tear_down(self):
        gate("tear-down")
        if os.path.lexists(f"{self.path}/..data"):
            remove_all_one_filesystem(self.path)
        else:
            cleanup_mount_point(self.path, self.host.get_mounter(), True)

    def tear_down_at(self, directory):
        raise NotImplementedError


class Plugin:
    @hookimpl
    def init(self, host):
        self.host = host

    @hookimpl
    def get_plugin_name(self):
        return "example.com/acme"

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        source = spec.volume.flex_volume if spec.volume is not None else None
        return source is not None and source.driver == "example.com/acme"

    @hookimpl
    def new_mounter(self, spec, pod):
        path = self.host.get_pod_volume_dir(pod.metadata.uid, "example.com/acme", spec.name())
        return AcmeVolume(self.host, path, spec.volume.flex_volume.options.get("kind", "tmpfs"))

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        return AcmeVolume(self.host, self.host.get_pod_volume_dir(pod_uid, "example.com/acme", volume_name))

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        from volumehost.api.objects import Volume

        return ReconstructedVolume(Spec.from_volume(Volume(name=volume_name)), complete=False)
"""
