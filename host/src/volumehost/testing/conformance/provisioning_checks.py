"""Checks of the interfaces that make, delete and recycle volumes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import DeletedVolumeInUseError, OperationNotSupportedError
from volumehost.hookspecs import BlockVolumePlugin
from volumehost.sdk.quantity import parse_quantity
from volumehost.testing.conformance.bad_spec_checks import attempt
from volumehost.testing.conformance.check import check, fail, not_applicable, require
from volumehost.testing.conformance.other_specs import empty_specs, specs_of_other_kinds
from volumehost.testing.conformance.provisioned import ProvisionedVolumes, spec_of
from volumehost.testing.pods import make_pod

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial


@check("PLUG-23", "VOL-09", "SPEC-06", of_volume=False, interface="ProvisionableVolumePlugin")
def a_provisioned_volume_is_what_was_asked_for(trial: Trial) -> None:
    """A provisioner returns a PersistentVolume of the name asked for that fits the claim, keeps the reclaim policy
    and the mount options, and is the plugin's own.
    """
    with ProvisionedVolumes(trial) as volumes:
        options = volumes.options()
        made, claim = volumes.make(options), options.pvc.spec
        require(made.metadata.name == options.pv_name, f"it is named {made.metadata.name!r}, not {options.pv_name!r}")
        wanted = parse_quantity(claim.resources.requests["storage"])
        capacity = parse_quantity(made.spec.capacity.get("storage", "0"))
        require(capacity.value() >= wanted.value(), f"its capacity is {capacity}, less than the {wanted} of the claim")
        missing = set(claim.access_modes) - set(made.spec.access_modes)
        require(not missing, f"it lacks the access modes {sorted(missing)} of the claim")
        policy, found = options.persistent_volume_reclaim_policy, made.spec.persistent_volume_reclaim_policy
        require(found == policy, f"its reclaim policy is {found!r}, not {policy!r}")
        lost = set(options.mount_options) - set(made.spec.mount_options)
        require(not lost, f"it lost the mount options {sorted(lost)}")
        require(trial.plugin.can_support(spec_of(made)) is True, "can_support is false for it")


@check("PLUG-03", "VOL-09", of_volume=False, interface="ProvisionableVolumePlugin")
def provisioned_volumes_are_distinct(trial: Trial) -> None:
    """Two volumes that were provisioned have different volume names: they are different storage."""
    with ProvisionedVolumes(trial) as volumes:
        names = [trial.plugin.get_volume_name(spec_of(volumes.make())) for _ in range(2)]
        require(names[0] != names[1], f"both have the volume name {names[0]!r}")


@check("VOL-09", of_volume=False, mounts=True, interface="ProvisionableVolumePlugin")
def a_provisioned_volume_keeps_its_content(trial: Trial) -> None:
    """A provisioned volume can be mounted and written, and its content is there for the next pod."""
    with ProvisionedVolumes(trial) as volumes:
        spec = spec_of(volumes.make())
        first, second = make_pod(), make_pod()
        mounted = trial.set_up(first, spec=spec)
        content = trial.put_content(mounted)
        trial.tear_down(first, spec=spec, keep_content=True)
        trial.let_go(spec)
        path = trial.set_up(second, spec=spec).path
        content.require_kept("tear_down and set_up for another pod", path)


@check("VOL-09", of_volume=False, interface="ProvisionableVolumePlugin")
def a_claim_for_a_block_volume_is_honoured_or_refused(trial: Trial) -> None:
    """For a claim with volumeMode Block a plugin makes a Block volume, or raises OperationNotSupportedError."""
    with ProvisionedVolumes(trial) as volumes:
        volumes.make()  # it can make volumes at all
        options = volumes.options("Block")
        try:
            made = trial.plugin.new_provisioner(options).provision()
        except OperationNotSupportedError:
            return
        except Exception as error:  # noqa: BLE001 - any other error is the finding
            fail(f"it raised {type(error).__name__}: {error}, not OperationNotSupportedError")
        volumes.keep(made)
        mode = made.spec.volume_mode
        require(mode == "Block", f"it made a volume with volumeMode {mode or 'Filesystem'}")
        require(trial.plugin.supports(BlockVolumePlugin), "it made a Block volume, and is no BlockVolumePlugin")


@check("PLUG-22", "VOL-09", of_volume=False, interface="DeletableVolumePlugin")
def deleting_takes_the_storage_away(trial: Trial) -> None:
    """A delete of a provisioned volume removes what get_path of the deleter tells, and succeeds when it is gone
    already.
    """
    with ProvisionedVolumes(trial) as volumes:
        spec = spec_of(volumes.make())
        deleter = trial.plugin.new_deleter(spec)
        path = deleter.get_path()
        there = bool(path) and os.path.lexists(path)
        deleter.delete()
        require(not (there and os.path.lexists(path)), f"after delete there still is {path}")
        try:
            trial.plugin.new_deleter(spec).delete()
        except Exception as error:  # noqa: BLE001 - that it raises is the finding
            fail(f"delete of what is gone already raised {type(error).__name__}: {error}")


@check("VOL-09", of_volume=False, mounts=True, interface="DeletableVolumePlugin")
def deleting_what_is_in_use_is_refused_or_done(trial: Trial) -> None:
    """A delete of a volume that a pod has mounted raises DeletedVolumeInUseError and keeps it, or deletes it;
    afterwards the pod's mount can be torn down either way.
    """
    with ProvisionedVolumes(trial) as volumes:
        spec, pod = spec_of(volumes.make()), make_pod()
        content = trial.put_content(trial.set_up(pod, spec=spec))
        try:
            trial.plugin.new_deleter(spec).delete()
        except DeletedVolumeInUseError:
            content.require_kept("a refused delete")
        except Exception as error:  # noqa: BLE001 - any other error is the finding
            fail(f"delete of a mounted volume raised {type(error).__name__}: {error}, not DeletedVolumeInUseError")
        trial.tear_down(pod, spec=spec, keep_content=True)
        trial.let_go(spec)
        trial.require_nothing_left(pod, spec=spec)


@check("PLUG-22", of_volume=False, interface="DeletableVolumePlugin")
def deleting_what_is_not_its_own_is_refused_in_words(trial: Trial) -> None:
    """new_deleter for a spec that is not the plugin's raises an error of the tree."""
    own = next((sample.spec.source() for sample in trial.samples.volumes), next(iter(trial.plugin.sources or ()), ""))
    for what, spec in (*empty_specs(), *specs_of_other_kinds(own)):
        made = attempt(f"new_deleter for {what}", lambda spec=spec: trial.plugin.new_deleter(spec))  # type: ignore[misc]
        require(not made, f"new_deleter for {what} returned a deleter")


@check("PLUG-21", "RECYCLE-02", of_volume=False, mounts=True, interface="RecyclableVolumePlugin")
def recycling_empties_the_volume(trial: Trial) -> None:
    """A recycle returns when the volume is empty; the volume itself is still there and can be mounted."""
    with ProvisionedVolumes(trial) as volumes:
        volume = volumes.make()
        spec, before, after = spec_of(volume), make_pod(), make_pod()
        mounted = trial.set_up(before, spec=spec)
        if not mounted.writable:
            not_applicable(f"{mounted.path} cannot be written")
        content = trial.put_content(mounted)
        trial.tear_down(before, spec=spec, keep_content=True)
        trial.let_go(spec)
        trial.plugin.recycle(volume.metadata.name, spec, _ignore)
        path = trial.set_up(after, spec=spec).path
        require(not os.path.lexists(f"{path}/{content.file}"), f"after recycle {content.file} is still in {path}")


def _ignore(event_type: str, message: str) -> None:
    del event_type, message
