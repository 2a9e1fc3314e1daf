"""What the administrator tells plugins: one TOML file, from which each plugin gets its VolumeConfig (SPEC-09).

::

    [plugins."kubernetes.io/host-path"]
    provisioning_enabled = true
    recycler_minimum_timeout = 60          # seconds
    recycler_timeout_increment = 30        # seconds for each GiB
    recycler_pod_template = "/etc/volumehost/recycler.yaml"
    attributes = { base_dir = "/srv/volumes" }

``VOLUMEHOST_CONFIG`` names the file; otherwise it is ``config.toml`` in the root directory, which may be absent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from volumehost.errors import ManifestError
from volumehost.hosts.layout import Layout
from volumehost.spec import VolumeConfig

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

CONFIG_VARIABLE = "VOLUMEHOST_CONFIG"

_KNOWN: dict[str, type] = {
    "provisioning_enabled": bool,
    "recycler_minimum_timeout": int,
    "recycler_timeout_increment": int,
    "recycler_pod_template": str,
    "attributes": dict,
}


class HostConfig:
    """The configuration of one host; read when the first plugin asks."""

    def __init__(self, path: str, *, required: bool = False) -> None:
        self._path = path
        self._required = required
        self._plugins: Mapping[str, Any] | None = None

    @classmethod
    def for_root_dir(cls, root_dir: str, environment: Mapping[str, str] | None = None) -> HostConfig:
        """The file that the environment names, else the one in the root directory."""
        named = (os.environ if environment is None else environment).get(CONFIG_VARIABLE, "")
        return cls(named, required=True) if named else cls(Layout(root_dir).config_file())

    def volume_config(self, plugin_name: str) -> VolumeConfig:
        """What the plugin is told; the defaults where the file says nothing.

        :raises ManifestError: the file cannot be read, or says something about this plugin that has no meaning.
        """
        if self._plugins is None:
            self._plugins = self._read()
        table = self._plugins.get(plugin_name, {})
        self._check(plugin_name, table)
        template = table.get("recycler_pod_template")
        return VolumeConfig(
            recycler_pod_template=_read_pod(template) if template else None,
            recycler_minimum_timeout=table.get("recycler_minimum_timeout", 60),
            recycler_timeout_increment=table.get("recycler_timeout_increment", 30),
            other_attributes={str(key): str(value) for key, value in table.get("attributes", {}).items()},
            provisioning_enabled=table.get("provisioning_enabled", False),
        )

    def _read(self) -> Mapping[str, Any]:
        try:
            with open(self._path, "rb") as file:
                import tomllib

                plugins = tomllib.load(file).get("plugins", {})
        except FileNotFoundError as error:
            if not self._required:
                return {}
            raise self._error("there is no such file", f"unset {CONFIG_VARIABLE} or name a file that exists") from error
        except (OSError, ValueError) as error:
            raise self._error(str(error), "mend the file") from error
        if not isinstance(plugins, dict) or not all(isinstance(table, dict) for table in plugins.values()):
            raise self._error("plugins: must be a table of tables, one for each plugin", "mend the file")
        return plugins

    def _check(self, plugin_name: str, table: Mapping[str, Any]) -> None:
        for key, value in table.items():
            where = f'plugins."{plugin_name}".{key}'
            expected = _KNOWN.get(key)
            if expected is None:
                raise self._error(f"{where}: unknown; known are {', '.join(sorted(_KNOWN))}", "mend or remove it")
            if not isinstance(value, expected) or (expected is int and not _is_seconds(value)):
                kind = "a number of seconds" if expected is int else f"a {expected.__name__}"
                raise self._error(f"{where}: must be {kind}, is {value!r}", "mend the file")

    def _error(self, reason: str, hint: str) -> ManifestError:
        return ManifestError(reason, source=self._path, action=f"reading the configuration {self._path}", hint=hint)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_pod(path: str) -> Pod:
    """The recycler pod template (UTIL-26)."""
    from volumehost.api.manifests import load_manifests
    from volumehost.api.objects import Pod

    objects = [manifest.obj for manifest in load_manifests([path])]
    if len(objects) != 1 or not isinstance(objects[0], Pod):
        raise ManifestError("must hold exactly one Pod", source=path, action="reading the recycler pod template")
    return objects[0]
