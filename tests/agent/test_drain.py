"""``--drain``: when the agent is told to end it takes everything off the node in order, and no data (BR-54)."""

from pathlib import Path

import pytest
from agent_world import DISK, MEMORY, claim, claimed, is_mounted, mounted_below, pod, volume_path

pytestmark = pytest.mark.root


def test_br54_drain_unmounts_in_order_and_the_next_agent_mounts_again(running_agent, root, store, until):
    agent = running_agent("--drain", verbosity=2)
    store.create(claim())
    uid = store.create(pod("web", claimed(), MEMORY, DISK)).metadata.uid
    until(lambda: len(mounted_below(root)) == 3 and is_mounted(volume_path(root, uid)))
    (path,) = [path for path in mounted_below(root) if "kubernetes.io~csi" in path and "/pods/" in path]
    Path(path, "file").write_text("kept")
    Path(volume_path(root, uid, "scratch"), "file").write_text("kept too")
    assert agent.stop() == 0
    assert mounted_below(root) == []
    assert loops_below(root) == []
    order = [agent.log.rindex(name) for name in ("unmounting everything", "ended a CSI driver")]
    assert order == sorted(order)
    agent = running_agent()
    until(lambda: is_mounted(path) and is_mounted(volume_path(root, uid)))
    assert Path(path, "file").read_text() == "kept"
    assert Path(volume_path(root, uid, "scratch"), "file").read_text() == "kept too"
    store.replace_status({**pod("web", claimed(), MEMORY, DISK), "status": {"phase": "Succeeded"}})
    until(lambda: mounted_below(root) == [])
    assert agent.stop() == 0


def loops_below(root):
    from volumehost.mount.loop import list_attached

    return [loop for loop in list_attached() if loop.backing_file.startswith(root)]
