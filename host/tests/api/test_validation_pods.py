"""Pods: volumes, their names and sources, the containers that use them, identities, changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[[Any], dict[str, str]]
Change = Callable[..., Any]

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [{"name": "main", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "hostPath": {"path": "/srv"}}],
    },
}
EPHEMERAL = {
    "volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
}


def test_an_ordinary_pod_is_fine(problems_of: Check) -> None:
    assert problems_of(POD) == {}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"spec/volumes/0/name": None}, "spec.volumes[0].name", "Required value"),
        ({"spec/volumes/0/name": "Data"}, "spec.volumes[0].name", "Invalid value: 'Data'"),
        ({"spec/volumes/0/name": "a.b"}, "spec.volumes[0].name", "Invalid value"),
        ({"spec/volumes/0/name": "../up"}, "spec.volumes[0].name", "Invalid value"),
        ({"spec/volumes/0/name": "x" * 64}, "spec.volumes[0].name", "no more than 63"),
        ({"spec/volumes/1": {"name": "data", "emptyDir": {}}}, "spec.volumes[1].name", "Duplicate value: 'data'"),
        ({"spec/volumes/0/hostPath": None}, "spec.volumes[0]", "Required value: must specify a volume type"),
        (
            {"spec/volumes/0/emptyDir": {}},
            "spec.volumes[0].emptyDir",
            "Forbidden: may not specify more than 1 volume type",
        ),
        ({"spec/containers": []}, "spec.containers", "Required value"),
        ({"spec/containers/0/name": None}, "spec.containers[0].name", "Required value"),
        ({"spec/containers/0/name": "No"}, "spec.containers[0].name", "Invalid value"),
        ({"spec/initContainers": [{"name": "main"}]}, "spec.initContainers[0].name", "Duplicate value: 'main'"),
        ({"spec/restartPolicy": "Sometimes"}, "spec.restartPolicy", "Unsupported value: 'Sometimes'"),
        ({"spec/nodeName": "Not/A/Node"}, "spec.nodeName", "Invalid value"),
        ({"spec/serviceAccountName": "../x"}, "spec.serviceAccountName", "Invalid value"),
        ({"spec/securityContext": {"fsGroup": -1}}, "spec.securityContext.fsGroup", "between 0 and 2147483647"),
        ({"spec/securityContext": {"runAsUser": 2**31}}, "spec.securityContext.runAsUser", "between 0 and"),
        (
            {"spec/securityContext": {"supplementalGroups": [5, -5]}},
            "spec.securityContext.supplementalGroups[1]",
            "between",
        ),
        (
            {"spec/securityContext": {"fsGroupChangePolicy": "Never"}},
            "spec.securityContext.fsGroupChangePolicy",
            "Unsupported",
        ),
        (
            {"spec/securityContext": {"seLinuxChangePolicy": "No"}},
            "spec.securityContext.seLinuxChangePolicy",
            "Unsupported",
        ),
        ({"spec/resources": {"limits": {"memory": "1K"}}}, "spec.resources.limits[memory]", "small k"),
        (
            {"spec/containers/0/resources": {"requests": {"cpu": "-1"}}},
            "spec.containers[0].resources.requests[cpu]",
            "greater than or equal to 0",
        ),
    ],
)
def test_pod(problems_of: Check, changed: Change, changes: Any, field: str, message: str) -> None:
    found = problems_of(changed(POD, changes))
    assert field in found
    assert message in found[field]
    # Nothing else may be wrong, but for mounts that lost their volume.
    assert {other for other in found if "volumeMounts" not in other} == {field}


def test_all_problems_are_told_at_once(problems_of: Check, changed: Change) -> None:
    found = problems_of(
        changed(POD, {"metadata/name": "Web", "spec/volumes/0/hostPath/path": "", "spec/containers/0/name": None})
    )
    assert set(found) == {"metadata.name", "spec.volumes[0].hostPath.path", "spec.containers[0].name"}


# --- containers --------------------------------------------------------------------------------------------

MOUNT = "spec/containers/0/volumeMounts/0"
MOUNT_FIELD = "spec.containers[0].volumeMounts[0]"


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({f"{MOUNT}/name": None}, "name", "Required value"),
        ({f"{MOUNT}/name": "other"}, "name", "Not found: 'other'"),
        ({f"{MOUNT}/mountPath": None}, "mountPath", "Required value"),
        ({f"{MOUNT}/mountPath": "/a:b"}, "mountPath", "must not contain ':'"),
        ({f"{MOUNT}/mountPath": "/a\0b"}, "mountPath", "NUL"),
        ({f"{MOUNT}/mountPath": "/" + "x" * 5000}, "mountPath", "Too long"),
        ({f"{MOUNT}/subPath": "/abs"}, "subPath", "must be a relative path"),
        ({f"{MOUNT}/subPath": "a/../../b"}, "subPath", "must not contain '..'"),
        ({f"{MOUNT}/subPathExpr": "../$(X)"}, "subPathExpr", "must not contain '..'"),
        ({f"{MOUNT}/subPath": "a", f"{MOUNT}/subPathExpr": "b"}, "subPathExpr", "mutually exclusive"),
        ({f"{MOUNT}/recursiveReadOnly": "Enabled"}, "recursiveReadOnly", "when readOnly is true"),
        ({f"{MOUNT}/recursiveReadOnly": "IfPossible"}, "recursiveReadOnly", "when readOnly is true"),
        ({f"{MOUNT}/recursiveReadOnly": "Yes"}, "recursiveReadOnly", "Unsupported value"),
        (
            {
                f"{MOUNT}/recursiveReadOnly": "Enabled",
                f"{MOUNT}/readOnly": True,
                f"{MOUNT}/mountPropagation": "HostToContainer",
            },
            "recursiveReadOnly",
            "mountPropagation is None",
        ),
        ({f"{MOUNT}/mountPropagation": "Shared"}, "mountPropagation", "Unsupported value"),
        ({f"{MOUNT}/mountPropagation": "Bidirectional"}, "mountPropagation", "privileged"),
    ],
)
def test_mount(problems_of: Check, changed: Change, changes: Any, field: str, message: str) -> None:
    found = problems_of(changed(POD, changes))
    assert list(found) == [f"{MOUNT_FIELD}.{field}"]
    assert message in found[f"{MOUNT_FIELD}.{field}"]


@pytest.mark.parametrize(
    "changes",
    [
        {f"{MOUNT}/subPath": "a/..b/c..d"},
        {f"{MOUNT}/subPathExpr": "$(POD_NAME)/x"},
        {f"{MOUNT}/recursiveReadOnly": "Disabled"},
        {f"{MOUNT}/recursiveReadOnly": "Enabled", f"{MOUNT}/readOnly": True},
        {f"{MOUNT}/mountPropagation": "HostToContainer"},
        {f"{MOUNT}/mountPropagation": "Bidirectional", "spec/containers/0/securityContext": {"privileged": True}},
        {"spec/containers/0/volumeMounts/1": {"name": "data", "mountPath": "/other"}},
    ],
)
def test_fine_mounts(problems_of: Check, changed: Change, changes: Any) -> None:
    assert problems_of(changed(POD, changes)) == {}


def test_mount_paths_are_unique_within_a_container(problems_of: Check, changed: Change) -> None:
    found = problems_of(changed(POD, {"spec/containers/0/volumeMounts/1": {"name": "data", "mountPath": "/data"}}))
    assert found == {"spec.containers[0].volumeMounts[1].mountPath": "Invalid value: '/data': must be unique"}
    second = {"name": "second", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    assert problems_of(changed(POD, {"spec/containers/1": second})) == {}


CLAIMED = {"name": "disk", "persistentVolumeClaim": {"claimName": "claim"}}


@pytest.mark.parametrize(
    ("devices", "field", "message"),
    [
        ([{"name": "disk"}], "[0].devicePath", "Required value"),
        ([{"devicePath": "/dev/x"}], "[0].name", "Required value"),
        ([{"name": "absent", "devicePath": "/dev/x"}], "[0].name", "Not found"),
        ([{"name": "data", "devicePath": "/dev/x"}], "[0].name", "volumeMounts"),
        ([{"name": "scratch", "devicePath": "/dev/x"}], "[0].name", "block mode"),
        ([{"name": "disk", "devicePath": "/dev/../x"}], "[0].devicePath", "must not contain '..'"),
        ([{"name": "disk", "devicePath": "/dev/x"}] * 2, "[1].name", "must be unique"),
        (
            [{"name": "disk", "devicePath": "/dev/x"}, {"name": "two", "devicePath": "/dev/x"}],
            "[1].devicePath",
            "must be unique",
        ),
    ],
)
def test_devices(problems_of: Check, changed: Change, devices: Any, field: str, message: str) -> None:
    document = changed(
        POD,
        {
            "spec/volumes/1": CLAIMED,
            "spec/volumes/2": {"name": "two", "ephemeral": EPHEMERAL},
            "spec/volumes/3": {"name": "scratch", "emptyDir": {}},
            "spec/containers/0/volumeDevices": devices,
        },
    )
    found = problems_of(document)
    assert message in found[f"spec.containers[0].volumeDevices{field}"]


def test_devices_of_claims_are_fine(problems_of: Check, changed: Change) -> None:
    document = changed(
        POD,
        {
            "spec/volumes/1": CLAIMED,
            "spec/volumes/2": {"name": "two", "ephemeral": EPHEMERAL},
            "spec/containers/0/volumeDevices": [
                {"name": "disk", "devicePath": "/dev/x"},
                {"name": "two", "devicePath": "/dev/y"},
            ],
        },
    )
    assert problems_of(document) == {}


def test_a_path_is_a_mount_or_a_device(problems_of: Check, changed: Change) -> None:
    document = changed(
        POD, {"spec/volumes/1": CLAIMED, "spec/containers/0/volumeDevices": [{"name": "disk", "devicePath": "/data"}]}
    )
    assert "volumeDevices" in problems_of(document)[f"{MOUNT_FIELD}.mountPath"]


def test_init_and_ephemeral_containers_are_checked_too(problems_of: Check, changed: Change) -> None:
    bad = {"name": "other", "volumeMounts": [{"name": "absent", "mountPath": "/x"}]}
    for kind in ("initContainers", "ephemeralContainers"):
        assert f"spec.{kind}[0].volumeMounts[0].name" in problems_of(changed(POD, {f"spec/{kind}": [bad]}))


def test_a_claim_made_for_the_pod_is_not_used_twice(problems_of: Check, changed: Change) -> None:
    document = changed(
        POD,
        {
            "spec/volumes/1": {"name": "tmp", "ephemeral": EPHEMERAL},
            "spec/volumes/2": {"name": "again", "persistentVolumeClaim": {"claimName": "web-tmp"}},
        },
    )
    assert "ephemeral volume" in problems_of(document)["spec.volumes[2].persistentVolumeClaim.claimName"]


# --- changes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata/labels": {"a": "b"}},
        {"spec/containers/0/image": "y"},
        {"spec/containers/0/resources": {"limits": {"memory": "1Gi"}}},
        {"spec/resources": {"limits": {"memory": "1Gi"}}},
        {"spec/nodeName": "node-1"},
        {"spec/activeDeadlineSeconds": 5},
        {"spec/terminationGracePeriodSeconds": 1},
        {"spec/tolerations": [{"key": "x", "operator": "Exists"}]},
        {"spec/ephemeralContainers": [{"name": "debug", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]},
    ],
)
def test_what_may_change(problems_of_change: Any, changed: Change, changes: Any) -> None:
    assert problems_of_change(POD, changed(POD, changes)) == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec/volumes/0/hostPath/path": "/other"}, "spec.volumes"),
        ({"spec/volumes/1": {"name": "more", "emptyDir": {}}}, "spec.volumes"),
        ({"spec/containers/0/volumeMounts/0/mountPath": "/other"}, "spec.containers"),
        ({"spec/containers/1": {"name": "more"}}, "spec.containers"),
        ({"spec/securityContext": {"fsGroup": 5}}, "spec.securityContext"),
        ({"spec/hostPID": True}, "spec.hostPID"),
        ({"spec/serviceAccountName": "other"}, "spec.serviceAccountName"),
    ],
)
def test_what_may_not_change(problems_of_change: Any, changed: Change, changes: Any, field: str) -> None:
    assert "delete the pod and create it again" in problems_of_change(POD, changed(POD, changes))[field]


def test_a_pod_stays_on_its_node(problems_of_change: Any, changed: Change) -> None:
    there = changed(POD, {"spec/nodeName": "node-1"})
    assert problems_of_change(there, changed(there, {"spec/nodeName": "node-2"}))["spec.nodeName"].startswith(
        "Forbidden"
    )
    assert "spec.nodeName" in problems_of_change(there, POD)


def test_debug_containers_are_only_added(problems_of_change: Any, changed: Change) -> None:
    debugged = changed(POD, {"spec/ephemeralContainers": [{"name": "debug"}]})
    assert "spec.ephemeralContainers" in problems_of_change(debugged, POD)


def test_an_object_that_older_rules_let_in_can_still_end(problems_of_change: Any, changed: Change) -> None:
    odd = changed(POD, {"spec/restartPolicy": "Sometimes", "metadata/finalizers": ["example.com/x"]})
    assert problems_of_change(odd, changed(odd, {"metadata/finalizers": None})) == {}
    assert "metadata.name" in problems_of_change(odd, changed(odd, {"metadata/name": "Bad"}))
