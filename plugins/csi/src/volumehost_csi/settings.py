"""What the administrator can set for the plugin, in the host's configuration file.

::

    [plugins."kubernetes.io/csi"]
    # seconds
    attributes = { rpc_timeout = "120", create_timeout = "300", attach_timeout = "120", start_timeout = "60" }
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from volumehost.errors import ManifestError
from volumehost_csi.plugin import PLUGIN_NAME

if TYPE_CHECKING:
    from volumehost.volume_host import VolumeHost


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds: the deadline of each RPC (CSI-CLI-05, improved), of those that create a volume or a snapshot,
    which may copy data, how long to wait until a volume is attached or detached (CSI-ATT-05), and for an installed
    driver to start when a volume needs it.
    """

    rpc_timeout: float = 120.0
    create_timeout: float = 300.0
    attach_timeout: float = 120.0
    start_timeout: float = 60.0

    @classmethod
    def of(cls, host: VolumeHost) -> Settings:
        """Those that the host has for this plugin.

        :raises ManifestError: one is unknown, or is not a number of seconds.
        """
        attributes = host.get_volume_config(PLUGIN_NAME).other_attributes
        known = {field.name for field in fields(cls)}
        return cls(**{name: _seconds(name, text, known) for name, text in attributes.items()})


def _seconds(name: str, text: str, known: set[str]) -> float:
    action = f"reading the configuration of the plugin {PLUGIN_NAME}"
    if name not in known:
        raise ManifestError(f"attributes.{name}: unknown; known are {', '.join(sorted(known))}", action=action)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise ManifestError(f"attributes.{name}: must be a positive number of seconds, is {text!r}", action=action)
    return seconds
