"""What may change of a pod's spec once it is there: hardly anything; its node is given by a binding alone."""

from __future__ import annotations

from volumehost.testing.api_server.failures import invalid
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.storage import Document

_FREE = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
_FORBIDDEN = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(resource: Resource, pod: Document, old: Document) -> None:
    """Refuse a change of what is fixed. Both pods have their defaults.

    :raises StatusError: it changes (422).
    """
    new_spec, old_spec = pod.get("spec", {}), old.get("spec", {})
    new_fixed, old_fixed = _fixed(new_spec), _fixed(old_spec)
    changed = [key for key in {**old_fixed, **new_fixed} if new_fixed.get(key) != old_fixed.get(key)]
    if changed:
        told = ", ".join(f"spec.{key}" for key in changed)  # where a real server shows a whole diff
        raise invalid(resource, old["metadata"]["name"], [("spec", f"{_FORBIDDEN}\n  {told}")])
    added = new_spec.get("tolerations", [])
    if any(toleration not in added for toleration in old_spec.get("tolerations", ())):
        raise invalid(resource, old["metadata"]["name"], [("spec.tolerations", _FORBIDDEN)])
    gates = old_spec.get("schedulingGates", [])
    if any(gate not in gates for gate in new_spec.get("schedulingGates", ())):
        text = "Forbidden: only deletion is allowed, but found new scheduling gates"
        raise invalid(resource, old["metadata"]["name"], [("spec.schedulingGates", text)])


def _fixed(spec: Document) -> Document:
    kept = {key: value for key, value in spec.items() if key not in _FREE}
    for field in ("containers", "initContainers"):
        if field in kept:
            kept[field] = [
                {key: value for key, value in container.items() if key != "image"} for container in kept[field]
            ]
    return kept
