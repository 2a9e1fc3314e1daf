"""Pods from short descriptions and from manifests."""

from __future__ import annotations

import pytest

from volumehost import Spec, errors
from volumehost.api.objects import (
    CSIVolumeSource,
    EmptyDirVolumeSource,
    FlexVolumeSource,
    HostPathVolumeSource,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
    Volume,
)
from volumehost.node.populating.pods import used_volumes
from volumehost.testing.pods import another_pod, make_pod, pod_from

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, uid: "42"}
spec:
  containers: [{name: main, image: web}]
  volumes: [{name: data, emptyDir: {}}]
"""


@pytest.mark.parametrize(
    ("description", "volume"),
    [
        ("data=emptyDir", Volume(name="data", empty_dir=EmptyDirVolumeSource())),
        (
            "data=emptyDir:Memory,sizeLimit=64Mi",
            Volume(name="data", empty_dir=EmptyDirVolumeSource(medium="Memory", size_limit="64Mi")),
        ),
        (
            "h=hostPath:/srv/data,type=Directory",
            Volume(name="h", host_path=HostPathVolumeSource(path="/srv/data", type="Directory")),
        ),
        (
            "w=flexVolume:example.com/nfs,server=a=b,readOnly=true",
            Volume(
                name="w",
                flex_volume=FlexVolumeSource(driver="example.com/nfs", read_only=True, options={"server": "a=b"}),
            ),
        ),
        (
            "c=csi:example.com,size=1,fsType=xfs",
            Volume(name="c", csi=CSIVolumeSource(driver="example.com", fs_type="xfs", volume_attributes={"size": "1"})),
        ),
        (
            "db=persistentVolumeClaim:db",
            Volume(name="db", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="db")),
        ),
        ("s=secret:token", Volume(name="s", secret=SecretVolumeSource(secret_name="token", default_mode=0o644))),
        ({"name": "data", "emptyDir": {}}, Volume(name="data", empty_dir=EmptyDirVolumeSource())),
    ],
)
def test_volumes_in_short(description, volume):
    assert make_pod(description).spec.volumes == [volume]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("data", "NAME=SOURCE"),
        ("=emptyDir", "NAME=SOURCE"),
        ("data=", "NAME=SOURCE"),
        ("data=emptyDir,Memory", "'Memory' is not KEY=VALUE"),
        ("data=downwardAPI:x", "downwardAPI takes no bare word"),
        ("data=emptyDr", "unknown field, did you mean emptyDir"),
        ("data=emptyDir,size=1Mi", r"\$.spec.volumes\[0\].emptyDir.size: unknown field"),
        ({"emptyDir": {}}, "it has no name"),
    ],
)
def test_bad_descriptions_are_refused_in_words(description, message):
    with pytest.raises(errors.ManifestError, match=message):
        make_pod(description)


def test_a_wrong_type_names_the_field():
    with pytest.raises(errors.InvalidObjectError, match=r"volumes\[0\].hostPath.path"):
        make_pod({"name": "data", "hostPath": {"path": 1}})


def test_the_rest_of_the_pod():
    pod = make_pod("a=emptyDir", "b=emptyDir", name="web", namespace="shop", fs_group=2000, run_as_user=7)
    assert (pod.metadata.name, pod.metadata.namespace) == ("web", "shop")
    assert (pod.spec.security_context.fs_group, pod.spec.security_context.run_as_user) == (2000, 7)
    assert used_volumes(pod).mounts == {"a", "b"}
    assert Spec.from_volume(pod.spec.volumes[0]).name() == "a"


def test_every_pod_is_another_one():
    pods = [make_pod("a=emptyDir") for _ in range(3)]
    pods += [another_pod(pods[0]), another_pod(pods[0], "named")]
    assert len({pod.metadata.uid for pod in pods}) == 5
    assert pods[-1].metadata.name == "named"
    assert pods[-1].spec == pods[0].spec
    assert pods[-1].spec is not pods[0].spec
    assert make_pod(uid="given").metadata.uid == "given"


def test_manifests_as_text_path_and_mapping(tmp_path):
    (tmp_path / "pod.yaml").write_text(MANIFEST)
    pod = pod_from(MANIFEST)
    assert (pod.metadata.namespace, pod.metadata.uid) == ("shop", "42")
    assert pod_from(tmp_path / "pod.yaml") == pod
    assert pod_from(str(tmp_path / "pod.yaml")) == pod
    without = pod_from({"metadata": {"name": "x"}, "spec": {"volumes": []}})
    assert without.metadata.uid
    assert without.metadata.namespace == "default"


@pytest.mark.parametrize("text", ["apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", f"{MANIFEST}---{MANIFEST}"])
def test_a_manifest_must_be_one_pod(text):
    with pytest.raises(errors.ManifestError, match="one is wanted"):
        pod_from(text)
