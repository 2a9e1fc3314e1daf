"""A machine that is renamed between two starts of its agent keeps its volumes and its static pods."""

import pytest
from agent_world import MEMORY, claim, claimed, mounted_below, pod

from volumehost.api.objects import Pod, VolumeAttachment

pytestmark = pytest.mark.root


def test_the_name_of_the_node_stays_while_there_are_volumes(running_agent, manifests, root, store, until):
    """Another is refused: claims would stay attached to a node that nobody is, static pods would lose their data."""
    options = ("--static-pods", manifests.path)
    agent = running_agent(*options, "--node-name", "before")
    store.create(claim())
    manifests("web.yaml", pod("web", MEMORY, claimed()))
    until(lambda: len(mounted_below(root)) == 3)
    mounts = mounted_below(root)
    until(lambda: [each.metadata.name for each in store.list(Pod).items] == ["web-before"])
    assert agent.stop() == 0
    agent = running_agent(*options, "--node-name", "after", ready=False)
    assert agent.wait() == 1
    assert "there are volumes in it that were mounted, and may be attached, for the node before" in agent.log
    assert "go on with --node-name before" in agent.log
    agent = running_agent(*options)  # the machine's own name is none of these two
    store.create(pod("other"))
    until(lambda: len(mounted_below(root)) == 4)
    assert set(mounts) < set(mounted_below(root))
    assert {each.spec.node_name for each in store.list(VolumeAttachment).items} == {"before"}
    assert agent.stop() == 0
