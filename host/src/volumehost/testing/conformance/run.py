"""The conformance run as a part of a pytest session: collects the checks of each plugin that was named.

Registered by the pytest plugin when ``--volume-plugin`` is given.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from volumehost.errors import VolumeHostError
from volumehost.loader.guard import Guard
from volumehost.testing.conformance.samples import Samples, read_samples
from volumehost.testing.conformance.sharing import Share, share_out
from volumehost.testing.conformance.subject import PluginUnderTest, find_plugin, with_ids
from volumehost.testing.conformance.suite import ConformanceItem, ConformanceSuite
from volumehost.testing.conformance.trial import Trial
from volumehost.testing.leaks import LeakGuard

if TYPE_CHECKING:
    from volumehost.testing.plugin_host import PluginTestHost


_NO_LIMIT = 3600.0


class ConformanceRun:
    """Adds one suite for each plugin to the session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._subjects = with_ids([_found(name) for name in dict.fromkeys(config.getoption("volume_plugin"))])
        self._samples = _read(config)
        limit: float = config.getoption("volume_timeout")
        self._timeout = limit if limit > 0 else _NO_LIMIT
        self._shares: list[Share] = []
        self._selected: list[str] | None = None

    @pytest.fixture
    def volumehost_trial(
        self, request: pytest.FixtureRequest, tmp_path: object, volumehost_host: PluginTestHost
    ) -> Iterator[Trial]:
        """What a check is handed. Whatever a faulty plugin leaves behind is gone before the next check."""
        item = request.node
        with LeakGuard(str(tmp_path), grace=0.0) as guard:
            trial = Trial(item.subject, volumehost_host, item.samples, item.sample)
            yield trial
            Guard().run(trial.close, self._timeout, "clean up")  # with a deadline: what hung before may hang again
            guard.take_away()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Take arguments that are ids of checks out of those that pytest looks for on the disk.

        Only now: the processes of pytest-xdist get the arguments as they were given.
        """
        own = [(argument, self._own_id(argument)) for argument in self._config.args]
        selected = [own_id for _, own_id in own if own_id]
        if selected:
            self._config.args = [argument for argument, own_id in own if not own_id]
            self._selected = selected

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the suites to what the session has collected."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            report.result = [*report.result, *self._suites(collector)]
        return report

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of the checks keep those that were asked for by id."""
        if self._selected is None:
            return
        deselected = [item for item in items if self._is_deselected(item)]
        if deselected:
            self._config.hook.pytest_deselected(items=deselected)
            items[:] = [item for item in items if item not in deselected]

    def pytest_report_header(self) -> list[str]:
        """Say what is tested."""
        return [f"volume plugin: {_described(subject)}" for subject in self._subjects]

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say which volumes of the files are not tested, so that none is left out unnoticed."""
        return [
            f"volume plugin {share.subject.id}: it does not support {', '.join(share.left_out)}, which is not tested"
            for share in self._shares
            if share.left_out
        ]

    def _suites(self, session: pytest.Session) -> Iterator[ConformanceSuite]:
        self._shares = share_out(self._subjects, self._samples, timeout=self._timeout)
        for share in self._shares:
            if self._selected is None or any(_covers(wanted, share.subject.id) for wanted in self._selected):
                yield ConformanceSuite.of(session, share)

    def _own_id(self, argument: str) -> str:
        """The id that the argument is, as it stands or as reports show it from another directory; else ""."""
        file, separator, rest = argument.partition("::")
        below_root = os.path.relpath(os.path.join(self._config.invocation_params.dir, file), self._config.rootpath)
        for subject in self._subjects:
            if {file, below_root} & {subject.id, subject.target} and not os.path.exists(file):
                return subject.id + separator + rest
        return ""

    def _is_deselected(self, item: pytest.Item) -> bool:
        if not isinstance(item, ConformanceItem):
            return False
        return not any(_covers(item.nodeid, wanted) for wanted in self._selected or ())


def _covers(nodeid: str, wanted: str) -> bool:
    """Whether an item is the wanted one, lies below it, or is it for one of several volumes."""
    return nodeid == wanted or nodeid.startswith((f"{wanted}::", f"{wanted}["))


def _found(name: str) -> PluginUnderTest:
    try:
        return find_plugin(name)
    except (VolumeHostError, ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(f"--volume-plugin {name}: {error}") from error


def _read(config: pytest.Config) -> Samples:
    directory = config.invocation_params.dir
    files = [os.path.join(directory, file) for file in config.getoption("volume_spec")]
    try:
        return read_samples(files)
    except VolumeHostError as error:
        raise pytest.UsageError(f"--volume-spec: {error}") from error


def _described(subject: PluginUnderTest) -> str:
    origin = f" of {subject.origin}" if subject.origin.distribution else ""
    return f"{subject.name}{origin} ({subject.target})"
