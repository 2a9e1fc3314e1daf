"""Checks of the plugin as the host loads it: its name, its interfaces, its answers to the simplest questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.loader.names import is_reserved
from volumehost.loader.trust import OWN_DISTRIBUTIONS
from volumehost.testing.conformance.check import check, fail, require
from volumehost.testing.conformance.subject import told_name

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial


@check("MGR-INIT-07", "MGR-NAME-01", of_volume=False)
def it_loads(trial: Trial) -> None:
    """The plugin loads: it has a valid name, all hooks of every interface that it has a hook of, signatures that the
    host can call, and an init that works.
    """
    if trial.subject.error is not None:
        fail(str(trial.subject.error))
    trial.plugin  # noqa: B018 - loads it, and raises when it does not load


@check("PLUG-02", of_volume=False)
def its_name_is_constant(trial: Trial) -> None:
    """get_plugin_name answers the same each time, before and after init, and for every plugin object."""
    names: list[object] = [trial.plugin.get_plugin_name(), trial.plugin.get_plugin_name()]
    names += [told_name(trial.subject.thing), trial.restart().get_plugin_name()]
    require(len(set(names)) == 1, f"it told these names: {', '.join(map(repr, names))}")


@check("MGR-NAME-05", of_volume=False)
def its_name_is_not_reserved(trial: Trial) -> None:
    """The namespace kubernetes.io/ is left to the distributions that may use it."""
    name, distribution = trial.plugin.name, trial.subject.distribution
    require(
        not is_reserved(name) or distribution in OWN_DISTRIBUTIONS,
        f"{name} comes from {distribution}; hosts accept such names from {', '.join(OWN_DISTRIBUTIONS)} only",
    )


@check("PLUG-01", of_volume=False)
def it_can_be_shut_down_and_made_again(trial: Trial) -> None:
    """Its shutdown works, also twice in the life of a process, and a new plugin object works after it."""
    for _ in range(2):
        errors = trial.stop()
        require(not errors, f"shutdown failed: {'; '.join(map(str, errors))}")
        trial.restart()


@check("PLUG-20", of_volume=False, interface="PersistentVolumePlugin")
def access_modes_are_those_of_kubernetes(trial: Trial) -> None:
    """get_access_modes names at least one of the four modes of Kubernetes, and no other."""
    known = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}
    modes = trial.plugin.get_access_modes()
    require(not isinstance(modes, str), f"get_access_modes returned the string {modes!r}, not a sequence of strings")
    require(modes, "get_access_modes returned nothing")
    require(set(modes) <= known, f"get_access_modes returned {sorted(set(modes) - known)}; there are {sorted(known)}")
