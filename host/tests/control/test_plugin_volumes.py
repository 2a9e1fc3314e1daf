"""Volumes that a plugin of this process makes, deletes and recycles (PVC-41, -42, -51, -52)."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost import hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod
from volumehost.errors import DeletedVolumeInUseError, InvalidObjectError, OperationError, StoreError

NAME = "example.com/shelf"


class Shelf:
    """A plugin whose volumes are names on a list; what it is to do wrong is set from outside."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.errors: dict[str, list[Exception]] = {}
        self.emptied: list[str] = []
        self.options: Any = None
        self.seen: Any = None

    def fail(self, what: str, *errors: Exception) -> None:
        self.errors.setdefault(what, []).extend(errors)

    def do(self, what: str) -> None:
        if self.errors.get(what):
            raise self.errors[what].pop(0)

    @hookimpl
    def get_plugin_name(self) -> str:
        return NAME

    @hookimpl
    def get_volume_name(self, spec: Any) -> str:
        return spec.name()

    @hookimpl
    def can_support(self, spec: Any) -> bool:
        found = spec.persistent_volume
        return found is not None and found.spec.host_path is not None

    @hookimpl
    def new_mounter(self, spec: Any, pod: Any) -> Any:
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def new_provisioner(self, options: Any) -> Any:
        self.options = options
        return _Provisioner(self, options)

    @hookimpl
    def new_deleter(self, spec: Any) -> Any:
        return _Deleter(self, spec.name())

    @hookimpl
    def recycle(self, pv_name: str, spec: Any, event_recorder: Any) -> None:
        event_recorder("Normal", "sweeping")
        self.do("recycle")
        self.emptied.append(pv_name)


class _Provisioner:
    def __init__(self, shelf: Shelf, options: Any) -> None:
        self.shelf, self.options = shelf, options

    def provision(self, selected_node: Any = None, allowed_topologies: Any = ()) -> PersistentVolume:
        self.shelf.do("provision")
        self.shelf.seen = (selected_node, allowed_topologies)
        self.shelf.made.append(self.options.pv_name)
        spec = {
            "capacity": {"storage": self.options.pvc.spec.resources.requests["storage"]},
            "accessModes": self.options.pvc.spec.access_modes,
            "persistentVolumeReclaimPolicy": self.options.persistent_volume_reclaim_policy,
            "hostPath": {"path": f"/srv/{self.options.pv_name}"},
        }
        return to_object(PersistentVolume, {"metadata": {"name": self.options.pv_name}, "spec": spec})


class _Deleter:
    def __init__(self, shelf: Shelf, name: str) -> None:
        self.shelf, self.name = shelf, name

    def delete(self) -> None:
        self.shelf.do("delete")
        if self.name in self.shelf.made:
            self.shelf.made.remove(self.name)


@pytest.fixture
def shelf(world: Any) -> Shelf:
    shelf = Shelf()
    assert world.plugins.init_plugins([shelf]) == []
    return shelf


def test_pvc_51_52_a_plugin_provisions(world: Any, make: Any, shelf: Shelf) -> None:
    world.api.create(make.storage_class(provisioner=NAME, parameters={"row": "3"}))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    claim = world.claim()
    volume = world.volume(f"pvc-{claim.metadata.uid}")
    assert shelf.made == [volume.metadata.name]
    assert shelf.options.parameters == {"row": "3"}
    assert volume.metadata.annotations["pv.kubernetes.io/provisioned-by"] == NAME
    assert volume.metadata.annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert "kubernetes.io/pv-controller" in volume.metadata.finalizers
    assert volume.spec.storage_class_name == "fast"
    assert world.events("ProvisioningSucceeded")
    world.api.delete(PersistentVolumeClaim, "data", "default")
    world.wait(lambda: world.gone(volume))
    assert shelf.made == []


def test_pvc_51_a_failure_is_told_and_tried_again(world: Any, make: Any, shelf: Shelf) -> None:
    shelf.fail("provision", OperationError("the shelf is full"))
    world.api.create(make.storage_class(provisioner=NAME))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    assert "the shelf is full" in world.events("ProvisioningFailed")[0].message


@pytest.mark.parametrize(
    ("claim", "storage_class", "reason"),
    [
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}, {}, "data source"),
        ({"selector": {"matchLabels": {"a": "b"}}}, {}, "selector"),
        ({}, {"mountOptions": ["noatime"]}, "takes no mount options"),
    ],
)
def test_pvc_51_what_a_plugin_cannot_do(
    world: Any, make: Any, shelf: Shelf, claim: Any, storage_class: Any, reason: str
) -> None:
    world.api.create(make.storage_class(provisioner=NAME, **storage_class))
    world.api.create(make.claim(**claim))
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert reason in world.events("ProvisioningFailed")[0].message
    assert shelf.made == []


def test_pvc_51_an_exit_in_a_plugin_ends_nothing_else(world: Any, make: Any, shelf: Shelf) -> None:
    shelf.fail("provision", SystemExit(3))  # type: ignore[arg-type]
    world.api.create(make.storage_class(provisioner=NAME))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)


class _Refusing:
    """An API that refuses to store volumes."""

    def __init__(self, api: Any, *errors: Exception) -> None:
        self._api, self._errors = api, list(errors)

    def create(self, obj: Any) -> Any:
        if isinstance(obj, PersistentVolume) and self._errors:
            raise self._errors.pop(0)
        return self._api.create(obj)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


def provision_with(world: Any, make: Any, *errors: Exception) -> Any:
    from volumehost.control.provisioning.plugin_provisioner import PluginProvisioner

    api = _Refusing(world.api, *errors)
    plugin = world.plugins.find_provisionable_plugin_by_name(NAME)
    claim = world.api.create(make.claim())
    return PluginProvisioner(world.context(api=api)).provision(plugin, claim, make.storage_class(), None)


def test_pvc_52_saving_is_tried_five_times(world: Any, make: Any, shelf: Shelf) -> None:
    volume = provision_with(world, make, *[StoreError("disk full")] * 4)
    assert shelf.made == [volume.metadata.name]


def test_pvc_52_what_cannot_be_saved_is_deleted_again(world: Any, make: Any, shelf: Shelf) -> None:
    with pytest.raises(StoreError):
        provision_with(world, make, *[StoreError("disk full")] * 5)
    assert shelf.made == []
    assert not world.events("ProvisioningCleanupFailed")


def test_pvc_52_and_told_when_that_fails_too(world: Any, make: Any, shelf: Shelf) -> None:
    shelf.fail("delete", OperationError("stuck"))
    with pytest.raises(InvalidObjectError):
        provision_with(world, make, InvalidObjectError(subject="pv", problems=[("spec", "bad")]))
    assert "stuck" in world.events("ProvisioningCleanupFailed")[0].message


def test_pvc_42_in_use_is_no_failure(world: Any, make: Any, shelf: Shelf) -> None:
    shelf.fail("delete", DeletedVolumeInUseError("a reader sits on it"))
    world.api.create(make.storage_class(provisioner=NAME))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    (volume,) = world.volumes()
    world.api.delete(PersistentVolumeClaim, "data", "default")
    world.wait(lambda: world.gone(volume))
    assert "a reader sits on it" in world.events("VolumeDelete")[0].message
    assert not world.events("VolumeFailedDelete")


def released(world: Any, make: Any, policy: str) -> None:
    world.api.create(make.volume(policy=policy))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    world.api.delete(PersistentVolumeClaim, "data", "default")


def test_pvc_42_a_volume_made_by_hand_is_deleted_by_the_plugin_that_serves_it(
    world: Any, make: Any, shelf: Shelf
) -> None:
    shelf.made.append("pv")
    released(world, make, "Delete")
    world.wait(lambda: shelf.made == [])
    world.wait(lambda: not world.volumes())


def test_pvc_42_without_a_plugin_the_volume_fails(world: Any, make: Any) -> None:
    released(world, make, "Delete")
    world.wait(lambda: bool(world.events("VolumeFailedDelete")))
    world.wait(lambda: world.volume("pv").status.phase == "Failed")


def test_pvc_41_recycle_empties_and_offers_again(world: Any, make: Any, shelf: Shelf) -> None:
    released(world, make, "Recycle")
    world.wait(lambda: world.volume("pv").status.phase == "Available")
    assert shelf.emptied == ["pv"]
    assert world.volume("pv").spec.claim_ref is None
    assert world.events("RecyclerPod")[0].message == "Recycler pod: sweeping"
    assert world.events("VolumeRecycled")[0].event_type == "Normal"
    world.api.create(make.claim("next"))
    world.wait(lambda: world.bound("next"))


def test_pvc_41_a_failure_is_told_and_tried_again(world: Any, make: Any, shelf: Shelf) -> None:
    shelf.fail("recycle", OperationError("no broom"))
    released(world, make, "Recycle")
    world.wait(lambda: world.volume("pv").status.phase == "Available")
    assert world.events("VolumeFailedRecycle")[0].message == "Recycle failed: no broom"


def test_pvc_41_no_recycler(world: Any, make: Any) -> None:
    released(world, make, "Recycle")
    world.wait(lambda: world.volume("pv").status.phase == "Failed")
    assert world.events("VolumeFailedRecycle")[0].message == "No recycler plugin found for the volume!"


@pytest.mark.parametrize("ended", [False, True])
def test_pvc_41_a_volume_that_pods_still_name_is_not_emptied(world: Any, make: Any, shelf: Shelf, ended: bool) -> None:
    claim_ref = {"namespace": "default", "name": "data", "uid": "gone"}
    pod = make.pod(claims=["data"])
    pod.metadata.finalizers = ["volumehost.io/volumes"] if ended else []
    pod = world.api.create(pod)
    if ended:  # its node may still have the volume mounted
        pod.status.phase = "Succeeded"
        world.api.replace_status(pod)
    world.api.create(make.volume(policy="Recycle", claim_ref=claim_ref))
    world.run_all()
    world.wait(lambda: bool(world.events("VolumeFailedRecycle")))
    assert world.events("VolumeFailedRecycle")[0].message == "Volume is used by pods: default/web"
    world.settle()
    assert shelf.emptied == []
    assert world.volume("pv").status.phase == "Released"
    world.api.delete(Pod, "web", "default")
    if ended:
        world.api.patch(Pod, "web", {"metadata": {"finalizers": None}})
    world.api.patch(PersistentVolume, "pv", {"metadata": {"labels": {"look": "again"}}})
    world.wait(lambda: world.volume("pv").status.phase == "Available")
