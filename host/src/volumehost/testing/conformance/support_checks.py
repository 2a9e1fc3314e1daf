"""Checks of the questions about a spec: is it the plugin's, and which storage does it stand for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError
from volumehost.testing.conformance.check import check, fail, not_applicable, require
from volumehost.testing.conformance.other_specs import empty_specs, known_sources, specs_of_other_kinds

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.testing.conformance.trial import Trial


def ask(trial: Trial, spec: Spec, what: str) -> bool:
    """The answer of can_support, which must be a bool and no exception."""
    try:
        answer: object = trial.plugin.can_support(spec)
    except Exception as error:  # noqa: BLE001 - that it raises at all is the finding
        fail(f"can_support raised {type(error).__name__}: {error}, asked about {what}")
    require(isinstance(answer, bool), f"can_support returned {answer!r}, not a bool, asked about {what}")
    return bool(answer)


@check("PLUG-04", mode="", mounts=False)
def it_supports_its_own_volume(trial: Trial) -> None:
    """can_support is true for a volume of the plugin's own."""
    where = trial.samples.where
    require(
        ask(trial, trial.spec, f"the volume {trial.spec.name()} of {where}"),
        f"can_support is false for the volume {trial.spec.name()} of {where}, whose source is "
        f"{trial.spec.source() or 'none'}",
    )


@check("PLUG-04", of_volume=False)
def it_supports_no_empty_spec(trial: Trial) -> None:
    """can_support is false for a spec without a source, and raises nothing."""
    for what, spec in empty_specs():
        require(not ask(trial, spec, what), f"can_support is true for {what}")


@check("PLUG-04", "MGR-FIND-03", mode="", mounts=False)
def it_supports_no_volume_of_others(trial: Trial) -> None:
    """can_support is false for every other kind of source, and for other drivers of its own kind; it raises nothing."""
    for what, spec in specs_of_other_kinds(trial.spec.source()):
        require(not ask(trial, spec, what), f"can_support is true for {what}")


@check("PLUG-04", mode="", mounts=False)
def asking_has_no_effect(trial: Trial) -> None:
    """can_support and get_volume_name change nothing: neither mounts nor files nor the spec."""
    _ = trial.plugin
    before, spec_before = _tree(trial.host.root_dir), wire(trial.spec)
    for _ in range(2):
        trial.plugin.can_support(trial.spec)
        trial.plugin.get_volume_name(trial.spec)
    require(not trial.new_mounts(), f"asking left mounts: {'; '.join(trial.new_mounts())}")
    changed = sorted(_tree(trial.host.root_dir) ^ before)
    require(not changed, f"asking created or removed {', '.join(changed)}")
    require(wire(trial.spec) == spec_before, "asking changed the spec, which is only lent")


@check(of_volume=False)
def declared_sources_are_kinds_of_kubernetes(trial: Trial) -> None:
    """What get_volume_sources declares are names of sources, in snake case."""
    unknown = _declared(trial) - known_sources()
    require(not unknown, f"get_volume_sources declares {sorted(unknown)}, which are no kinds of source")


@check(mode="", mounts=False)
def declared_sources_cover_what_it_supports(trial: Trial) -> None:
    """get_volume_sources names every kind of source for which can_support can be true: hosts ask about no other."""
    declared = _declared(trial)
    source = trial.spec.source()
    require(
        source in declared,
        f"get_volume_sources declares {sorted(declared)}, but the volume {trial.spec.name()} has the source {source!r}",
    )


@check("PLUG-03", mode="", mounts=False)
def the_volume_name_is_stable(trial: Trial) -> None:
    """get_volume_name is a text, the same each time and for every plugin object: unique names are built from it."""
    names = [trial.plugin.get_volume_name(trial.spec) for _ in range(2)]
    names.append(trial.restart().get_volume_name(trial.sample.new_spec() if trial.sample else trial.spec))
    require(all(names), "get_volume_name returned nothing")
    require({type(name) for name in names} == {str}, f"get_volume_name returned {names[0]!r}, which is no text")
    require(len(set(names)) == 1, f"get_volume_name returned {', '.join(map(repr, names))} for one and the same spec")


@check("PLUG-03", mode="", mounts=False)
def the_volume_name_of_other_kinds_is_refused(trial: Trial) -> None:
    """get_volume_name raises an error of the tree for a spec that is not the plugin's."""
    for what, spec in (*empty_specs(), *specs_of_other_kinds(trial.spec.source())):
        try:
            name = trial.plugin.get_volume_name(spec)
        except VolumeHostError:
            continue
        except Exception as error:  # noqa: BLE001 - an error from outside of the tree is the finding
            fail(f"get_volume_name raised {type(error).__name__}: {error}, which is no VolumeHostError, for {what}")
        fail(f"get_volume_name returned {name!r} for {what}")


@check("PLUG-05", "PLUG-09", "PLUG-10", mode="", mounts=False)
def optional_questions_are_answered_with_yes_or_no(trial: Trial) -> None:
    """requires_remount, supports_mount_option and supports_selinux_context_mount return a bool."""
    plugin, spec = trial.plugin, trial.spec
    answers: dict[str, object] = {
        "requires_remount": plugin.requires_remount(spec),
        "supports_mount_option": plugin.supports_mount_option(),
        "supports_selinux_context_mount": plugin.supports_selinux_context_mount(spec),
    }
    for hook, answer in answers.items():
        require(isinstance(answer, bool), f"{hook} returned {answer!r}, not a bool")


def _declared(trial: Trial) -> frozenset[str]:
    declared = trial.plugin.sources
    if declared is None:
        not_applicable("it has no get_volume_sources, so hosts ask it about every volume")
    return declared


def _tree(root: str) -> set[str]:
    return {f"{parent}/{name}" for parent, folders, files in os.walk(root) for name in (*folders, *files)}


def wire(spec: Spec) -> object:
    """The spec as plain data, to compare."""
    from volumehost.api.convert import to_wire

    if spec.persistent_volume is not None:
        return to_wire(spec.persistent_volume)
    return to_wire(spec.volume) if spec.volume is not None else None
