"""Every message and enum of CSI 1.13 by its proto name, made when it is first used: ``csi.NodeStageVolumeRequest``.

They behave as classes that protoc generates; fields of protobuf's own types are filled with ``csi.Timestamp``,
``csi.BoolValue`` and ``csi.Int64Value``. The type stub ``csi.pyi`` has them all.
"""

from __future__ import annotations

from typing import Any

from volumehost_csi_kit import _pool

_FILE = "csi.proto"


def __getattr__(name: str) -> Any:
    try:
        found = globals()[name] = _pool.load(_FILE, name)
    except AttributeError as error:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name) from error
    return found


def __dir__() -> list[str]:
    return _pool.names(_FILE)
