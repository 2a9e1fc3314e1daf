"""The agent as a real process, with the installed plugins, on a root directory of its own."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for agent_world.py: tests are imported without a package

from acme_plugin import Site

from volumehost.agent.client import AgentManager
from volumehost.api.store import EmbeddedStore
from volumehost.testing.agents import AgentProcess


@pytest.fixture
def store(root):
    """The store, as another process has it open."""
    with EmbeddedStore(f"{root}/store.sqlite3") as opened:
        yield opened


@pytest.fixture
def manifests(tmp_path):
    """The directory of static pods, and how a file comes into it: written aside and renamed, or written in place."""
    directory = tmp_path / "manifests"
    directory.mkdir()
    times = itertools.count(1)

    def put(name, *documents, in_place=False):
        text = documents[0] if isinstance(documents[0], str) else "\n---\n".join(map(json.dumps, documents))
        aside = directory / (name if in_place else f".{name}.new")
        aside.write_text(text)
        os.utime(aside, (next(times),) * 2)  # it counts as old, and so is taken at the next look
        if not in_place:
            aside.rename(directory / name)

    put.directory = directory
    put.path = str(directory)
    return put


@pytest.fixture
def running_agent(root, tmp_path):
    """Starts agents and waits until they are ready; those that still run are killed at the end."""
    with contextlib.ExitStack() as stack:

        def run(*options, root_dir=root, ready=True, **more):
            more.setdefault("log_file", tmp_path / "agent.log")
            agent = AgentProcess(root_dir, *options, **more)
            stack.callback(agent.kill)
            agent.start()
            if ready:
                agent.wait_ready()
            return agent

        yield run


@pytest.fixture
def site(tmp_path):
    """The place of a vendor's plugin; installed, but the test may change that."""
    made = Site(str(tmp_path))
    made.install()
    return made


@pytest.fixture
def volumehost(root):
    """Runs a command."""

    def run(*arguments, **environment):
        command = [sys.executable, "-m", "volumehost", *arguments, "--root-dir", root]
        variables = {**os.environ, **environment}
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=variables)

    return run


@pytest.fixture
def live(root, store):
    """What the agent says of its pods now, by their names."""

    def ask():
        with AgentManager(root, lambda: store) as agent:
            return {each.name: each for each in agent.status()}

    return ask
