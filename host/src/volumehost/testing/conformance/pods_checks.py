"""Checks of several pods with one volume at a time: none may notice the others come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.testing.conformance.check import check, fail, not_applicable

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.testing.conformance.content import Content
    from volumehost.testing.conformance.trial import Trial

_AT_ONCE = 8
_MANY = 40
_ROUNDS = 3
_DEADLINE = 30.0


@check("VOL-05", "VOL-06")
def a_pod_that_goes_does_not_disturb_another(trial: Trial) -> None:
    """When one of two pods with the volume goes, the other keeps its mount and its content."""
    _require_sharing(trial)
    stays, goes = trial.pod, trial.another_pod()
    content = trial.put_content(trial.set_up(stays))
    trial.set_up(goes)
    content.require_kept("set_up for another pod")
    trial.tear_down(goes, keep_content=True)
    content.require_kept("tear_down of the other pod's volume")
    trial.tear_down(stays)
    trial.let_go()
    trial.require_nothing_left(stays, goes)


@check("NPO-11", "VOL-05")
def pods_at_the_same_time_do_not_disturb_each_other(trial: Trial) -> None:
    """set_up and tear_down for different pods at the same moment, in threads, give each pod its volume and leave
    nothing.
    """
    _require_sharing(trial)
    trial.stage()
    pods: list[Pod] = []
    for _ in range(_ROUNDS):
        pods = [trial.another_pod() for _ in range(_AT_ONCE)]
        contents: dict[str, Content] = {}

        def come(pod: Pod, contents: dict[str, Content] = contents) -> None:
            contents[pod.metadata.uid] = trial.put_content(trial.set_up_only(pod))

        _in_threads(pods, come, "set_up")
        for pod in pods:
            contents[pod.metadata.uid].require_kept("set_up for several pods at the same time")
        _in_threads(pods, lambda pod: trial.tear_down(pod, keep_content=True), "tear_down")
    trial.let_go()
    trial.require_nothing_left(*pods, after="set_up and tear_down for several pods at the same time")


@check("VOL-05", "VOL-06")
def many_pods_can_use_it(trial: Trial) -> None:
    """Forty pods with the volume, set up one after the other and torn down in another order: nothing is left."""
    _require_sharing(trial)
    pods = [trial.another_pod() for _ in range(_MANY)]
    contents = [trial.put_content(trial.set_up(pod)) for pod in pods]
    for content in contents:
        content.require_kept(f"set_up for {_MANY} pods")
    for pod in [*pods[1::2], *pods[::2]]:
        trial.tear_down(pod, keep_content=True)
    trial.let_go()
    trial.require_nothing_left(*pods)


def _require_sharing(trial: Trial) -> None:
    volume = trial.spec.persistent_volume
    if volume is not None and volume.spec.access_modes == ["ReadWriteOncePod"]:
        not_applicable("the volume is for one pod alone: ReadWriteOncePod")


def _in_threads(pods: Sequence[Pod], call: Callable[[Pod], None], what: str) -> None:
    """Call for each pod in a thread of its own, all at the same moment; the first exception fails the check."""
    barrier = threading.Barrier(len(pods))
    errors: list[Exception] = []

    def run(pod: Pod) -> None:
        try:
            barrier.wait(_DEADLINE)
            call(pod)
        except Exception as error:  # noqa: BLE001 - told in the thread of the check
            errors.append(error)

    threads = [threading.Thread(target=run, args=(pod,), daemon=True) for pod in pods]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _DEADLINE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        fail(f"{what} for {len(pods)} pods at the same time did not end within {_DEADLINE:g} s")
    if errors:
        fail(f"{what} for {len(pods)} pods at the same time raised {type(errors[0]).__name__}: {errors[0]}")
