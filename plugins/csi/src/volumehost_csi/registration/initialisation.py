"""Has the node's CSINode made in the background, the node not ready until then, and repairs it (CSI-NIM-01, BR-78)."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING

from volumehost.errors import StoreError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.volume_host import KubeletVolumeHost
    from volumehost_csi.registration.node_info import NodeInfoManager

logger = logging.getLogger(__name__)

#: Seconds: the first pause after a failure, its factor, and the longest; an API that does not answer is asked often.
FIRST_PAUSE = 0.03
FACTOR = 8.0
LONGEST_PAUSE = 15.0
UNREACHABLE_PAUSE = 1.0
_JITTER = 0.1

#: How often it is looked whether the objects still say what they should, in seconds: in a cluster, where they are kept
#: in memory, and where nobody but this host has a store.
REPAIR_SECONDS = 5.0
STANDALONE_REPAIR_SECONDS = 60.0


class CSINodeInitialisation:
    """Tries until it works or is stopped; never ends the process (CSI-NIM-02 improved)."""

    def __init__(
        self, host: KubeletVolumeHost, node_info: NodeInfoManager, *, repair_seconds: float = REPAIR_SECONDS
    ) -> None:
        """:param repair_seconds: how often it is looked whether the objects still say what they should."""
        self._host = host
        self._repair_seconds = repair_seconds
        self._node_info = node_info
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Mark the node as not ready and begin; returns at once, may be called again."""
        if self._thread is not None:
            return
        self._host.set_kubelet_error(_not_ready("it was not tried yet"))
        self._thread = threading.Thread(target=self._run, name="volumehost-csinode", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Try no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._stop.is_set():
            try:
                self._node_info.initialize()
            except Exception as error:  # noqa: BLE001 - the node must live with whatever an API client raises
                logger.warning("the CSINode could not be made or checked, it is tried again: %s", error)
                self._host.set_kubelet_error(_not_ready(str(error)))
                longest = UNREACHABLE_PAUSE if isinstance(error, StoreError) else LONGEST_PAUSE
            else:
                self._host.set_kubelet_error(None)
                break
            pause = min(pause, longest)
            self._stop.wait(pause * (1 + random.uniform(0, _JITTER)))  # noqa: S311 - no secret
            pause *= FACTOR
        self._keep_right()

    def _keep_right(self) -> None:
        told = ""
        while not self._stop.wait(self._repair_seconds * (1 + random.uniform(0, _JITTER))):  # noqa: S311 - no secret
            try:
                self._node_info.repair()
            except Exception as error:  # noqa: BLE001 - as above
                log = logger.debug if str(error) == told else logger.warning
                told = str(error)
                log("the Node or the CSINode does not say what it should, it is tried again: %s", error)
                self._host.set_kubelet_error(_not_ready(told))
            else:
                if told:
                    self._host.set_kubelet_error(None)
                told = ""


def _not_ready(reason: str) -> VolumeHostError:
    return VolumeHostError(reason, action="initialising the CSINode of this node")
