"""Checks of specs that are wrong or hostile: refused in words, with nothing half done and nothing reached outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError
from volumehost.testing.conformance.check import check, fail, require
from volumehost.testing.conformance.driving import let_go, take_down
from volumehost.testing.conformance.hostile import HOSTILE_NAMES, with_name, with_nonsense, with_uid
from volumehost.testing.conformance.other_specs import empty_specs, specs_of_other_kinds

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.spec import Spec
    from volumehost.testing.conformance.trial import Trial


def attempt(what: str, call: Callable[[], object]) -> bool:
    """Call; whether it worked. An error of the tree is a refusal, any other fails the check."""
    try:
        call()
    except VolumeHostError:
        return False
    except AssertionError:
        raise  # a verdict
    except Exception as error:  # noqa: BLE001 - an error from outside of the tree is the finding
        fail(f"{what} raised {type(error).__name__}: {error}, which is no VolumeHostError")
    return True


@check("PLUG-06", "ERR-03")
def mounting_what_is_not_its_own_is_refused_in_words(trial: Trial) -> None:
    """A mounter of a spec that is not the plugin's is either not made or does nothing; errors are of the tree, and
    nothing is left.
    """
    for what, spec in (*empty_specs(), *specs_of_other_kinds(trial.spec.source())):
        attempt(f"new_mounter for {what}", lambda spec=spec: trial.plugin.new_mounter(spec, trial.pod))  # type: ignore[misc]
        require(not trial.new_mounts(), f"new_mounter for {what} mounted {'; '.join(trial.new_mounts())}")


@check("LAYOUT-03", "VOL-05")
def hostile_names_reach_nothing_outside(trial: Trial) -> None:
    """Volumes and pods whose names are paths (..), too long or empty are refused with an error of the tree, or do no
    harm: set_up and tear_down make, change and remove nothing outside of the volume's own directory.
    """
    keep = _canaries(trial)
    for name in HOSTILE_NAMES:
        for what, spec, pod in (
            (f"the volume name {_shown(name)}", with_name(trial.spec, name), trial.pod),
            (f"the pod uid {_shown(name)}", trial.spec, with_uid(trial.pod, name)),
        ):
            before = _outside(trial, pod)
            _up_and_down(trial, what, spec, pod)
            changed = sorted(_outside(trial, pod) ^ before)
            require(not changed, f"with {what} it made or removed {', '.join(changed)}")
            gone = [path for path in keep if not os.path.exists(path)]
            require(not gone, f"with {what} it removed {', '.join(gone)}")


@check("ERR-03", "VOL-05")
def nonsense_settings_are_refused_in_words(trial: Trial) -> None:
    """Each setting of the volume's source with a value that makes no sense: the volume works nevertheless, or an error
    of the tree says why not, and nothing is left.
    """
    for what, spec in with_nonsense(trial.spec):
        pod = trial.another_pod()
        _up_and_down(trial, what, spec, pod)
        left = [*(f"a mount at {mount}" for mount in trial.new_mounts()), *trial.leftovers(pod)]
        require(not left, f"with {what} there is left: {'; '.join(left)}")


def _up_and_down(trial: Trial, what: str, spec: Spec, pod: Pod) -> None:
    """Set up and tear down; what was refused in words is torn down all the same, as a node does."""
    attempt(f"set_up with {what}", lambda: trial.set_up(pod, spec=spec))
    attempt(f"tear_down with {what}", lambda: take_down(trial.plugin, spec, pod.metadata.uid))
    attempt(f"letting go with {what}", lambda: let_go(trial.plugin, spec, trial.host.get_node_name()))
    trial.forget_pod(pod)


def _canaries(trial: Trial) -> list[str]:
    """Files in all the places to which a name with dots could lead."""
    directory = trial.volume_dir(trial.pod)
    paths = []
    while directory.startswith(trial.host.root_dir):
        directory = os.path.dirname(directory)
        os.makedirs(f"{directory}/keep", mode=0o750, exist_ok=True)
        paths.append(f"{directory}/keep/this")
        with open(paths[-1], "w", encoding="ascii"):
            pass
    return paths


def _outside(trial: Trial, pod: Pod) -> frozenset[str]:
    """All paths around the root directory but the plugin's own, and the pod's volumes of this plugin."""
    top = os.path.dirname(trial.host.root_dir)
    allowed = [f"{trial.host.root_dir}/plugins"]
    if pod.metadata.uid not in HOSTILE_NAMES:
        allowed += [os.path.dirname(trial.volume_dir(pod)), f"{trial.host.layout.pod_dir(pod.metadata.uid)}/plugins"]
    found = set()
    for parent, folders, files in os.walk(top):
        folders[:] = [name for name in folders if f"{parent}/{name}" not in allowed]
        found |= {f"{parent}/{name}" for name in (*folders, *files)}
    return frozenset(found)


def _shown(name: str) -> str:
    return repr(name) if len(name) < 40 else f"of {len(name)} characters"
