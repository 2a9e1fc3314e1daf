"""The pytest nodes of the conformance run: a suite for each plugin, an item for each check and volume."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import pytest

from volumehost import hookspecs
from volumehost.loader.guard import Guard
from volumehost.testing.conformance.check import Check, ConformanceFailure, not_applicable

if TYPE_CHECKING:
    from os import PathLike

    from volumehost.testing.conformance.samples import Sample, Samples
    from volumehost.testing.conformance.sharing import Share
    from volumehost.testing.conformance.subject import PluginUnderTest
    from volumehost.testing.conformance.trial import Trial

#: The modules with checks, in the order in which they run.
MODULES = (
    "contract_checks",
    "support_checks",
    "lifecycle_checks",
    "restart_checks",
    "interruption_checks",
    "pods_checks",
    "metrics_checks",
    "remount_checks",
    "attachment_checks",
    "block_checks",
    "resize_checks",
    "provisioning_checks",
    "bad_spec_checks",
    "secrets_checks",
    "process_checks",
)


def all_checks() -> list[Check]:
    """Every check, in order."""
    modules = (import_module(f"volumehost.testing.conformance.{name}") for name in MODULES)
    return [value for module in modules for value in vars(module).values() if isinstance(value, Check)]


class ConformanceSuite(pytest.Module):
    """The checks of one plugin. A Module, because fixtures and other plugins expect functions to lie in one."""

    obj: Any = None
    subject: PluginUnderTest
    samples: Samples

    @classmethod
    def of(cls, session: pytest.Session, share: Share) -> Self:
        """The suite of a plugin, below the session; its id is that of the plugin."""
        suite = cls.from_parent(session, path=session.config.rootpath / share.subject.id)
        suite.path = session.config.rootpath  # hooks of the conftest.py there are for it
        suite.name = share.subject.id
        suite.subject = share.subject
        suite.samples = share.samples
        return suite

    def collect(self) -> Iterator[ConformanceItem]:
        """One item for each check, or for each check and volume of its mode; ids name the volume if there are several.

        A check of volumes for which there is none is still there, and will say so.
        """
        several = len(self.samples.volumes) > 1
        for each in all_checks():
            fitting = [sample for sample in self.samples.volumes if each.of_volume and each.is_for(sample.spec)]
            for sample in fitting:
                yield ConformanceItem.of(self, each, sample, label=sample.label if several else "")
            if not fitting:
                yield ConformanceItem.of(self, each, None)


class ConformanceItem(pytest.Function):
    """One check of one plugin, with one volume or none."""

    check: Check
    subject: PluginUnderTest
    samples: Samples
    sample: Sample | None

    @classmethod
    def of(cls, suite: ConformanceSuite, check: Check, sample: Sample | None, label: str = "") -> Self:
        """The item of a check."""

        def run_check(volumehost_trial: Trial) -> None:
            __tracebackhide__ = True
            check_trial(check, volumehost_trial)

        name = f"{check.name}[{label}]" if label else check.name
        item = cls.from_parent(suite, name=name, callobj=run_check)
        item.check = check
        item.subject = suite.subject
        item.samples = suite.samples
        item.sample = sample
        item.add_marker("volume_conformance")
        if check.mounts and (sample is not None or not check.of_volume):
            item.fixturenames.insert(0, "volumehost_namespace")
        return item

    @property
    def volume_objects(self) -> tuple[Any, ...]:
        """What the fixture ``volumehost_api`` puts into the plugin's API."""
        return self.samples.objects

    def runtest(self) -> None:
        """Run the check in a thread of its own, so that a plugin that hangs fails it and does not stop the run."""
        timeout = self.config.getoption("volume_timeout")
        if timeout <= 0 or self.config.getoption("usepdb"):
            super().runtest()
            return
        outcome = Guard().run(super().runtest, timeout, f"check {self.name}")
        if outcome.error is not None:
            raise outcome.error

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """Where the check stands."""
        code = self.check.function.__code__
        return code.co_filename, code.co_firstlineno - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002 - as in Node
        """A verdict is shown as what happened and what must hold; an exception of the plugin with its traceback."""
        if not isinstance(excinfo.value, ConformanceFailure) or self.config.getoption("fulltrace"):
            return super().repr_failure(excinfo)
        rules = f" ({', '.join(self.check.rules)})" if self.check.rules else ""
        return f"{excinfo.value}\n\nmust hold: {self.check.statement}{rules}"


def check_trial(check: Check, trial: Trial) -> None:
    """Run a check where it applies."""
    __tracebackhide__ = _is_no_skip
    if trial.subject.error is not None and check.name != "it_loads":
        not_applicable("the plugin does not load, see it_loads")
    if check.interface and not trial.plugin.supports(getattr(hookspecs, check.interface)):
        not_applicable(f"it is no {check.interface}")
    if check.of_volume and trial.sample is None:
        mode = f" with volumeMode {check.mode}" if check.mode and trial.samples.volumes else ""
        not_applicable(f"no volume{mode} of {trial.subject.name} was given: --volume-spec FILE")
    check.function(trial)


def _is_no_skip(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    return not excinfo.errisinstance(pytest.skip.Exception)
