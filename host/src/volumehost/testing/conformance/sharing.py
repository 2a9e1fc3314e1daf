"""Which volumes of the files are for which plugin: asked of the plugins themselves, when tests are collected."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from volumehost.loader.guard import Guard
from volumehost.testing.conformance.samples import Sample, Samples
from volumehost.testing.conformance.subject import PluginUnderTest, load
from volumehost.testing.leaks import LeakGuard
from volumehost.testing.plugin_host import PluginTestHost


@dataclass(frozen=True, slots=True)
class Share:
    """A plugin with its part of the volumes. ``left_out`` are labels of volumes that no plugin under test supports."""

    subject: PluginUnderTest
    samples: Samples
    left_out: tuple[str, ...] = ()


def share_out(subjects: Sequence[PluginUnderTest], samples: Samples, *, timeout: float = 60.0) -> list[Share]:
    """Each plugin gets the volumes that it supports; one that does not answer within ``timeout`` seconds, none.

    One that supports none gets those that no other plugin supports: its checks then tell what is wrong. A single
    volume of a single plugin is its own, without a question.
    """
    if len(subjects) == 1 and len(samples.volumes) <= 1:
        return [Share(subjects[0], samples)]
    supported = [_supported(subject, samples.volumes, timeout) for subject in subjects]
    known = set().union(*supported)
    nobodys = tuple(sample for sample in samples.volumes if sample.label not in known)
    return [_share(subject, samples, own, nobodys) for subject, own in zip(subjects, supported, strict=True)]


def _share(subject: PluginUnderTest, samples: Samples, own: set[str], nobodys: tuple[Sample, ...]) -> Share:
    if not own:
        return Share(subject, replace(samples, volumes=nobodys))
    volumes = tuple(sample for sample in samples.volumes if sample.label in own)
    return Share(subject, replace(samples, volumes=volumes), tuple(sample.label for sample in nobodys))


def _supported(subject: PluginUnderTest, volumes: Sequence[Sample], timeout: float) -> set[str]:
    """Labels of the volumes that the plugin supports; none when it does not load or does not answer."""
    with tempfile.TemporaryDirectory(prefix="volumehost-") as directory, LeakGuard(directory, grace=0.0) as guard:
        outcome = Guard().run(lambda: _ask(subject, volumes, directory), timeout, f"ask {subject.name}")
        guard.take_away()
    return outcome.value if outcome.error is None else set()


def _ask(subject: PluginUnderTest, volumes: Sequence[Sample], directory: str) -> set[str]:
    found: set[str] = set()
    host = PluginTestHost(directory)
    manager, plugin = load(subject.thing, host)
    try:
        for sample in volumes:
            with suppress(Exception):  # it fails again in the checks, which tell
                if plugin.can_support(sample.new_spec()) is True:
                    found.add(sample.label)
    finally:
        manager.close()
        host.close()
    return found
