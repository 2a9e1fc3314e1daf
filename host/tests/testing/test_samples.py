"""The volumes to test with: read from manifests, shared out among plugins, and refused in words when they are wrong."""

from __future__ import annotations

import pytest

from volumehost import errors
from volumehost.testing.conformance.hostile import NONSENSE, with_name, with_nonsense
from volumehost.testing.conformance.other_specs import empty_specs, known_sources, specs_of_other_kinds
from volumehost.testing.conformance.samples import read_samples
from volumehost.testing.conformance.sharing import share_out
from volumehost.testing.conformance.subject import find_plugin

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: main, image: web}]
  volumes:
  - {name: data, emptyDir: {}}
  - {name: host, hostPath: {path: /srv}}
  - {name: db, persistentVolumeClaim: {claimName: db, readOnly: true}}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: db}
spec: {volumeName: pv-db, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-db}
spec: {hostPath: {path: /srv/db}, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]}
"""
REST = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/nfs
parameters: {tier: gold}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {key: value}
"""


@pytest.fixture
def read(tmp_path):
    """Reads texts, each from a file of its own."""

    def run(*texts):
        files = []
        for number, text in enumerate(texts):
            files.append(str(tmp_path / f"{number}.yaml"))
            (tmp_path / f"{number}.yaml").write_text(text)
        return read_samples(files)

    return run


def test_no_files_no_volumes():
    assert read_samples([]).volumes == ()


def test_volumes_of_pods_with_their_claims(read):
    samples = read(POD, f"{CLAIM}---{VOLUME}")
    assert [(each.label, each.spec.source(), each.spec.read_only) for each in samples.volumes] == [
        ("data", "empty_dir", False),
        ("host", "host_path", False),
        ("db", "host_path", True),
    ]
    assert samples.volumes[2].spec.name() == "pv-db"
    assert {each.pod.metadata.uid for each in samples.volumes} == {samples.volumes[0].pod.metadata.uid}


def test_a_persistent_volume_that_names_its_claim_is_enough(read):
    samples = read(POD, VOLUME.replace("capacity", "claimRef: {name: db, namespace: default}, capacity"))
    assert samples.volumes[2].spec.name() == "pv-db"


def test_a_persistent_volume_alone_gets_a_pod(read):
    (sample,) = read(VOLUME).volumes
    assert (sample.label, sample.spec.name()) == ("pv-db", "pv-db")
    assert sample.new_pod().metadata.uid != sample.new_pod().metadata.uid


def test_plugins_get_copies(read):
    sample = read(POD, f"{CLAIM}---{VOLUME}").volumes[0]
    sample.new_spec().volume.name = "changed"
    sample.new_pod().metadata.labels["changed"] = "yes"
    assert sample.spec.name() == "data"
    assert sample.new_pod().metadata.labels == {}


def test_equal_names_get_numbers(read):
    samples = read(VOLUME, VOLUME, VOLUME)
    assert [each.label for each in samples.volumes] == ["pv-db", "pv-db-2", "pv-db-3"]


def test_claim_class_and_objects_for_plugins(read):
    samples = read(CLAIM, REST)
    assert samples.claim.metadata.name == "db"
    assert samples.storage_class.parameters == {"tier": "gold"}
    assert [each.kind for each in samples.objects] == ["PersistentVolumeClaim", "StorageClass", "Secret"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POD, "volume db of pod web uses the claim db, which no PersistentVolume is for"),
        (POD.replace("emptyDir", "emptyDr"), "unknown field, did you mean emptyDir"),
        (POD.replace("{name: web}", "[web]"), r"\$.metadata: "),
        (VOLUME.replace("accessModes: [ReadWriteOnce]", "accessModes: []"), "spec.accessModes: Required value"),
        ("a: [", "0.yaml"),
    ],
)
def test_bad_files_are_refused_in_words(read, text, message):
    with pytest.raises(errors.ManifestError, match=message):
        read(text)


def test_a_missing_file_is_refused_in_words():
    with pytest.raises(errors.ManifestError, match=r"/does/not/exist\.yaml"):
        read_samples(["/does/not/exist.yaml"])


# --- sharing out ---


def test_each_plugin_gets_what_it_supports(read):
    samples = read(POD, f"{CLAIM}---{VOLUME}")
    shares = share_out([find_plugin("kubernetes.io/empty-dir"), find_plugin("kubernetes.io/host-path")], samples)
    assert [[each.label for each in share.samples.volumes] for share in shares] == [["data"], ["host", "db"]]
    assert [share.left_out for share in shares] == [(), ()]


def test_what_no_plugin_supports_is_left_out_and_named(read):
    samples = read(POD, f"{CLAIM}---{VOLUME}")
    (share,) = share_out([find_plugin("kubernetes.io/empty-dir")], samples)
    assert [each.label for each in share.samples.volumes] == ["data"]
    assert share.left_out == ("host", "db")


def test_a_plugin_that_supports_nothing_gets_what_is_nobodys(read, support):
    samples = read(POD, f"{CLAIM}---{VOLUME}")
    subjects = [find_plugin("kubernetes.io/host-path"), find_plugin("complete_plugin:CompletePlugin")]
    shares = share_out(subjects, samples)
    assert [[each.label for each in share.samples.volumes] for share in shares] == [["host", "db"], ["data"]]


def test_a_plugin_that_does_not_load_spoils_nothing(read, support):
    samples = read(POD, f"{CLAIM}---{VOLUME}")
    subjects = [find_plugin("good_variants:UnloadablePlugin"), find_plugin("kubernetes.io/host-path")]
    assert [len(share.samples.volumes) for share in share_out(subjects, samples)] == [1, 2]


# --- what is made of them ---


def test_other_specs_are_of_every_kind_but_the_own():
    kinds = {spec.source() for _, spec in specs_of_other_kinds("host_path")}
    assert kinds == known_sources() - {"host_path"}
    own = [spec for _, spec in specs_of_other_kinds("csi") if spec.source() == "csi"]
    drivers = [(spec.volume or spec.persistent_volume.spec).csi.driver for spec in own]
    assert drivers == ["foreign.invalid/driver"] * 2
    assert [spec.source() for _, spec in empty_specs()] == ["", "", ""]


def test_nonsense_comes_to_every_text_of_the_source_but_the_driver(read):
    text = POD.replace("emptyDir: {}", "flexVolume: {driver: example.com/x, options: {size: 1Mi}}")
    spec = read(text, f"{CLAIM}---{VOLUME}").volumes[0].spec
    broken = dict(with_nonsense(spec))
    assert len(broken) == 2 * len(NONSENSE)
    assert broken["flex_volume.options.size = '-1'"].volume.flex_volume.options == {"size": "-1"}
    assert broken["flex_volume.fs_type = '-1'"].volume.flex_volume.fs_type == "-1"
    assert {each.volume.flex_volume.driver for each in broken.values()} == {"example.com/x"}
    assert spec.volume.flex_volume.options == {"size": "1Mi"}
    assert not any(value.startswith("/") for value in NONSENSE)


def test_names_are_replaced_in_copies(read):
    pod_volume, *_, persistent = read(POD, f"{CLAIM}---{VOLUME}").volumes
    assert [with_name(each.spec, "other").name() for each in (pod_volume, persistent)] == ["other", "other"]
    assert [each.spec.name() for each in (pod_volume, persistent)] == ["data", "pv-db"]
