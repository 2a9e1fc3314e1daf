"""Makes wheels out of a few lines of source, for tests that need many different distributions."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

#: A plugin that serves flexVolume volumes of the driver that has its name.
PLUGIN = """
from volumehost import hookimpl

class Plugin:
    version = {version!r}

    @hookimpl
    def get_plugin_name(self):
        return {name!r}

    @hookimpl
    def get_volume_sources(self):
        return ("flex_volume",)

    @hookimpl
    def can_support(self, spec):
        return spec.volume is not None and spec.volume.flex_volume.driver == {name!r}

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def new_mounter(self, spec, pod):
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError
"""


def plugin_source(name: str, version: str = "1.0") -> str:
    return PLUGIN.format(name=name, version=version)


def make_wheel(
    directory: Path,
    distribution: str,
    version: str = "1.0",
    *,
    files: dict[str, str | bytes] | None = None,
    entry_points: dict[str, str] | None = None,
    requires: tuple[str, ...] = (),
    requires_python: str = "",
) -> Path:
    """A valid wheel, RECORD with hashes and sizes included; returns its path."""
    stem = f"{distribution.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    headers = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
    headers += [f"Requires-Dist: {requirement}" for requirement in requires]
    headers += [f"Requires-Python: {requires_python}"] if requires_python else []
    content: dict[str, str | bytes] = {
        **(files or {}),
        f"{info}/METADATA": "\n".join(headers) + "\n\nA package for tests.\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points is not None:
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        content[f"{info}/entry_points.txt"] = "\n".join(["[volumehost.plugins]", *lines]) + "\n"
    data = {path: text.encode() if isinstance(text, str) else text for path, text in content.items()}
    record = [f"{path},{_hash(each)},{len(each)}" for path, each in data.items()]
    data[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, each in data.items():
            archive.writestr(name, each)
    return path


def make_plugin_wheel(directory: Path, distribution: str, version: str = "1.0", *, plugin: str, **options) -> Path:
    """A wheel with one good plugin of that name in the package ``<distribution>/plugin.py``."""
    package = distribution.replace("-", "_")
    files = {f"{package}/__init__.py": "", f"{package}/plugin.py": plugin_source(plugin, version)}
    files.update(options.pop("files", {}))
    entry_points = options.pop("entry_points", {"main": f"{package}.plugin:Plugin"})
    return make_wheel(directory, distribution, version, files=files, entry_points=entry_points, **options)


def _hash(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
