"""The messages of the kubelet's plugin registration v1 by proto name: ``registration.PluginInfo`` (CSI-RAPI-03)."""

from __future__ import annotations

from typing import Any

from volumehost_csi_kit import _pool

_FILE = "registration.proto"


def __getattr__(name: str) -> Any:
    try:
        found = globals()[name] = _pool.load(_FILE, name)
    except AttributeError as error:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name) from error
    return found


def __dir__() -> list[str]:
    return _pool.names(_FILE)
