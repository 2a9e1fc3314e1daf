"""How large a volume may become and which huge pages it uses: from pod, volume and node (EMPTYDIR-10 to -13, -30)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from volumehost.errors import SpecError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.objects import Container, EmptyDirVolumeSource, Pod, ResourceList, ResourceRequirements

DEFAULT_MEDIUM = ""
MEMORY = "Memory"
HUGE_PAGES = "HugePages"
HUGE_PAGES_PREFIX = "HugePages-"

_HUGE_PAGES_RESOURCE = "hugepages-"


def is_huge_pages(medium: str) -> bool:
    """``HugePages`` or ``HugePages-<size>``."""
    return medium == HUGE_PAGES or medium.startswith(HUGE_PAGES_PREFIX)


def size_limit(source: EmptyDirVolumeSource) -> int:
    """The volume's own limit in bytes; 0 when it has none (EMPTYDIR-12)."""
    return _bytes(source.size_limit) if source.size_limit is not None else 0


def memory_size(source: EmptyDirVolumeSource, pod: Pod, allocatable: Mapping[str, int]) -> int:
    """Bytes that a volume in memory may hold: the least of volume limit, pod limit and node (EMPTYDIR-10 to -13).

    :raises VolumeHostError: the node's allocatable memory is not known.
    """
    return bounded_size(size_limit(source), pod, allocatable)


def bounded_size(limit: int, pod: Pod, allocatable: Mapping[str, int]) -> int:
    """The limit (0 for none), but never more than the pod's memory limit and the node's allocatable memory."""
    size = allocatable.get("memory", 0)
    if size <= 0:
        raise VolumeHostError(
            "the node's allocatable memory is not known",
            action=f"working out the size of a volume in memory for pod {pod.metadata.name}",
            subject=pod.metadata.name,
        )
    of_pod = pod_memory_limit(pod)
    if 0 < of_pod <= size:
        size = of_pod
    return limit if 0 < limit <= size else size


def pod_memory_limit(pod: Pod) -> int:
    """Bytes of the pod's memory limit; 0 when it is not limited (EMPTYDIR-11).

    The pod's own limit, else the sum over its containers when each of them has one. Init containers run before the
    others, one at a time, so the largest counts; those that keep running (restartPolicy Always) are added up.
    """
    spec = pod.spec
    own = _limit(spec.resources)
    if own <= 0:
        containers = [*spec.init_containers, *spec.containers]
        if not containers or any(_limit(container.resources) <= 0 for container in containers):
            return 0
    overhead = _bytes(spec.overhead.get("memory", "0"))
    if own > 0:
        return own + overhead
    sidecars = 0
    peak = 0
    for container in spec.init_containers:
        limit = _limit(container.resources)
        if container.restart_policy == "Always":
            sidecars += limit
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + limit)
    running = sidecars + sum(_limit(container.resources) for container in spec.containers)
    return max(running, peak) + overhead


def page_size(medium: str, pod: Pod) -> str:
    """The page size to mount with, as canonical quantity text such as ``2Mi`` (EMPTYDIR-30, -31).

    :raises SpecError: the pod does not ask for huge pages (of that size), asks for several sizes where the medium
        leaves it open, or the medium's size is no quantity.
    """
    requested = set(_huge_page_sizes(pod))
    if medium == HUGE_PAGES:
        if len(requested) > 1:
            raise _refused(
                "medium: HugePages can't be used if container requests multiple huge page sizes", pod, _sized(requested)
            )
        if requested:
            return requested.pop()
    else:
        wanted = _canonical(medium.removeprefix(HUGE_PAGES_PREFIX), medium, pod)
        if wanted in requested:
            return wanted
    raise _refused(
        f"medium {medium}: hugePages storage requested, but there is no resource request for huge pages",
        pod,
        "add one, such as hugepages-2Mi, to the resources of a container",
    )


def _huge_page_sizes(pod: Pod) -> Iterable[str]:
    spec = pod.spec
    holders: list[ResourceRequirements | None] = [spec.resources]
    containers: list[Container] = [*spec.init_containers, *spec.containers]
    holders.extend(container.resources for container in containers)
    for resources in holders:
        for name, amount in _requests(resources).items():
            if name.startswith(_HUGE_PAGES_RESOURCE) and _bytes(amount) > 0:
                yield _canonical(name.removeprefix(_HUGE_PAGES_RESOURCE), name, pod)


def _requests(resources: ResourceRequirements | None) -> ResourceList:
    """Requests; a limit without a request is one, as the API server's defaulting makes it."""
    return {**resources.limits, **resources.requests} if resources is not None else {}


def _limit(resources: ResourceRequirements | None) -> int:
    return _bytes(resources.limits.get("memory", "0")) if resources is not None else 0


@functools.lru_cache(maxsize=256)
def _bytes(text: str) -> int:
    from volumehost.sdk import parse_quantity

    return parse_quantity(text).value()


def _canonical(text: str, whole: str, pod: Pod) -> str:
    from volumehost.sdk import parse_quantity

    try:
        return str(parse_quantity(text))
    except ValueError as error:
        raise _refused(f"{whole}: {error}", pod, "the size of huge pages is a quantity such as 2Mi or 1Gi") from error


def _sized(sizes: Iterable[str]) -> str:
    return "use one of the media " + ", ".join(f"HugePages-{size}" for size in sorted(sizes))


def _refused(reason: str, pod: Pod, hint: str) -> SpecError:
    return SpecError(
        reason, action=f"preparing huge pages for pod {pod.metadata.name}", subject=pod.metadata.name, hint=hint
    )
