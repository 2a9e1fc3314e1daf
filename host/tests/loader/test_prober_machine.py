"""Whatever installers do, in whatever order the host looks: what it was told is in the end what is there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from volumehost.loader.events import ProbeOperation
from volumehost.loader.prober import EntryPointProber

NAMES = st.sampled_from(["acme", "beta"])


class Installers(RuleBasedStateMachine):
    """pip at work on two distributions, step by step, while a prober looks."""

    def __init__(self):
        super().__init__()
        self.site = Path(tempfile.mkdtemp())
        self.now = 0.0
        self.prober = EntryPointProber(path=[str(self.site)], clock=lambda: self.now)
        self.serial = 0
        self.told = {}  # what the prober's events add up to: name to version
        self.installed = {}  # name to version, of finished installations
        self.begun = {}  # name to version, of unfinished ones
        self.stashed = {}  # name to version, what pip keeps aside meanwhile

    def teardown(self):
        shutil.rmtree(self.site)

    def info(self, name, version):
        return self.site / f"{name}-{version}.dist-info"

    def stash(self, name):
        return self.site / f"~{self.info(name, self.stashed[name]).name[1:]}"

    @rule(name=NAMES)
    def begin(self, name):
        """Install, or begin to replace what is there."""
        if name in self.begun:
            return
        if name in self.installed:
            self.stashed[name] = self.installed.pop(name)
            os.rename(self.info(name, self.stashed[name]), self.stash(name))
        self.serial += 1
        version = self.begun[name] = f"{self.serial}.0"
        info = self.info(name, version)
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (info / "WHEEL").write_text("")

    @rule(name=NAMES)
    def write_entry_points(self, name):
        if name in self.begun:
            (self.info(name, self.begun[name]) / "entry_points.txt").write_text("[volumehost.plugins]\nx = m:X\n")

    @rule(name=NAMES)
    def finish(self, name):
        if name in self.begun:
            self.write_entry_points(name)
            self.installed[name] = self.begun.pop(name)
            (self.info(name, self.installed[name]) / "RECORD").write_text("")
            if name in self.stashed:
                shutil.rmtree(self.stash(name))
                del self.stashed[name]

    @rule(name=NAMES)
    def give_up(self, name):
        """The installation fails: pip puts back what was there."""
        if name in self.begun:
            shutil.rmtree(self.info(name, self.begun.pop(name)))
            if name in self.stashed:
                version = self.stashed[name]
                os.rename(self.stash(name), self.info(name, version))
                self.installed[name] = self.stashed.pop(name)

    @rule(name=NAMES)
    def uninstall(self, name):
        if name in self.installed and name not in self.begun:
            shutil.rmtree(self.info(name, self.installed.pop(name)))

    @rule(seconds=st.sampled_from([0.001, 0.03, 1.0, 5.0]))
    def pass_time(self, seconds):
        self.now += seconds

    @rule()
    def probe(self):
        result = self.prober.probe()
        assert not result.errors
        for event in result.events:
            if event.operation is ProbeOperation.REMOVE:
                assert event.plugin_name in self.told, "only what was told of is removed"
                del self.told[event.plugin_name]
            else:
                version = event.distribution.version
                assert self.installed.get(event.plugin_name) == version, "only finished installations are told of"
                assert self.told.get(event.plugin_name) != version, "and each once"
                self.told[event.plugin_name] = version

    @rule()
    def probe_again_and_compare(self):
        self.probe()
        for name in ("acme", "beta"):
            told = self.told.get(name)
            if name in self.begun:  # being installed: what was told of before stays until that is finished
                assert told is None or float(told) < float(self.begun[name])
            else:
                assert told == self.installed.get(name)

    @invariant()
    def what_is_told_was_installed_once(self):
        assert all(float(version) <= self.serial for version in self.told.values())


TestInstallers = Installers.TestCase
TestInstallers.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
