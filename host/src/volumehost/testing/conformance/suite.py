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
        """The suite of a plugin, below the session; its id is the plugin's name."""
        suite = cls.from_parent(session, path=session.config.rootpath / share.subject.name)
        suite.path = session.config.rootpath  # hooks of the conftest.py there are for it
        suite.name = share.subject.name
        suite.subject = share.subject
        suite.samples = share.samples
        return suite

    def collect(self) -> Iterator[ConformanceItem]:
        """One item for each check, or for each check and volume; the volume's name stands in the id if several."""
        volumes = self.samples.volumes
        for each in all_checks():
            if not each.of_volume or not volumes:
                yield ConformanceItem.of(self, each, None)
            for sample in volumes if each.of_volume else ():
                yield ConformanceItem.of(self, each, sample, label=sample.label if len(volumes) > 1 else "")


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
        if check.of_volume and sample is not None:
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
        """A verdict is shown as what must hold and what happened; an exception of the plugin with its traceback."""
        if not isinstance(excinfo.value, ConformanceFailure) or self.config.getoption("fulltrace"):
            return super().repr_failure(excinfo)
        rules = f" ({', '.join(self.check.rules)})" if self.check.rules else ""
        return f"must hold: {self.check.statement}{rules}\n\n{excinfo.value}"


def check_trial(check: Check, trial: Trial) -> None:
    """Run a check where it applies."""
    if trial.subject.error is not None and check.name != "it_loads":
        not_applicable("the plugin does not load, see it_loads")
    if check.of_volume:
        mode = trial.spec.volume_mode()
        if check.mode and mode != check.mode:
            not_applicable(f"{trial.spec.name()} has volumeMode {mode}")
    if check.interface and not trial.plugin.supports(getattr(hookspecs, check.interface)):
        not_applicable(f"it is no {check.interface}")
    check.function(trial)
