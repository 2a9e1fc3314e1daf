"""Sources of pods' volumes: each field that Kubernetes looks at, each refusal with its field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from volumehost.api.validation.local_sources import HOST_PATH_TYPES

Check = Callable[[Any], dict[str, str]]
FIELD = "spec.volumes[0]"
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def pod(source: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "main"}], "volumes": [{"name": "data"} | source]},
    }


GOOD = [
    {"hostPath": {"path": "/"}},
    {"hostPath": {"path": "/a..b/..c"}},
    *({"hostPath": {"path": "/x", "type": kind}} for kind in HOST_PATH_TYPES),
    {"emptyDir": {}},
    {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    {"emptyDir": {"medium": "HugePages"}},
    {"emptyDir": {"medium": "HugePages-2Mi", "sizeLimit": "0"}},
    {"secret": {"secretName": "s", "items": [{"key": "k", "path": "a/b", "mode": 0o400}]}},
    {"configMap": {"name": "c", "defaultMode": 0, "items": [{"key": "k", "path": ".b"}]}},
    {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.labels['a/b']"}}]}},
    {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.annotations['A.b/c']"}}]}},
    {
        "downwardAPI": {
            "items": [
                {
                    "path": "x",
                    "resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"},
                }
            ]
        }
    },
    {
        "downwardAPI": {
            "items": [
                {"path": "x", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1000m"}}
            ]
        }
    },
    {
        "downwardAPI": {
            "items": [
                {"path": "x", "resourceFieldRef": {"containerName": "c", "resource": "requests.cpu", "divisor": "0"}}
            ]
        }
    },
    {
        "downwardAPI": {
            "items": [
                {
                    "path": "x",
                    "resourceFieldRef": {"containerName": "c", "resource": "limits.hugepages-2Mi", "divisor": "1Mi"},
                }
            ]
        }
    },
    {
        "projected": {
            "sources": [
                {"secret": {"name": "s", "items": [{"key": "k", "path": "one"}]}},
                {"configMap": {"name": "c"}},
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
                {"clusterTrustBundle": {"name": "b", "path": "ca.pem"}},
                {
                    "podCertificate": {
                        "signerName": "example.com/s",
                        "keyType": "ED25519",
                        "credentialBundlePath": "bundle",
                    }
                },
                {"downwardAPI": {"items": [{"path": "two", "fieldRef": {"fieldPath": "metadata.uid"}}]}},
            ]
        }
    },
    {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
    {"ephemeral": {"volumeClaimTemplate": CLAIM}},
    {"image": {"reference": "registry.example.com/data:1", "pullPolicy": "Always"}},
    {"csi": {"driver": "Driver.example.com", "nodePublishSecretRef": {"name": "s"}}},
    {"flexVolume": {"driver": "acme/x", "options": {"size": "1"}}},
    {"gitRepo": {"repository": "r", "directory": "a/b"}},
    {"nfs": {"server": "s", "path": "/export"}},
    {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2026-01.com.example:disk", "lun": 0}},
    {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "eui.0123456789abcdef", "lun": 255}},
    {"fc": {"targetWWNs": ["500a"], "lun": 0}},
    {"fc": {"wwids": ["x"]}},
    {"rbd": {"monitors": ["m"], "image": "i"}},
    {"cephfs": {"monitors": ["m"]}},
    {"quobyte": {"registry": "a:1,b:2", "volume": "v"}},
    {"azureDisk": {"diskName": "d", "diskURI": "https://x/y.vhd"}},
    {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"}},
    {"flocker": {"datasetName": "d"}},
]


@pytest.mark.parametrize("source", GOOD, ids=str)
def test_good_sources(problems_of: Check, source: Any) -> None:
    assert problems_of(pod(source)) == {}


BAD = [
    ({"hostPath": {}}, "hostPath.path", "Required value"),
    ({"hostPath": {"path": "relative"}}, "hostPath.path", "must be an absolute path"),
    ({"hostPath": {"path": "/a/../b"}}, "hostPath.path", "must not contain '..'"),
    ({"hostPath": {"path": "/.."}}, "hostPath.path", "must not contain '..'"),
    ({"hostPath": {"path": "/a\0b"}}, "hostPath.path", "NUL"),
    ({"hostPath": {"path": "/" + "x/" * 3000}}, "hostPath.path", "Too long"),
    ({"hostPath": {"path": "/x", "type": "Folder"}}, "hostPath.type", "Unsupported value: 'Folder'"),
    ({"hostPath": {"path": "/x", "type": "directory"}}, "hostPath.type", "Unsupported value"),
    ({"emptyDir": {"medium": "RAM"}}, "emptyDir.medium", "Unsupported value: 'RAM'"),
    ({"emptyDir": {"medium": "HugePages-"}}, "emptyDir.medium", "it is empty"),
    ({"emptyDir": {"medium": "HugePages-2MB"}}, "emptyDir.medium", "not one of"),
    ({"emptyDir": {"medium": "HugePages-0"}}, "emptyDir.medium", "greater than zero"),
    ({"emptyDir": {"sizeLimit": "-1"}}, "emptyDir.sizeLimit", "greater than or equal to 0"),
    ({"emptyDir": {"sizeLimit": "1K"}}, "emptyDir.sizeLimit", "Invalid value: '1K'"),
    ({"emptyDir": {"sizeLimit": ""}}, "emptyDir.sizeLimit", "it is empty"),
    ({"secret": {}}, "secret.secretName", "Required value"),
    ({"secret": {"secretName": "s", "defaultMode": 0o1000}}, "secret.defaultMode", "0777"),
    ({"secret": {"secretName": "s", "items": [{"path": "a"}]}}, "secret.items[0].key", "Required value"),
    ({"secret": {"secretName": "s", "items": [{"key": "k"}]}}, "secret.items[0].path", "Required value"),
    ({"secret": {"secretName": "s", "items": [{"key": "k", "path": "/a"}]}}, "secret.items[0].path", "relative"),
    ({"secret": {"secretName": "s", "items": [{"key": "k", "path": "a/../b"}]}}, "secret.items[0].path", "'..'"),
    (
        {"secret": {"secretName": "s", "items": [{"key": "k", "path": "..a"}]}},
        "secret.items[0].path",
        "not start with '..'",
    ),
    ({"secret": {"secretName": "s", "items": [{"key": "k", "path": "a", "mode": -1}]}}, "secret.items[0].mode", "0777"),
    ({"configMap": {}}, "configMap.name", "Required value"),
    ({"configMap": {"name": "c", "defaultMode": -1}}, "configMap.defaultMode", "0777"),
    ({"downwardAPI": {"items": [{"path": "x"}]}}, "downwardAPI.items[0]", "one of fieldRef and resourceFieldRef"),
    (
        {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "spec.nodeName"}}]}},
        "downwardAPI.items[0].fieldRef.fieldPath",
        "Unsupported value",
    ),
    (
        {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.labels['a b']"}}]}},
        "downwardAPI.items[0].fieldRef.fieldPath",
        "Invalid value",
    ),
    (
        {"downwardAPI": {"items": [{"path": "x", "fieldRef": {}}]}},
        "downwardAPI.items[0].fieldRef.fieldPath",
        "Required",
    ),
    (
        {"downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
        "downwardAPI.items[0].resourceFieldRef.containerName",
        "Required",
    ),
    (
        {"downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {"containerName": "c", "resource": "cpu"}}]}},
        "downwardAPI.items[0].resourceFieldRef.resource",
        "Invalid value",
    ),
    (
        {
            "downwardAPI": {
                "items": [
                    {"path": "x", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "x"}}
                ]
            }
        },
        "downwardAPI.items[0].resourceFieldRef.divisor",
        "must be a decimal",
    ),
    (
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "x",
                        "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1Mi"},
                    }
                ]
            }
        },
        "downwardAPI.items[0].resourceFieldRef.divisor",
        "supported values: '1m', '1'",
    ),
    (
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "x",
                        "resourceFieldRef": {"containerName": "c", "resource": "limits.memory", "divisor": "3"},
                    }
                ]
            }
        },
        "downwardAPI.items[0].resourceFieldRef.divisor",
        "supported values: '1', '1k'",
    ),
    (
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "x",
                        "resourceFieldRef": {"containerName": "c", "resource": "limits.memory", "divisor": "-1"},
                    }
                ]
            }
        },
        "downwardAPI.items[0].resourceFieldRef.divisor",
        "supported values: '1', '1k'",
    ),
    (
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "x",
                        "fieldRef": {"fieldPath": "metadata.name"},
                        "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"},
                    }
                ]
            }
        },
        "downwardAPI.items[0]",
        "simultaneously",
    ),
    ({"projected": {"sources": [{}]}}, "projected.sources[0]", "must specify a projection type"),
    (
        {"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}},
        "projected.sources[0]",
        "more than 1 volume type per source",
    ),
    ({"projected": {"sources": [{"secret": {}}]}}, "projected.sources[0].secret.name", "Required"),
    (
        {
            "projected": {
                "sources": [
                    {"secret": {"name": "a", "items": [{"key": "k", "path": "same"}]}},
                    {"configMap": {"name": "b", "items": [{"key": "k", "path": "same"}]}},
                ]
            }
        },
        "projected.sources[1]",
        "conflicting duplicate paths",
    ),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 599}}]}},
        "projected.sources[0].serviceAccountToken.expirationSeconds",
        "less than 10 minutes",
    ),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 2**32 + 1}}]}},
        "projected.sources[0].serviceAccountToken.expirationSeconds",
        "larger than 2^32",
    ),
    (
        {"projected": {"sources": [{"serviceAccountToken": {}}]}},
        "projected.sources[0].serviceAccountToken.path",
        "Required",
    ),
    (
        {"projected": {"sources": [{"clusterTrustBundle": {"path": "x"}}]}},
        "projected.sources[0].clusterTrustBundle",
        "either name or signerName",
    ),
    (
        {"projected": {"sources": [{"clusterTrustBundle": {"path": "x", "name": "a", "signerName": "b/c"}}]}},
        "projected.sources[0].clusterTrustBundle",
        "only one of",
    ),
    (
        {"projected": {"sources": [{"clusterTrustBundle": {"path": "x", "name": "a", "labelSelector": {}}}]}},
        "projected.sources[0].clusterTrustBundle.labelSelector",
        "unset",
    ),
    (
        {"projected": {"sources": [{"podCertificate": {"signerName": "s", "keyType": "RSA1", "keyPath": "k"}}]}},
        "projected.sources[0].podCertificate.keyType",
        "Unsupported",
    ),
    (
        {"projected": {"sources": [{"podCertificate": {"signerName": "s", "keyType": "ED25519"}}]}},
        "projected.sources[0].podCertificate",
        "is required",
    ),
    ({"persistentVolumeClaim": {}}, "persistentVolumeClaim.claimName", "Required"),
    ({"ephemeral": {}}, "ephemeral.volumeClaimTemplate", "Required"),
    (
        {"ephemeral": {"volumeClaimTemplate": CLAIM | {"metadata": {"name": "x"}}}},
        "ephemeral.volumeClaimTemplate.metadata.name",
        "cannot be set",
    ),
    (
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}},
        "ephemeral.volumeClaimTemplate.spec.accessModes",
        "Required",
    ),
    ({"image": {}}, "image.reference", "Required"),
    ({"image": {"reference": "x", "pullPolicy": "Now"}}, "image.pullPolicy", "Unsupported"),
    ({"csi": {}}, "csi.driver", "Required"),
    ({"csi": {"driver": "x" * 64}}, "csi.driver", "Too long"),
    ({"csi": {"driver": "a/b"}}, "csi.driver", "Invalid value"),
    ({"csi": {"driver": "d", "nodePublishSecretRef": {}}}, "csi.nodePublishSecretRef.name", "Required"),
    ({"flexVolume": {}}, "flexVolume.driver", "Required"),
    (
        {"flexVolume": {"driver": "d", "options": {"x.kubernetes.io/a": "s3cret"}}},
        "flexVolume.options[x.kubernetes.io/a]",
        "reserved",
    ),
    ({"gitRepo": {}}, "gitRepo.repository", "Required"),
    ({"gitRepo": {"repository": "r", "directory": "../x"}}, "gitRepo.directory", "'..'"),
    ({"nfs": {"path": "/x"}}, "nfs.server", "Required"),
    ({"nfs": {"server": "s", "path": "x"}}, "nfs.path", "absolute"),
    ({"iscsi": {"iqn": "eui.0123456789abcdef"}}, "iscsi.targetPortal", "Required"),
    ({"iscsi": {"targetPortal": "p", "iqn": "disk"}}, "iscsi.iqn", "iqn, eui, or naa"),
    ({"iscsi": {"targetPortal": "p", "iqn": "eui.0123456789abcdef", "lun": 256}}, "iscsi.lun", "between 0 and 255"),
    (
        {"iscsi": {"targetPortal": "p", "iqn": "eui.0123456789abcdef", "chapAuthSession": True}},
        "iscsi.secretRef",
        "Required",
    ),
    ({"fc": {"targetWWNs": ["x"], "wwids": ["y"], "lun": 1}}, "fc.targetWWNs", "but not both"),
    ({"fc": {}}, "fc.targetWWNs", "Required"),
    ({"fc": {"targetWWNs": ["x"]}}, "fc.lun", "Required"),
    ({"rbd": {"image": "i"}}, "rbd.monitors", "Required"),
    ({"glusterfs": {"endpoints": "e"}}, "glusterfs.path", "Required"),
    ({"cinder": {}}, "cinder.volumeID", "Required"),
    (
        {"awsElasticBlockStore": {"volumeID": "v", "partition": 300}},
        "awsElasticBlockStore.partition",
        "between 0 and 255",
    ),
    ({"gcePersistentDisk": {}}, "gcePersistentDisk.pdName", "Required"),
    ({"azureFile": {"secretName": "s"}}, "azureFile.shareName", "Required"),
    ({"azureDisk": {"diskName": "d", "diskURI": "x", "cachingMode": "No"}}, "azureDisk.cachingMode", "Unsupported"),
    ({"azureDisk": {"diskName": "d", "diskURI": "x"}}, "azureDisk.diskURI", "must start with https://"),
    ({"vsphereVolume": {}}, "vsphereVolume.volumePath", "Required"),
    ({"photonPersistentDisk": {}}, "photonPersistentDisk.pdID", "Required"),
    ({"portworxVolume": {}}, "portworxVolume.volumeID", "Required"),
    ({"scaleIO": {"gateway": "g", "system": "s"}}, "scaleIO.volumeName", "Required"),
    ({"storageos": {}}, "storageos.volumeName", "Required"),
    ({"quobyte": {"registry": "host", "volume": "v"}}, "quobyte.registry", "host:port"),
    ({"flocker": {}}, "flocker", "exactly one of"),
    ({"flocker": {"datasetName": "a/b"}}, "flocker.datasetName", "'/'"),
]


@pytest.mark.parametrize(("source", "field", "message"), BAD, ids=[f"{field}: {message}" for _, field, message in BAD])
def test_bad_sources(problems_of: Check, source: Any, field: str, message: str) -> None:
    found = problems_of(pod(source))
    assert message in found.get(f"{FIELD}.{field}", ""), found
    assert "s3cret" not in str(found)


def test_a_misspelled_source_is_not_taken_for_an_empty_dir(problems_of: Check) -> None:
    found = problems_of(pod({"hostpath": {"path": "/x"}}))
    assert found == {FIELD: "Required value: must specify a volume type, such as emptyDir: {}"}


def test_every_further_source_is_named(problems_of: Check) -> None:
    found = problems_of(pod({"hostPath": {"path": "/x"}, "emptyDir": {}, "nfs": {}}))
    assert set(found) == {f"{FIELD}.emptyDir", f"{FIELD}.nfs"}
