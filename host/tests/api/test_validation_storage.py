"""Storage classes, attachments, drivers, capacities, and the objects that hold data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[[Any], dict[str, str]]
CheckChange = Callable[[Any, Any], dict[str, str]]
Change = Callable[..., Any]

STORAGE = "storage.k8s.io/v1"
STORAGE_CLASS: Any = {
    "apiVersion": STORAGE,
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "driver.example.com",
    "parameters": {"type": "ssd"},
}
ATTRIBUTES_CLASS: Any = {
    "apiVersion": STORAGE,
    "kind": "VolumeAttributesClass",
    "metadata": {"name": "gold"},
    "driverName": "driver.example.com",
    "parameters": {"iops": "100"},
}
ATTACHMENT: Any = {
    "apiVersion": STORAGE,
    "kind": "VolumeAttachment",
    "metadata": {"name": "a"},
    "spec": {"attacher": "driver.example.com", "nodeName": "node-1", "source": {"persistentVolumeName": "disk"}},
}
DRIVER: Any = {"apiVersion": STORAGE, "kind": "CSIDriver", "metadata": {"name": "driver.example.com"}, "spec": {}}
NODE: Any = {
    "apiVersion": STORAGE,
    "kind": "CSINode",
    "metadata": {"name": "node-1"},
    "spec": {"drivers": [{"name": "driver.example.com", "nodeID": "id", "topologyKeys": ["example.com/zone"]}]},
}
CAPACITY: Any = {
    "apiVersion": STORAGE,
    "kind": "CSIStorageCapacity",
    "metadata": {"name": "c"},
    "storageClassName": "fast",
    "capacity": "10Gi",
    "nodeTopology": {"matchLabels": {"zone": "a"}},
}
SECRET: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hunter2"}}
CONFIG_MAP: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"key": "value"}}
EVENT: Any = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
}
BUNDLE: Any = {
    "apiVersion": "certificates.k8s.io/v1beta1",
    "kind": "ClusterTrustBundle",
    "metadata": {"name": "example.com:signer:root"},
    "spec": {"signerName": "example.com/signer", "trustBundle": "-----BEGIN CERTIFICATE-----\n"},
}
ALL = [STORAGE_CLASS, ATTRIBUTES_CLASS, ATTACHMENT, DRIVER, NODE, CAPACITY, SECRET, CONFIG_MAP, EVENT, BUNDLE]


@pytest.mark.parametrize("document", ALL, ids=lambda document: document["kind"])
def test_good_objects(problems_of: Check, document: Any) -> None:
    assert problems_of(document) == {}


TOPOLOGY = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]

BAD = [
    (STORAGE_CLASS, {"provisioner": None}, "provisioner", "Required"),
    (STORAGE_CLASS, {"provisioner": "a/b/c"}, "provisioner", "Invalid"),
    (STORAGE_CLASS, {"reclaimPolicy": "Recycle"}, "reclaimPolicy", "Unsupported value: 'Recycle'"),
    (STORAGE_CLASS, {"volumeBindingMode": "Later"}, "volumeBindingMode", "Unsupported"),
    (STORAGE_CLASS, {"parameters": {"": "x"}}, "parameters", "must not be empty"),
    (STORAGE_CLASS, {"parameters": {"k": "v" * 262144}}, "parameters", "Too long"),
    (STORAGE_CLASS, {"parameters": {f"k{n}": "" for n in range(513)}}, "parameters", "512 entries"),
    (
        STORAGE_CLASS,
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "-"}]}]},
        "allowedTopologies[0].matchLabelExpressions[0].key",
        "Invalid",
    ),
    (
        STORAGE_CLASS,
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "z"}]}]},
        "allowedTopologies[0].matchLabelExpressions[0].values",
        "Required",
    ),
    (
        STORAGE_CLASS,
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a", "a"]}]}]},
        "allowedTopologies[0].matchLabelExpressions[0].values",
        "Duplicate",
    ),
    (
        STORAGE_CLASS,
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}] * 2}]},
        "allowedTopologies[0].matchLabelExpressions[1].key",
        "Duplicate",
    ),
    (ATTRIBUTES_CLASS, {"driverName": None}, "driverName", "Required"),
    (ATTRIBUTES_CLASS, {"parameters": None}, "parameters", "Required"),
    (ATTACHMENT, {"spec/attacher": None}, "spec.attacher", "Required"),
    (ATTACHMENT, {"spec/nodeName": None}, "spec.nodeName", "Required"),
    (ATTACHMENT, {"spec/nodeName": "No/de"}, "spec.nodeName", "Invalid"),
    (ATTACHMENT, {"spec/source": None}, "spec.source", "exactly one"),
    (ATTACHMENT, {"spec/source/inlineVolumeSpec": {}}, "spec.source", "exactly one"),
    (ATTACHMENT, {"spec/source/persistentVolumeName": ""}, "spec.source.persistentVolumeName", "non empty"),
    (
        ATTACHMENT,
        {"spec/source": {"inlineVolumeSpec": {"nfs": {"server": "s", "path": "/"}}}},
        "spec.source.inlineVolumeSpec.csi",
        "Required",
    ),
    (
        ATTACHMENT,
        {"spec/source": {"inlineVolumeSpec": {"csi": {"driver": "d"}}}},
        "spec.source.inlineVolumeSpec.csi.volumeHandle",
        "Required",
    ),
    (ATTACHMENT, {"status/attachmentMetadata": {"k": "v" * 262144}}, "status.attachmentMetadata", "262144 bytes"),
    (ATTACHMENT, {"status/attachError": {"message": "ä" * 513}}, "status.attachError.message", "1024 bytes"),
    (ATTACHMENT, {"status/detachError": {"message": "m" * 1025}}, "status.detachError.message", "1024 bytes"),
    (ATTACHMENT, {"status/attachError": {"errorCode": -1}}, "status.attachError.errorCode", "negative"),
    (DRIVER, {"metadata/name": "x" * 64}, "metadata.name", "Too long"),
    (DRIVER, {"spec/fsGroupPolicy": "Always"}, "spec.fsGroupPolicy", "Unsupported"),
    (DRIVER, {"spec/volumeLifecycleModes": ["Forever"]}, "spec.volumeLifecycleModes", "Unsupported"),
    (
        DRIVER,
        {"spec/tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
        "spec.tokenRequests[1].audience",
        "Duplicate",
    ),
    (
        DRIVER,
        {"spec/tokenRequests": [{"audience": "a", "expirationSeconds": 1}]},
        "spec.tokenRequests[0].expirationSeconds",
        "10 minutes",
    ),
    (
        DRIVER,
        {"spec/nodeAllocatableUpdatePeriodSeconds": 9},
        "spec.nodeAllocatableUpdatePeriodSeconds",
        "greater than or equal to 10",
    ),
    (NODE, {"spec/drivers/0/name": None}, "spec.drivers[0].name", "Required"),
    (NODE, {"spec/drivers/0/nodeID": None}, "spec.drivers[0].nodeID", "Required"),
    (NODE, {"spec/drivers/0/nodeID": "x" * 257}, "spec.drivers[0].nodeID", "Too long"),
    (NODE, {"spec/drivers/0/topologyKeys": ["a", "a"]}, "spec.drivers[0].topologyKeys", "Duplicate"),
    (NODE, {"spec/drivers/0/topologyKeys": ["-"]}, "spec.drivers[0].topologyKeys", "Invalid"),
    (NODE, {"spec/drivers/0/allocatable": {"count": -1}}, "spec.drivers[0].allocatable.count", "greater than"),
    (
        NODE,
        {"spec/drivers/1": {"name": "driver.example.com", "nodeID": "x"}},
        "spec.drivers[1].name",
        "Duplicate",
    ),
    (CAPACITY, {"storageClassName": None}, "storageClassName", "Required"),
    (CAPACITY, {"capacity": "-1"}, "capacity", "greater than or equal to 0"),
    (CAPACITY, {"maximumVolumeSize": "x"}, "maximumVolumeSize", "Invalid"),
    (CAPACITY, {"nodeTopology": {"matchLabels": {"-": ""}}}, "nodeTopology.matchLabels", "Invalid"),
    (SECRET, {"stringData": {"../x": "v"}}, "data[../x]", "Invalid"),
    (SECRET, {"stringData": {"..": "v"}}, "data[..]", "Invalid"),
    (SECRET, {"stringData": {"k": "v" * (1024 * 1024 + 1)}}, "data", "1048576 bytes"),
    (SECRET, {"type": "kubernetes.io/tls"}, "data[tls.key]", "Required"),
    (SECRET, {"type": "kubernetes.io/dockerconfigjson"}, "data[.dockerconfigjson]", "Required"),
    (SECRET, {"type": "kubernetes.io/basic-auth"}, "data[username]", "Required"),
    (CONFIG_MAP, {"data": {"a/b": ""}}, "data[a/b]", "Invalid"),
    (CONFIG_MAP, {"binaryData": {"a b": ""}}, "binaryData[a b]", "Invalid"),
    (CONFIG_MAP, {"binaryData": {"key": ""}}, "data[key]", "duplicate of key"),
    (CONFIG_MAP, {"data": {"k": "ä" * (512 * 1024 + 1)}}, "data", "Too long"),
    (EVENT, {"involvedObject/namespace": "other"}, "involvedObject.namespace", "does not match"),
    (BUNDLE, {"metadata/name": "root"}, "metadata.name", "must start with example.com:signer:"),
    (BUNDLE, {"metadata/name": "example.com:signer:Root"}, "metadata.name", "lower case"),
    (BUNDLE, {"spec/trustBundle": "junk"}, "spec.trustBundle", "PEM"),
]


@pytest.mark.parametrize(
    ("document", "changes", "field", "message"),
    BAD,
    ids=[f"{document['kind']} {field}: {message}" for document, _, field, message in BAD],
)
def test_bad_objects(
    problems_of: Check, changed: Change, document: Any, changes: Any, field: str, message: str
) -> None:
    found = problems_of(changed(document, changes))
    assert message in found.get(field, ""), found
    assert "hunter2" not in str(found)


def test_a_secret_at_the_limit_is_fine(problems_of: Check, changed: Change) -> None:
    assert problems_of(changed(SECRET, {"stringData": {"k": "v" * (1024 * 1024)}})) == {}


IMMUTABLE = [
    (STORAGE_CLASS, {"provisioner": "other.example.com"}, "provisioner"),
    (STORAGE_CLASS, {"parameters/type": "hdd"}, "parameters"),
    (STORAGE_CLASS, {"reclaimPolicy": "Retain"}, "reclaimPolicy"),
    (STORAGE_CLASS, {"volumeBindingMode": "WaitForFirstConsumer"}, "volumeBindingMode"),
    (ATTRIBUTES_CLASS, {"parameters/iops": "200"}, "parameters"),
    (ATTRIBUTES_CLASS, {"driverName": "other.example.com"}, "driverName"),
    (ATTACHMENT, {"spec/nodeName": "node-2"}, "spec"),
    (DRIVER, {"spec/attachRequired": False}, "spec.attachRequired"),
    (DRIVER, {"spec/volumeLifecycleModes": ["Ephemeral"]}, "spec.volumeLifecycleModes"),
    (NODE, {"spec/drivers/0/nodeID": "other"}, "spec.drivers[0].nodeID"),
    (NODE, {"spec/drivers/0/topologyKeys": []}, "spec.drivers[0].topologyKeys"),
    (CAPACITY, {"storageClassName": "slow"}, "storageClassName"),
    (CAPACITY, {"nodeTopology/matchLabels/zone": "b"}, "nodeTopology"),
    (SECRET, {"type": "example.com/other"}, "type"),
    (SECRET | {"immutable": True}, {"stringData/key": "other"}, "data"),
    (SECRET | {"immutable": True}, {"immutable": None}, "immutable"),
    (CONFIG_MAP | {"immutable": True}, {"data/key": "other"}, "data"),
    (CONFIG_MAP | {"immutable": True}, {"binaryData": {"b": ""}}, "binaryData"),
]


@pytest.mark.parametrize(
    ("document", "changes", "field"), IMMUTABLE, ids=[f"{document['kind']} {field}" for document, _, field in IMMUTABLE]
)
def test_what_must_not_change(
    problems_of_change: CheckChange, changed: Change, document: Any, changes: Any, field: str
) -> None:
    found = problems_of_change(document, changed(document, changes))
    assert "immutable" in found.get(field, ""), found
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        (STORAGE_CLASS, {"allowVolumeExpansion": True, "mountOptions": ["ro"], "allowedTopologies": TOPOLOGY}),
        (DRIVER, {"spec/storageCapacity": True, "spec/requiresRepublish": True}),
        (NODE, {"spec/drivers": []}),
        (NODE, {"spec/drivers/0/allocatable": {"count": 5}}),
        (NODE, {"spec/drivers/1": {"name": "new.example.com", "nodeID": "x"}}),
        (CAPACITY, {"capacity": "5Gi"}),
        (SECRET, {"stringData/key": "other", "immutable": True}),
        (CONFIG_MAP, {"data": {}, "immutable": True}),
        (CONFIG_MAP | {"immutable": True}, {"metadata/labels": {"a": "b"}}),
    ],
)
def test_what_may_change(problems_of_change: CheckChange, changed: Change, document: Any, changes: Any) -> None:
    assert problems_of_change(document, changed(document, changes)) == {}
