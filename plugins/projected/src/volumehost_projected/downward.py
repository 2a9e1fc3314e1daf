"""Files about the pod itself: its fields and the resources of its containers (PAYLOAD-30)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from volumehost.errors import SpecError, VolumeHostError
from volumehost.sdk import FileProjection
from volumehost_projected.fields import field_of
from volumehost_projected.resources import resource_of

if TYPE_CHECKING:
    from volumehost.api.objects import DownwardAPIVolumeFile, Pod
    from volumehost.volume_host import VolumeHost


def downward_api_files(
    host: VolumeHost, pod: Pod, items: Sequence[DownwardAPIVolumeFile], mode: int
) -> dict[str, FileProjection]:
    """One file for each item; ``mode`` is that of items without one of their own.

    :raises SpecError: values cannot be had; each of them is named.
    """
    files: dict[str, FileProjection] = {}
    problems: list[str] = []
    for item in items:
        try:
            value = _value(host, pod, item)
        except VolumeHostError as error:
            problems.append(str(error))
        else:
            files[item.path] = FileProjection(value.encode(), mode if item.mode is None else item.mode)
    if problems:
        raise SpecError("; ".join(problems), subject=f"{pod.metadata.namespace}/{pod.metadata.name}")
    return files


def _value(host: VolumeHost, pod: Pod, item: DownwardAPIVolumeFile) -> str:
    if item.field_ref is not None:
        return field_of(pod, item.field_ref.field_path)
    if item.resource_field_ref is not None:
        return resource_of(pod, item.resource_field_ref, host.get_node_allocatable)
    raise SpecError(f"the item for {item.path} has neither fieldRef nor resourceFieldRef")
