"""What comes at a bad moment: pods that end while they are mounted, plugins that go, clocks that jump, links."""

import os
from pathlib import Path

import pytest
from acme_plugin import acme
from agent_world import DISK, MEMORY, is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost.api.objects import Pod
from volumehost.node.populating.pods import ENDED_ANNOTATION

pytestmark = pytest.mark.root

PLUGIN = "example.com~acme"


def end(store, name):
    """The word that the pod's workload has ended, and its deletion."""
    store.patch(Pod, name, {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    store.delete(Pod, name, "default")


def names(store):
    return [each.metadata.name for each in store.list(Pod).items]


@pytest.fixture
def acme_agent(running_agent, manifests, site):
    """Starts an agent that finds the plugin, with a directory of static pods."""

    def start(**more):
        environment = {**site.environment, **more.pop("environment", {})}
        return running_agent(
            "--static-pods", manifests.path, "--node-name", "node-1", environment=environment, **more
        )  # fmt: skip

    return start


def test_pods_that_end_come_back_and_change_while_a_step_is_under_way(
    acme_agent, site, manifests, root, store, until, live
):
    """Ended while mounting, made anew while mounting, changed while unmounting and killed there: one pod is left."""
    agent = acme_agent()
    site.close("set-up")
    store.create(pod("stored", acme()))
    manifests("web.yaml", pod("web", acme()))
    until(lambda: {each.volumes[0].step for each in live().values() if each.volumes} == {"set-up"} and len(live()) == 2)
    end(store, "stored")
    os.unlink(f"{manifests.path}/web.yaml")
    until(lambda: "is gone: pod default/web-node-1 ends" in agent.log)
    until(lambda: all(each.volumes[0].where for each in live().values()), what="what still hangs for them is shown")
    manifests("web.yaml", pod("web", acme()))  # the very same pod
    site.open("set-up")
    until(lambda: names(store) == ["web-node-1"] and (web := live().get("web-node-1")) and web.ready)
    (former,) = pod_directories(root)
    assert mounted_below(root) == [volume_path(root, former, "acme", PLUGIN)]
    site.close("tear-down")
    manifests("web.yaml", pod("web", acme(), MEMORY))
    until(lambda: len(mounted_below(root)) == 3, what="the new one is mounted while the old one is being unmounted")
    agent.kill()
    site.open("tear-down")
    agent = acme_agent()
    until(lambda: former not in pod_directories(root) and len(mounted_below(root)) == 2)
    for number in range(5):  # faster than it can be followed
        manifests("web.yaml", pod("web", acme(), *([DISK] if number % 2 else [])))
    until(lambda: len(pod_directories(root)) == 1 and len(mounted_below(root)) == 1)
    os.unlink(f"{manifests.path}/web.yaml")
    until(lambda: (mounted_below(root), pod_directories(root), names(store)) == ([], [], []))
    assert agent.stop() == 0


def test_scen24_a_plugin_that_is_gone_after_a_restart_is_waited_for(acme_agent, site, root, store, until, live):
    """One pod stays mounted, one ends, one comes; each has one line that says so. All goes on soon after it is back."""
    agent = acme_agent()
    store.create(pod("stays", acme(), MEMORY))
    store.create(pod("ends", acme()))
    until(lambda: len(mounted_below(root)) == 3)
    before = mounted_below(root)
    site.uninstall()
    agent.kill()
    agent = acme_agent()
    store.create(pod("comes", acme()))
    end(store, "ends")
    until(lambda: len(live()) == 3 and live()["ends"].volumes[0].failed_step == "plugin")
    until(lambda: [each.state for each in live()["stays"].volumes] == ["waiting", "mounted"])
    assert "no volume plugin matched" in live()["stays"].volumes[0].error
    assert [each.state for each in live()["ends"].volumes] == ["waiting"]
    assert mounted_below(root) == before
    site.install()
    until(lambda: names(store) == ["comes", "stays"] and all(each.ready for each in live().values()), seconds=40)
    assert len(mounted_below(root)) == 3
    assert agent.stop() == 0


#: Moves what the process takes for the time of day; not for grpc, whose core asks the kernel.
JUMPING = """
import os, sys, time
real, real_ns = time.time, time.time_ns
def jump():
    try:
        return float(open(os.environ["TEST_JUMP"]).read() or 0)
    except OSError:
        return 0.0
def moved():
    return real() + (0 if sys._getframe(1).f_globals.get("__name__", "").startswith("grpc") else jump())
time.time, time.time_ns = moved, lambda: real_ns() + int(jump() * 1e9)
"""


def test_a_clock_that_jumps_holds_nobody_up(acme_agent, site, manifests, root, store, until, tmp_path):
    jump = tmp_path / "jump"
    Path(site.path, "sitecustomize.py").write_text(JUMPING)
    agent = acme_agent(environment={"TEST_JUMP": str(jump)})
    for number, seconds in enumerate((-86400, 10 * 365 * 86400)):
        jump.write_text(str(seconds))
        store.create(pod(f"stored-{number}"))
        manifests(f"{number}.yaml", pod(f"static-{number}", acme()))
        until(lambda number=number: len(mounted_below(root)) == 2 * number + 2)
    agent.kill()
    jump.write_text(str(-300 * 86400))
    agent = acme_agent(environment={"TEST_JUMP": str(jump)})
    end(store, "stored-0")
    os.unlink(f"{manifests.path}/1.yaml")
    until(lambda: len(pod_directories(root)) == len(mounted_below(root)) == 2)
    assert agent.stop() == 0


def test_what_links_in_the_pods_directory_lead_to_is_nobodys_volume(running_agent, root, store, until, tmp_path):
    """An agent takes away what only directories tell of; not what is behind a link, and it starts in any case."""
    canary = tmp_path / "canary"
    inner = canary / "volumes" / "kubernetes.io~empty-dir" / "v"
    inner.mkdir(parents=True)
    (inner / "precious").write_text("kept")
    pods = Path(root, "pods")
    (pods / "uid-1" / "volumes").mkdir(parents=True)
    (pods / "uid-2").mkdir()
    os.symlink(canary, pods / "uid-3")
    os.symlink(canary / "volumes", pods / "uid-2" / "volumes")
    os.symlink(inner.parent, pods / "uid-1" / "volumes" / "kubernetes.io~empty-dir")
    (pods / "file").write_text("no directory")
    (pods / os.fsdecode(b"\xff\n") / "volumes" / "kubernetes.io~empty-dir" / "v").mkdir(parents=True)
    agent = running_agent()
    uid = store.create(pod()).metadata.uid
    until(lambda: is_mounted(volume_path(root, uid)))
    until(lambda: not any(name.startswith("\udcff") for name in os.listdir(pods)), what="what is there for real goes")
    assert (inner / "precious").read_text() == "kept"
    assert {"uid-1", "uid-2", "uid-3", "file"} <= set(os.listdir(pods))
    assert agent.stop() == 0
