"""A host that runs while pip installs, upgrades and removes a third party's volume plugin. Run with ``make story``.

The plugin is the package ``tests/packages/acme-volumes``, built to two wheels. pip works in a virtual environment of
its own, whose packages this process sees. As root: the volumes are real mounts.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from volumehost import VolumeManager
from volumehost.errors import VolumesFailedError
from volumehost.sdk import remove_all_one_filesystem

PACKAGE = Path(__file__).resolve().parents[1] / "tests" / "packages" / "acme-volumes"
PLUGIN = "example.com/scratch"


def build_wheel(directory: Path, version: str) -> Path:
    """The package as a wheel of that version."""
    source = directory / f"source-{version}"
    shutil.copytree(PACKAGE, source)
    (source / "src/acme_volumes/_version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = directory.glob(f"acme_volumes-{version}-*.whl")
    return wheel


class Environment:
    """A virtual environment that pip works in."""

    def __init__(self, directory: Path) -> None:
        venv.create(directory, with_pip=False, symlinks=True)
        self._python = directory / "bin" / "python"
        (self.site_packages,) = directory.glob("lib/python*/site-packages")

    def pip(self, *arguments: str | Path) -> None:
        """Run pip and show what it was asked for."""
        print(f"\n$ pip {' '.join(os.path.basename(argument) for argument in arguments)}", flush=True)
        command = [sys.executable, "-m", "pip", "--quiet", "--python", str(self._python), *map(str, arguments)]
        offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        subprocess.run(command, check=True, env=offline, stderr=subprocess.DEVNULL)


def pod(name: str) -> dict[str, Any]:
    """A pod with one volume of the plugin."""
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "app", "volumeMounts": [{"name": "work", "mountPath": "/work"}]}],
            "volumes": [{"name": "work", "flexVolume": {"driver": PLUGIN}}],
        },
    }


class Host:
    """The running host, told what to do and shown doing it."""

    def __init__(self, manager: VolumeManager) -> None:
        self._manager = manager

    def show_plugin(self) -> None:
        """The plugin's state, as ``volumehost plugins list`` has it."""
        found = [status for status in self._manager.plugins.plugins() if status.name == PLUGIN]
        for status in found:
            users = f", used by {len(status.users)} volume(s)" if status.users else ""
            print(f"  plugin {status.name} {status.version}: {status.state}{users}")
        if not found:
            print(f"  plugin {PLUGIN}: not there")

    def mount(self, name: str) -> None:
        """Mount the volume of a pod."""
        try:
            status = self._manager.mount_pod(pod(name), timeout=30)
        except VolumesFailedError:
            (status,) = [each for each in self._manager.status() if each.name == name]
            print(f"  pod {name}: not mounted: {status.volumes[0].explain()}")
            self._manager.unmount_pod(name)
            return
        (volume,) = status.volumes
        source = next(m.source for m in self._manager.host.get_mounter().list_mounts() if m.path == volume.path)
        print(f"  pod {name}: {volume.volume} is mounted from {source}")

    def unmount(self, name: str) -> None:
        """Unmount the volume of a pod."""
        self._manager.unmount_pod(name)
        print(f"  pod {name}: unmounted")


def story(host: Host, environment: Environment, old: Path, new: Path) -> None:
    """Install, use, upgrade while in use, uninstall while in use."""
    print("The host runs.")
    host.show_plugin()

    environment.pip("install", old)
    host.mount("a")
    host.show_plugin()

    environment.pip("install", "--upgrade", new)
    host.show_plugin()
    host.mount("b")
    host.unmount("a")
    host.unmount("b")
    host.show_plugin()
    host.mount("c")

    environment.pip("uninstall", "--yes", "acme-volumes")
    host.show_plugin()
    host.mount("d")
    host.unmount("c")
    host.show_plugin()


def main() -> None:
    """Everything happens in a temporary directory, which goes without ever crossing a mount."""
    directory = Path(tempfile.mkdtemp(prefix="volumehost-story-"))
    try:
        old, new = build_wheel(directory, "1.0"), build_wheel(directory, "2.0")
        environment = Environment(directory / "venv")
        site.addsitedir(str(environment.site_packages))
        with VolumeManager(directory / "root") as manager:
            try:
                story(Host(manager), environment, old, new)
            finally:
                manager.unmount_all()
        mounted = str(directory) in Path("/proc/self/mountinfo").read_text()
        print(f"\nLeft in the mount table: {'something' if mounted else 'nothing'}.")
    finally:
        remove_all_one_filesystem(str(directory))


if __name__ == "__main__":
    main()
