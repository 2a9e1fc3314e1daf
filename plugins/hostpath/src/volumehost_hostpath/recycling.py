"""The pod that empties a hostPath PersistentVolume; the host runs it, or scrubs in its stead (HOSTPATH-40)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from volumehost.errors import SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.spec import Spec, VolumeConfig


def recycler_pod(spec: Spec, config: VolumeConfig) -> Pod:
    """A pod of its own for this run: the template's first volume becomes the path, and it gets a deadline.

    :raises SpecError: the spec has no PersistentVolume with a hostPath source, or the template has no volume.
    """
    from volumehost.api.objects import HostPathVolumeSource, Volume
    from volumehost.sdk import parse_quantity, recycler_timeout, validate_recycler_pod_template

    persistent_volume = spec.persistent_volume
    if persistent_volume is None or persistent_volume.spec.host_path is None:
        raise SpecError(
            "spec.PersistentVolume.Spec.HostPath is nil", action="recycling a hostPath volume", subject=spec.name()
        )
    # The template is shared between all runs, so each gets its own copy (HOSTPATH-41).
    pod = copy.deepcopy(config.recycler_pod_template or _default_template())
    validate_recycler_pod_template(pod)
    pod.spec.volumes[0] = Volume(
        name=pod.spec.volumes[0].name, host_path=HostPathVolumeSource(path=persistent_volume.spec.host_path.path)
    )
    capacity = persistent_volume.spec.capacity.get("storage", "0")
    pod.spec.active_deadline_seconds = recycler_timeout(config, parse_quantity(capacity).value())
    return pod


def _default_template() -> Pod:
    from volumehost.api.convert import to_object
    from volumehost.api.objects import Pod
    from volumehost.sdk import recycler_pod_manifest

    return to_object(Pod, recycler_pod_manifest())
