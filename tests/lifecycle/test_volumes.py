"""From a claim to a mount and back, by a real driver in a process of its own."""

from __future__ import annotations

import pytest
from subject import MIB, claim, csi_driver, pod, storage_class, wait_for

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def provisioning(subject, machine):
    why_not = subject.needs("controller", "CREATE_DELETE_VOLUME")
    if why_not:
        pytest.skip(why_not)
    machine.apply(storage_class(subject))


def skip_without(subject, service, capability):
    why_not = subject.needs(service, capability)
    if why_not:
        pytest.skip(why_not)


def test_a_claim_is_provisioned_mounted_used_and_goes_without_a_trace(machine):
    machine.apply(claim("data"))
    volume = machine.mount(pod("web", claims=["data"]))["data"]
    assert volume["plugin"] == "kubernetes.io/csi"
    assert volume["path"] in machine.mounts()
    machine.shell('echo kept > "$1/file"', volume["path"])
    assert machine.get("pvc", "data")["status"]["phase"] == "Bound"
    machine.unmount("web")
    assert machine.mounts() == []
    again = machine.mount(pod("web", claims=["data"]))["data"]
    assert machine.shell('cat "$1/file"', again["path"]) == "kept\n"
    machine.unmount("web")
    machine("delete", "pvc", "data")
    assert machine.left_behind() == []


def test_a_claim_that_is_deleted_while_it_is_used_goes_with_its_last_pod(machine):
    machine.apply(claim("data"))
    machine.mount(pod("one", claims=["data"]))
    machine.mount(pod("two", claims=["data"]))
    assert "kept by kubernetes.io/pvc-protection" in machine("delete", "pvc", "data").out
    machine.unmount("one")
    assert [each["metadata"]["name"] for each in machine.get("pvc")] == ["data"]
    machine.unmount("two")
    assert machine.left_behind() == []


def test_the_size_asked_for_is_what_there_is(machine, subject):
    if not subject.is_ours:
        pytest.skip("not every driver limits the size")
    machine.apply(claim("data", "48Mi"))
    path = machine.mount(pod("web", claims=["data"]))["data"]["path"]
    size = int(machine.shell('stat -f -c "%S %b" "$1" | { read size count; echo $((size * count)); }', path))
    assert 24 * MIB < size <= 48 * MIB
    with pytest.raises(AssertionError, match="No space left"):
        machine.shell('head -c 60000000 /dev/zero > "$1/big"', path)


def test_a_block_claim_is_a_device(machine):
    machine.apply(claim("raw", mode="Block"))
    path = machine.mount(pod("web", blocks=["raw"]))["raw"]["path"]
    machine.shell('test -b "$1"; echo block | dd of="$1" conv=notrunc status=none', path)
    machine.unmount("web")
    again = machine.mount(pod("web", blocks=["raw"]))["raw"]["path"]
    assert machine.shell('head -c 5 "$1"', again) == "block"
    machine.unmount("web")
    machine("delete", "pvc", "raw")
    assert machine.left_behind() == []


def test_an_inline_volume_lives_and_dies_with_its_pod(machine, subject):
    if not subject.inline:
        pytest.skip(f"{subject.name} is not known to support inline volumes")
    if not subject.is_ours:
        machine.apply(csi_driver(subject, podInfoOnMount=True, volumeLifecycleModes=["Persistent", "Ephemeral"]))
    scratch = {"csi": {"driver": subject.name}}
    if subject.is_ours:
        scratch["csi"] |= {"fsType": "ext4", "volumeAttributes": {"size": "32Mi"}}
    path = machine.mount(pod("web", scratch=scratch))["scratch"]["path"]
    machine.shell('echo gone > "$1/file"', path)
    machine.unmount("web")
    again = machine.mount(pod("web", scratch=scratch))["scratch"]["path"]
    assert machine.shell('ls "$1"', again).split() in ([], ["lost+found"])
    machine.unmount("web")
    assert machine.left_behind() == []


def test_two_pods_of_one_node_share_a_claim(machine):
    machine.apply(claim("data"))
    first = machine.mount(pod("one", claims=["data"]))["data"]["path"]
    second = machine.mount(pod("two", claims=["data"]))["data"]["path"]
    machine.shell('echo shared > "$1/file"', first)
    assert machine.shell('cat "$1/file"', second) == "shared\n"
    machine.unmount("one")
    assert machine.shell('cat "$1/file"', second) == "shared\n"
    machine.unmount("two")
    assert machine.mounts() == []


def test_a_read_only_use_cannot_be_written(machine):
    machine.apply(claim("data"))
    web = pod("web", claims=["data"])
    web["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = True
    path = machine.mount(web)["data"]["path"]
    with pytest.raises(AssertionError, match="Read-only"):
        machine.shell('echo no > "$1/file"', path)
    machine.unmount("web")


def test_fs_group_owns_the_volume(machine, subject):
    if not subject.is_ours:
        machine.apply(csi_driver(subject, fsGroupPolicy="File"))
    machine.apply(claim("data"))
    web = pod("web", claims=["data"])
    web["spec"]["securityContext"] = {"fsGroup": 4321}
    path = machine.mount(web)["data"]["path"]
    assert machine.shell('stat -c %g "$1"', path) == "4321\n"
    machine.unmount("web")


def test_a_claim_is_expanded_while_it_is_used(machine, subject):
    skip_without(subject, "controller", "EXPAND_VOLUME")
    if subject.is_ours:  # not ext4: growing a mounted one needs CAP_SYS_RESOURCE, which containers seldom have
        machine.apply(storage_class(subject, "xfs", parameters={"csi.storage.k8s.io/fstype": "xfs"}))
    machine.apply(claim("data", "320Mi", **({"storageClassName": "xfs"} if subject.is_ours else {})))
    path = machine.mount(pod("web", claims=["data"]))["data"]["path"]
    machine.shell('echo kept > "$1/file"', path)
    machine("expand", "data", "512Mi")
    assert machine.get("pvc", "data")["status"]["capacity"]["storage"] == "512Mi"
    if subject.is_ours:
        size = int(machine.shell('stat -f -c "%S %b" "$1" | { read size count; echo $((size * count)); }', path))
        assert size > 400 * MIB
    assert machine.shell('cat "$1/file"', path) == "kept\n"
    machine.unmount("web")


def test_a_block_claim_is_expanded_while_it_is_used(machine, subject):
    skip_without(subject, "controller", "EXPAND_VOLUME")
    machine.apply(claim("raw", "64Mi", mode="Block"))
    path = machine.mount(pod("web", blocks=["raw"]))["raw"]["path"]
    machine("expand", "raw", "128Mi")
    if subject.is_ours:
        assert machine.shell('blockdev --getsize64 "$1"', path) == f"{128 * MIB}\n"
    machine.unmount("web")


def test_a_claim_that_is_not_mounted_is_expanded_when_it_is_mounted_next(machine, subject):
    """BR-44: what the node has to do is done later."""
    skip_without(subject, "controller", "EXPAND_VOLUME")
    machine.apply(claim("data", "64Mi"))
    machine.mount(pod("web", claims=["data"]))
    machine.unmount("web")
    machine("expand", "data", "128Mi")
    path = machine.mount(pod("web", claims=["data"]))["data"]["path"]
    assert machine.get("pvc", "data")["status"]["capacity"]["storage"] == "128Mi"
    if subject.is_ours:
        size = int(machine.shell('stat -f -c "%S %b" "$1" | { read size count; echo $((size * count)); }', path))
        assert size > 90 * MIB
    machine.unmount("web")


def test_a_snapshot_is_restored_as_it_was(machine, subject):
    skip_without(subject, "controller", "CREATE_DELETE_SNAPSHOT")
    if not subject.is_ours:
        machine.apply(
            {
                "apiVersion": "snapshot.storage.k8s.io/v1",
                "kind": "VolumeSnapshotClass",
                "metadata": {"name": "snap"},
                "driver": subject.name,
                "deletionPolicy": "Delete",
            }
        )
    machine.apply(claim("data"))
    path = machine.mount(pod("web", claims=["data"]))["data"]["path"]
    machine.shell('echo before > "$1/file"; sync', path)
    machine("snapshot", "create", "first", "--from", "data", *([] if subject.is_ours else ["--class", "snap"]))
    machine.shell('echo after > "$1/file"', path)
    machine("snapshot", "restore", "first", "old")
    restored = machine.mount(pod("reader", claims=["old"]))["old"]["path"]
    assert machine.shell('cat "$1/file"', restored) == "before\n"
    assert machine.shell('cat "$1/file"', path) == "after\n"
    machine.unmount("reader")
    machine.unmount("web")
    machine("delete", "pvc", "old")
    machine("snapshot", "delete", "first")
    machine("delete", "pvc", "data")
    assert machine.get("volumesnapshotcontents") == []
    assert machine.left_behind() == []


def test_a_claim_is_cloned(machine, subject):
    skip_without(subject, "controller", "CLONE_VOLUME")
    machine.apply(claim("data"))
    path = machine.mount(pod("web", claims=["data"]))["data"]["path"]
    machine.shell('echo original > "$1/file"; sync', path)
    source = {"kind": "PersistentVolumeClaim", "name": "data"}
    machine.apply(claim("copy", dataSource=source))
    copy = machine.mount(pod("reader", claims=["copy"]))["copy"]["path"]
    assert machine.shell('cat "$1/file"', copy) == "original\n"
    machine.shell('echo changed > "$1/file"', copy)
    assert machine.shell('cat "$1/file"', path) == "original\n"
    machine.unmount("reader")
    machine.unmount("web")


def test_retain_keeps_the_volume(machine, subject):
    machine.apply(storage_class(subject, "kept", reclaimPolicy="Retain"))
    machine.apply(claim("data", storageClassName="kept"))
    machine.mount(pod("web", claims=["data"]))
    machine.unmount("web")
    (volume,) = machine.get("pv")
    machine("delete", "pvc", "data")
    (released,) = machine.get("pv")
    assert released["status"]["phase"] == "Released"
    patched = {**released, "spec": {**released["spec"], "persistentVolumeReclaimPolicy": "Delete"}}
    machine.apply(patched)
    wait_for(lambda: machine.get("pv") == [], f"{volume['metadata']['name']} is deleted")
