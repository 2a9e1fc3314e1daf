"""The plugin ``kubernetes.io/csi``: one plugin that fronts every CSI driver (CSI-NAME-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from volumehost import Spec, hookimpl
from volumehost.errors import OperationNotSupportedError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

PLUGIN_NAME = "kubernetes.io/csi"


class CSIPlugin:
    """Fronts CSI drivers."""

    @hookimpl
    def get_plugin_name(self) -> str:
        """``kubernetes.io/csi``."""
        return PLUGIN_NAME

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """Not yet."""
        del spec
        _not_yet()

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        """Not yet."""
        del spec
        return False

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> NoReturn:
        """Not yet."""
        del spec, pod
        _not_yet()

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> NoReturn:
        """Not yet."""
        del volume_name, pod_uid
        _not_yet()

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> NoReturn:
        """Not yet."""
        del volume_name, mount_path
        _not_yet()


def _not_yet() -> NoReturn:
    raise OperationNotSupportedError("not built yet")
