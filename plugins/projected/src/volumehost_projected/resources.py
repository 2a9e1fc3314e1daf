"""What a container of a pod asks for and is limited to, as text (PAYLOAD-34)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from volumehost.errors import SpecError
from volumehost.sdk import parse_quantity

if TYPE_CHECKING:
    from volumehost.api.objects import Container, Pod, ResourceFieldSelector

#: Where a container has no limit, what the node has is the limit.
_OF_THE_NODE = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES = "hugepages-"


def resource_of(pod: Pod, selector: ResourceFieldSelector, allocatable: Callable[[], Mapping[str, int]]) -> str:
    """The amount divided by the divisor, rounded up.

    :param allocatable: what the node has, cpu in thousandths; asked only where it matters.
    :raises SpecError: there is no such container, or volumes have no such resource.
    """
    container = _container(pod, selector.container_name)
    which, _, name = selector.resource.partition(".")
    if which not in {"limits", "requests"} or not (name in _OF_THE_NODE or name.startswith(_HUGE_PAGES)):
        raise SpecError(f"unsupported container resource : {selector.resource}")
    resources = container.resources
    amounts: Mapping[str, str] = {}
    if resources is not None:
        # Who has a limit alone requests as much: so an API server fills it in.
        amounts = resources.limits if which == "limits" else {**resources.limits, **resources.requests}
    amount = _amount(amounts.get(name), name)
    if amount == 0 and which == "limits" and name in _OF_THE_NODE:
        amount = allocatable().get(name, 0)
    divisor = _amount(selector.divisor, name) or (1000 if name == "cpu" else 1)
    return str(-(-amount // divisor))


def _amount(text: str | None, name: str) -> int:
    """Thousandths of a processor, bytes of anything else; 0 when nothing is said."""
    if text is None:
        return 0
    quantity = parse_quantity(text)
    return quantity.milli_value() if name == "cpu" else quantity.value()


def _container(pod: Pod, name: str) -> Container:
    for container in (*pod.spec.containers, *pod.spec.init_containers, *pod.spec.ephemeral_containers):
        if container.name == name:
            return container
    raise SpecError(f"container {name} not found")
