"""``volumehost expand``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import claim_names
from volumehost.cli.managing import timeout_option
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.sizes import SizeType
from volumehost.cli.wish import Wish, bring_about, existing_store
from volumehost.errors import FailedPreconditionError, InfeasibleError, ObjectNotFoundError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod
    from volumehost.sdk.quantity import Quantity

_INFEASIBLE = ("ControllerResizeInfeasible", "NodeResizeInfeasible")


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost expand data 20Gi"),
        ("Ask for it and do not wait", "volumehost expand data 20Gi --no-wait"),
    ),
)
@click.argument("claim", metavar="PVC", type=NameType(), shell_complete=claim_names)
@click.argument("size", type=SizeType())
@click.option("--wait/--no-wait", default=True, help="Wait until the volume has the size.  [default: wait]")
@timeout_option("How long to wait.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def expand(settings: Settings, claim: str, size: Quantity, *, wait: bool, timeout: float) -> None:
    """Give a claim's volume a larger size.

    SIZE is what the claim has in the end, such as 20Gi. The storage driver grows the volume first; where the volume is
    mounted here, its filesystem is grown after that, while it is used. A volume that is not mounted gets its
    filesystem grown with the next mount. A volume cannot shrink.
    """
    name = claim.removeprefix("pvc/").removeprefix("persistentvolumeclaim/")
    with existing_store(settings, f"claim {settings.namespace}/{name}") as store:
        found = _ask(store, name, settings.namespace, size)
        if wait:
            bring_about(settings, store, _wish(store, found, size, in_cluster=settings.cluster), timeout)
        _print(settings, _claim(store, found), size)


def _ask(store: ApiClient, name: str, namespace: str, size: Quantity) -> PersistentVolumeClaim:
    """Write the wish into the claim, when the claim can grow to that size.

    :raises FailedPreconditionError: it cannot.
    """
    from volumehost.api.objects import PersistentVolumeClaim
    from volumehost.control.expanding.expand_decision import size_of
    from volumehost.control.expanding.expand_refusal import expansion_refusal

    claim = store.get(PersistentVolumeClaim, name, namespace)
    action = f"expanding claim {namespace}/{name}"
    if claim.status.phase != "Bound":
        raise FailedPreconditionError("it is not bound to a volume", action=action, subject=name)
    granted = size_of(claim.status.capacity.get("storage"))
    if size < granted:
        raise FailedPreconditionError(
            f"it has {granted} already, and a volume cannot shrink to {size}",
            action=action,
            subject=name,
            hint="make a smaller claim and copy the data",
        )
    if size == size_of(claim.spec.resources.requests.get("storage")):
        return claim
    if size == granted:
        raise FailedPreconditionError(
            f"it has {granted} already, and {claim.spec.resources.requests['storage']} were asked for since",
            action=action,
            subject=name,
            hint="what was asked for can be taken back to any size above what the claim has",
        )
    refusal = expansion_refusal(store, claim)
    if refusal is not None:
        raise refusal
    patch = {
        "metadata": {"uid": claim.metadata.uid},
        "spec": {"resources": {"requests": {"storage": str(size)}}},
    }
    return store.patch(PersistentVolumeClaim, name, patch, namespace)


def _wish(store: ApiClient, claim: PersistentVolumeClaim, size: Quantity, *, in_cluster: bool) -> Wish:
    label = f"{claim.metadata.namespace}/{claim.metadata.name}"

    def is_done() -> bool:
        now = _claim(store, claim)
        return _has(now, size) or (_waits_for_node(now) and not _mounted_pods(store, now, in_cluster=in_cluster))

    def problem() -> VolumeHostError | None:
        now = _claim(store, claim)
        kinds = {"NodeResizeError"} if _waits_for_node(now) else {"ControllerResizeError", "NodeResizeError"}
        error = next((each for each in now.status.conditions if each.type in kinds), None)
        if error is None:
            return None
        kind = InfeasibleError if _state(now) in _INFEASIBLE else FailedPreconditionError
        return kind(error.message, action=f"expanding claim {label}", subject=claim.metadata.name)

    return Wish(
        f"claim {label} to have {size}",
        is_done,
        lambda: [_claim(store, claim)],
        problem,
        lambda: _mounted_pods(store, claim, in_cluster=in_cluster),
    )


def _claim(store: ApiClient, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The claim as it is now.

    :raises ObjectNotFoundError: it is gone.
    """
    now = store.get(type(claim), claim.metadata.name, claim.metadata.namespace)
    if now.metadata.uid != claim.metadata.uid:
        raise ObjectNotFoundError("the claim was deleted meanwhile", subject=claim.metadata.name)
    return now


def _state(claim: PersistentVolumeClaim) -> str:
    return claim.status.allocated_resource_statuses.get("storage", "")


def _has(claim: PersistentVolumeClaim, size: Quantity) -> bool:
    from volumehost.control.expanding.expand_decision import size_of

    return size_of(claim.status.capacity.get("storage")) >= size


def _waits_for_node(claim: PersistentVolumeClaim) -> bool:
    return _state(claim) in {"NodeResizePending", "NodeResizeInProgress"}


def _mounted_pods(store: ApiClient, claim: PersistentVolumeClaim, *, in_cluster: bool) -> list[Pod]:
    """The pods that have the claim mounted, here or on a node of the cluster, so that its filesystem is grown now."""
    from volumehost.api.objects import Pod
    from volumehost.control.binding.scheduling import claims_of
    from volumehost.node.populating.pod_objects import FINALIZER
    from volumehost.node.populating.pods import workload_has_ended

    pods = store.list(Pod, claim.metadata.namespace).items
    users = [pod for pod in pods if claim.metadata.name in claims_of(pod)]
    if in_cluster:
        return [pod for pod in users if pod.spec.node_name and not workload_has_ended(pod)]
    return [pod for pod in users if FINALIZER in pod.metadata.finalizers]


def _print(settings: Settings, claim: PersistentVolumeClaim, size: Quantity) -> None:
    name = claim.metadata.name
    if settings.output == "table":
        click.echo(f"persistentvolumeclaim/{name} {_outcome(claim, size)}")
    elif settings.output == "name":
        click.echo(f"persistentvolumeclaim/{name}")
    else:
        from volumehost.cli.output import echo_data

        echo_data(_data(claim, size), settings.output)


def _outcome(claim: PersistentVolumeClaim, size: Quantity) -> str:
    if _has(claim, size):
        return f"has {claim.status.capacity['storage']}"
    if _waits_for_node(claim):
        return f"grown to {size}; its filesystem follows when it is mounted"
    return f"asked for {size}"


def _data(claim: PersistentVolumeClaim, size: Quantity) -> dict[str, Any]:
    return {
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "requested": str(size),
        "capacity": claim.status.capacity.get("storage", ""),
        "state": _state(claim),
    }
