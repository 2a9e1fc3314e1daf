"""What is counted of operations, and under which labels: the seam between the executor and the metrics room.

Whoever makes a manager hands in an :class:`OperationMetrics`; without one nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from volumehost.control.machinery.counting import ControlMetrics
from volumehost.node.state.identity import driver_in_name

if TYPE_CHECKING:
    from volumehost.node.operations.common import Operation
    from volumehost.node.state.actual import ActualState
    from volumehost.node.state.records import MountedVolume
    from volumehost.spec import Spec


class OperationLabels(NamedTuple):
    """Whose operation it was: the plugin's name for metrics (UTIL-14), and whether CSI migration translated it.

    ``unknown_directory``: it tears down what a restart found and no plugin could make a volume of (RECON-40).
    """

    plugin: str
    migrated: bool = False
    unknown_directory: bool = False


class OperationMetrics(ControlMetrics, Protocol):
    """Counts finished operations (METRIC-01, METRIC-03). Called on workers, several at a time; must be quick.

    Where the manager runs the control plane too, its controllers count with the same object.
    """

    def observe(self, operation: str, seconds: float, error: BaseException | None, labels: OperationLabels) -> None:
        """One run has ended; a run that found nothing to do counts as well.

        :param operation: a name of METRIC-02, such as ``volume_mount``.
        :param seconds: how long the run took.
        :param error: why it failed, None when it did not.
        """
        ...

    def mounted(self, seconds: float, labels: OperationLabels) -> None:
        """A volume is ready for its pod, ``seconds`` after the pod's wish was entered (MOUNTOP-12)."""
        ...


def full_plugin_name(plugin_name: str, spec: Spec | None) -> str:
    """The plugin's name for metrics: of a CSI volume with its driver, ``kubernetes.io/csi:<driver>`` (UTIL-14)."""
    if spec is None or spec.source() != "csi":
        return plugin_name
    holder: Any = spec.volume if spec.volume is not None else spec.persistent_volume
    source = holder.csi if spec.volume is not None else holder.spec.csi
    return f"{plugin_name}:{source.driver}" if source.driver else plugin_name


def full_name_of_mounted(mount: MountedVolume) -> str:
    """The same of what is mounted, of which the spec need not be known: a volume of a driver is named after that."""
    driver = driver_in_name(mount.plugin_name, mount.volume) if mount.spec is None else ""
    if driver:
        return f"{mount.plugin_name}:{driver}"
    return full_plugin_name(mount.plugin_name, mount.spec)


def labels_of(operation: Operation, actual: ActualState) -> OperationLabels:
    """The labels of an operation; a teardown without a spec has that of the volume, where a record gave it one."""
    key, spec = operation.key, operation.spec
    if spec is not None:
        return OperationLabels(full_plugin_name(operation.plugin_name, spec), spec.migrated)
    volume = actual.get_volume(key.volume)
    spec = volume.spec if volume is not None else None
    if spec is not None:
        return OperationLabels(full_plugin_name(operation.plugin_name, spec), spec.migrated)
    mount = actual.get_mount(key.volume, key.pod) if key.pod else None
    return OperationLabels(operation.plugin_name, unknown_directory=mount is not None and mount.from_directory)
