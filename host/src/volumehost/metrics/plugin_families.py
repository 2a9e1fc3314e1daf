"""What plugins count themselves (``get_metrics_collectors``): third-party code, asked with a deadline and checked."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from volumehost.loader.guard import describe
from volumehost.metrics.families import checked
from volumehost.mount.deadline import DeadlineRunner

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.manager import VolumePluginManager

logger = logging.getLogger(__name__)

#: How long a plugin has for telling what it counts, in seconds; it should not wait for anybody.
ANSWER_SECONDS: Final = 1.0

#: A plugin that tells more than so many values has labels without a bound, and would fill whoever scrapes.
MOST_SAMPLES: Final = 50_000


class PluginFamilies:
    """Asks every loaded plugin. One that hangs is not asked again before it has answered."""

    def __init__(self, *, timeout: float = ANSWER_SECONDS) -> None:
        self._timeout = timeout
        self._runner = DeadlineRunner()
        self._faults: dict[str, str] = {}

    def collect(self, plugins: VolumePluginManager) -> tuple[list[Metric], list[str]]:
        """The families of all plugins, and the names of those whose could not be had."""
        families: list[Metric] = []
        failed = []
        for plugin in plugins.loaded_plugins():
            try:
                families += self._of(plugin)
            except BaseException as error:  # noqa: BLE001 - one plugin's trouble is no other's, even its exit (BR-18)
                failed.append(plugin.name)
                self._tell_once(plugin.name, describe(error))
            else:
                self._faults.pop(plugin.name, None)
        return families, failed

    def _of(self, plugin: LoadedPlugin) -> list[Metric]:
        if "get_metrics_collectors" not in plugin.contract.implementations:
            return []
        if plugin.is_own:
            return list(_families(plugin))
        if any(what == plugin.name and age > self._timeout for what, age in self._runner.in_progress()):
            raise TimeoutError("it has not answered an earlier scrape yet")
        return self._runner.run(_checked_families, plugin, timeout=self._timeout, what=plugin.name)

    def _tell_once(self, plugin: str, fault: str) -> None:
        if self._faults.get(plugin) != fault:
            self._faults[plugin] = fault
            logger.warning("what the volume plugin %s counts is left out: %s", plugin, fault)


def _families(plugin: LoadedPlugin) -> Iterator[Metric]:
    for collector in plugin.get_metrics_collectors() or ():
        yield from collector.collect()


def _checked_families(plugin: LoadedPlugin) -> list[Metric]:
    found, count = [], 0
    for given in _families(plugin):
        found.append(checked(given))
        count += len(found[-1].samples)
        if count > MOST_SAMPLES:
            raise ValueError(f"it tells more than {MOST_SAMPLES} values")
    return found
