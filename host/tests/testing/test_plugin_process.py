"""The process in which calls of a plugin are killed between two steps."""

from __future__ import annotations

import os

import pytest

from volumehost.testing.conformance.check import ConformanceFailure
from volumehost.testing.conformance.interruption_checks import _points
from volumehost.testing.conformance.plugin_process import PluginProcess
from volumehost.testing.conformance.samples import read_samples
from volumehost.testing.conformance.subject import find_plugin
from volumehost.testing.conformance.trial import Trial
from volumehost.testing.plugin_host import PluginTestHost

pytestmark = pytest.mark.root


@pytest.fixture
def make_trial(tmp_path, support, filesystem_volume):
    """Makes the trial of a plugin with the volume."""
    trials = []

    def make(target="complete_plugin:CompletePlugin"):
        (tmp_path / "volumes.yaml").write_text(filesystem_volume)
        samples = read_samples([str(tmp_path / "volumes.yaml")])
        trials.append(Trial(find_plugin(target), PluginTestHost(str(tmp_path)), samples, samples.volumes[0]))
        return trials[-1]

    yield make
    for trial in trials:
        trial.close()


@pytest.fixture
def trial(make_trial):
    return make_trial()


@pytest.fixture
def process(trial):
    with PluginProcess(trial) as process:
        yield process


def test_calls_run_in_a_process_of_their_own_on_the_same_root_directory(trial, process):
    outcome = process.call("set_up", trial.pod)
    assert outcome.value == trial.volume_dir(trial.pod)
    assert trial.host.get_mounter().is_mount_point(outcome.value)
    assert any(step == f"mount {outcome.value}" for step in outcome.steps)
    assert process.call("tear_down", trial.pod).error == ""
    trial.require_nothing_left()


def test_a_call_is_killed_before_the_step_that_was_chosen(trial, process):
    for pod in (trial.pod, trial.another_pod()):  # the very first time has more steps than any other
        steps = process.call("set_up", pod).steps
        process.call("tear_down", pod)
    number = steps.index(f"mount {trial.volume_dir(pod)}")
    pod = trial.another_pod()
    outcome = process.call("set_up", pod, kill_at=number)
    assert outcome.killed
    assert os.path.isdir(trial.volume_dir(pod))
    assert not trial.host.get_mounter().is_mount_point(trial.volume_dir(pod))
    process.call("tear_down", pod)
    pod = trial.another_pod()
    assert process.call("set_up", pod, kill_at=number + 1).killed
    assert trial.host.get_mounter().is_mount_point(trial.volume_dir(pod))
    assert process.call("tear_down", pod).error == ""


def test_a_call_is_killed_when_all_is_done_and_before_it_returns(trial, process):
    steps = process.call("volume_name", trial.pod).steps
    assert steps == ()
    assert process.call("volume_name", trial.pod, kill_at=0).killed
    assert not process.call("volume_name", trial.pod, kill_at=1).killed


def test_what_a_call_raises_is_told(make_trial):
    with PluginProcess(make_trial("good_variants:FailingPlugin")) as process:
        outcome = process.call("set_up", make_trial("good_variants:FailingPlugin").pod)
    assert outcome.error == "MountError: reaching the array: no such server"


def test_a_plugin_that_cannot_be_had_there_fails_the_check(trial, monkeypatch):
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if "support" not in path])
    with pytest.raises(ConformanceFailure, match="No module named 'complete_plugin'"):
        PluginProcess(trial)


def test_the_process_ends_with_the_check(trial, volumehost_leaks):
    with PluginProcess(trial) as process:
        process.call("set_up", trial.pod)
        process.call("tear_down", trial.pod)


@pytest.mark.parametrize("count", [0, 1, 5, 16, 17, 100])
def test_points_of_interruption(count):
    steps = ["os.mkdir a"] * count
    points = _points(steps)
    assert points == sorted(set(points))
    assert {0, count} <= set(points) <= set(range(count + 1))
    assert len(points) == min(16, count + 1)


def test_interruptions_are_around_what_matters_first():
    steps = ["os.mkdir a"] * 100
    steps[71] = "mount b"
    assert {71, 72} <= set(_points(steps))
