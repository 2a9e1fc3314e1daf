"""The disk is full: the agent starts all the same, and what it has is taken away; with space again all is as ever."""

import os
import subprocess
import sys

import pytest
from agent_world import mounted_below, pod, pod_directories

from volumehost.mount import syscalls

pytestmark = pytest.mark.root


@pytest.fixture
def limit(root):
    """Leaves so many pages and files of the root directory's filesystem."""
    place = os.path.dirname(root)

    def leave(pages, files):
        usage = os.statvfs(place)
        size = (usage.f_blocks - usage.f_bfree + pages) * usage.f_frsize
        number = usage.f_files - usage.f_ffree + files
        syscalls.mount("root", place, "tmpfs", syscalls.MS_REMOUNT, f"size={size},nr_inodes={number}")

    return leave


def test_an_agent_starts_on_a_full_disk_and_takes_away_what_is_mounted(running_agent, root, store, limit, until):
    running = running_agent()
    until(lambda: os.path.isdir(f"{root}/reserve"))
    store.create(pod())
    until(lambda: mounted_below(root))
    running.kill()
    limit(0, 0)
    running = running_agent()
    assert not os.path.exists(f"{root}/reserve")
    command = [sys.executable, "-m", "volumehost", "unmount", "web", "--root-dir", root]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])
    running.kill()
    limit(1 << 12, 1 << 12)
    running_agent()
    until(lambda: os.path.isdir(f"{root}/reserve"))
    store.create(pod("again"))
    until(lambda: mounted_below(root))
