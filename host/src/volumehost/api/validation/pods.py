"""Validation of pods, as far as volumes are concerned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from volumehost.api.objects import Pod, PodSecurityContext, PodSpec, Volume
from volumehost.api.validation.containers import containers
from volumehost.api.validation.names import dns_label, dns_subdomain
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.quantities import resource_list
from volumehost.api.validation.sources import one_source

FS_GROUP_CHANGE_POLICIES = ("Always", "OnRootMismatch")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
_SELINUX_CHANGE_POLICIES = ("MountOption", "Recursive")
_MAX_ID = 2**31 - 1


def validate_pod(pod: Pod, problems: Problems) -> None:
    """Volumes, the containers that use them, and the identities that own them."""
    spec = pod.spec
    declared = _volumes(spec.volumes, pod.metadata.name, problems)
    taken: set[str] = set()
    if not spec.containers:
        problems.required("spec.containers", "at least one container is required: it is what uses the volumes")
    containers(spec.containers, "spec.containers", declared, taken, problems)
    containers(spec.init_containers, "spec.initContainers", declared, taken, problems)
    containers(spec.ephemeral_containers, "spec.ephemeralContainers", declared, taken, problems)
    if spec.restart_policy and spec.restart_policy not in RESTART_POLICIES:
        problems.not_supported("spec.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    for name, value in (("nodeName", spec.node_name), ("serviceAccountName", spec.service_account_name)):
        reason = dns_subdomain(value) if value else ""
        if reason:
            problems.invalid(f"spec.{name}", value, reason)
    if spec.security_context is not None:
        _security_context(spec.security_context, problems)
    if spec.resources is not None:
        resource_list(spec.resources.limits, "spec.resources.limits", problems)
        resource_list(spec.resources.requests, "spec.resources.requests", problems)


def _volumes(volumes: Sequence[Volume], pod_name: str, problems: Problems) -> Mapping[str, Volume]:
    """Check each volume; returns those with a name, by name."""
    made = {f"{pod_name}-{volume.name}" for volume in volumes if volume.ephemeral is not None}
    declared: dict[str, Volume] = {}
    for index, volume in enumerate(volumes):
        path = f"spec.volumes[{index}]"
        if not volume.name:
            problems.required(f"{path}.name")
        else:
            reason = dns_label(volume.name)
            if reason:
                problems.invalid(f"{path}.name", volume.name, reason)
            if volume.name in declared:
                problems.duplicate(f"{path}.name", volume.name)
            declared.setdefault(volume.name, volume)
        one_source(volume, path, problems)
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in made:
            problems.invalid(
                f"{path}.persistentVolumeClaim.claimName",
                claim.claim_name,
                "must not reference a PVC that gets created for an ephemeral volume",
            )
        if volume.ephemeral is not None and volume.name:
            reason = dns_subdomain(f"{pod_name}-{volume.name}")
            if reason:
                problems.invalid(f"{path}.name", volume.name, f"the claim {pod_name}-{volume.name} {reason}")
    return declared


def _security_context(context: PodSecurityContext, problems: Problems) -> None:
    path = "spec.securityContext"
    ids = [
        (f"{path}.fsGroup", context.fs_group),
        (f"{path}.runAsUser", context.run_as_user),
        (f"{path}.runAsGroup", context.run_as_group),
        *((f"{path}.supplementalGroups[{index}]", gid) for index, gid in enumerate(context.supplemental_groups)),
    ]
    for field, number in ids:
        if number is not None and not 0 <= number <= _MAX_ID:
            problems.invalid(field, number, f"must be between 0 and {_MAX_ID}, inclusive")
    policy = context.fs_group_change_policy
    if policy is not None and policy not in FS_GROUP_CHANGE_POLICIES:
        problems.not_supported(f"{path}.fsGroupChangePolicy", policy, FS_GROUP_CHANGE_POLICIES)
    change = context.se_linux_change_policy
    if change is not None and change not in _SELINUX_CHANGE_POLICIES:
        problems.not_supported(f"{path}.seLinuxChangePolicy", change, _SELINUX_CHANGE_POLICIES)


def validate_pod_change(pod: Pod, old: Pod, problems: Problems) -> None:
    """A pod's spec is fixed but for a few fields; a node name can be given once."""
    if old.spec.node_name and pod.spec.node_name != old.spec.node_name:
        problems.forbidden("spec.nodeName", f"cannot be changed: the pod is on {old.spec.node_name}")
    kept = len(old.spec.ephemeral_containers)
    if pod.spec.ephemeral_containers[:kept] != old.spec.ephemeral_containers:
        problems.forbidden("spec.ephemeralContainers", "existing ephemeral containers may not be changed or removed")
    new_fixed, old_fixed = _fixed_part(pod.spec), _fixed_part(old.spec)
    if new_fixed == old_fixed:
        return
    for name, wire in zip(PodSpec.__struct_fields__, PodSpec.__struct_encode_fields__, strict=True):
        if getattr(new_fixed, name) != getattr(old_fixed, name):
            problems.forbidden(f"spec.{wire}", "cannot be changed after creation: delete the pod and create it again")


def _fixed_part(spec: PodSpec) -> PodSpec:
    """The spec without what may change: images, resources, deadlines, tolerations, the node, debug containers."""
    blank = msgspec.structs.replace
    return blank(
        spec,
        containers=[blank(container, image="", resources=None) for container in spec.containers],
        init_containers=[blank(container, image="", resources=None) for container in spec.init_containers],
        ephemeral_containers=[],
        resources=None,
        node_name="",
        active_deadline_seconds=None,
        termination_grace_period_seconds=None,
        tolerations=[],
        scheduling_gates=[],
    )
