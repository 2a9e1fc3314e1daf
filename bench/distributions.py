"""Makes directories full of installed distributions, to measure discovery with."""

from __future__ import annotations

from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nSummary: one of many\n"
PLUGIN = """from volumehost import hookimpl


class Plugin:
    @hookimpl
    def get_plugin_name(self):
        return "bench.example.com/{name}"

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return False

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


def make_distributions(directory: Path, count: int, *, plugins: int = 2) -> None:
    """Write ``count`` installed distributions; half declare entry points of other groups, a few are our plugins."""
    for number in range(count):
        name = f"bench_dist_{number}"
        info = directory / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA.format(name=name.replace("_", "-")))
        (info / "INSTALLER").write_text("pip\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        record = f"{name}.py,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n"
        if number < plugins:
            (info / "entry_points.txt").write_text(f"[volumehost.plugins]\n{name} = {name}:Plugin\n")
            (directory / f"{name}.py").write_text(PLUGIN.format(name=name.replace("_", "-")))
        else:
            (directory / f"{name}.py").write_text("")
            if number % 2:
                (info / "entry_points.txt").write_text(f"[console_scripts]\n{name} = {name}:main\n")
        (info / "RECORD").write_text(record)
