"""Pods come and go: the whole manager with a small real plugin and real mounts."""

import os
import threading

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import (
    FailedPreconditionError,
    InvalidObjectError,
    ObjectNotFoundError,
    RootDirectoryLockedError,
    VolumesFailedError,
)
from volumehost.node.populating.pod_objects import FINALIZER

pytestmark = pytest.mark.root


def _pod(*volumes, name="web", mounts=None):
    names = [volume["name"] for volume in volumes] if mounts is None else mounts
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "volumeMounts": [{"name": n, "mountPath": f"/{n}"} for n in names]}
            ],
            "volumes": list(volumes),
        },
    }


def test_a_pod_is_mounted_and_unmounted_without_a_trace(manager, bind, nfs, mounts, root):
    plugin = bind()
    node = manager(plugin)
    status = node.mount_pod(_pod(nfs("a"), nfs("b")), timeout=20)
    assert status.state == "mounted"
    assert status.ready
    (a, b) = status.volumes
    assert (a.volume, a.plugin, a.mounted) == ("a", "example.com/bind", True)
    assert mounts() == [a.path, b.path]
    with open(f"{a.path}/file") as file:
        assert file.read() == "content"
    node.unmount_pod("web", timeout=20)
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []
    assert node.status() == []
    assert plugin.count("set_up") == plugin.count("tear_down") == 2


def test_scen01_nothing_wanted_and_nothing_there_calls_no_plugin(manager, bind):
    plugin = bind()
    node = manager(plugin)
    assert node.status() == []
    assert plugin.calls == []


def test_the_pod_is_in_the_api_with_a_finalizer_until_the_last_volume_is_gone(manager, bind, nfs, until):
    plugin, gate = bind(), threading.Event()
    node = manager(plugin)
    node.mount_pod(_pod(nfs("a")), timeout=20)
    pod = node.api.get(Pod, "web", "default")
    assert FINALIZER in pod.metadata.finalizers
    assert pod.metadata.uid
    plugin.trouble["tear_down"] = lambda: gate.wait(30)
    thread = threading.Thread(target=lambda: node.unmount_pod("web", timeout=30))
    thread.start()
    until(lambda: plugin.count("tear_down") == 1)
    marked = node.api.get(Pod, "web", "default")
    assert marked.metadata.deletion_timestamp
    with pytest.raises(FailedPreconditionError, match="being deleted"):
        node.mount_pod(_pod(nfs("a")), timeout=20)
    gate.set()
    thread.join(30)
    with pytest.raises(ObjectNotFoundError):
        node.api.get(Pod, "web", "default")


def test_util17_a_volume_that_no_container_uses_is_not_mounted_and_status_says_so(manager, bind, nfs):
    plugin = bind()
    status = manager(plugin).mount_pod(_pod(nfs("a"), nfs("idle"), mounts=["a"]), timeout=20)
    assert {volume.volume: volume.state for volume in status.volumes} == {"a": "mounted", "idle": "unused"}
    assert status.ready
    assert plugin.count("set_up") == 1


def test_a_pod_without_volumes_is_ready_at_once(manager, bind):
    assert manager(bind()).mount_pod(_pod(), timeout=20).ready


def test_mounting_it_again_changes_nothing(manager, bind, nfs):
    plugin = bind()
    node = manager(plugin)
    first = node.mount_pod(_pod(nfs("a")), timeout=20)
    again = node.mount_pod(_pod(nfs("a")), timeout=20)
    assert first.uid == again.uid
    assert plugin.count("set_up") == 1


def test_scen15_a_plugin_that_wants_remounts_gets_one_with_each_sync(manager, bind, nfs, until):
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    node.mount_pod(_pod(nfs("a")), timeout=20)
    assert plugin.count("set_up") == 1
    node.mount_pod(_pod(nfs("a")), timeout=20)
    until(lambda: plugin.count("set_up") == 2)
    assert [call[1].is_remount for call in plugin.calls if call[0] == "set_up"] == [False, True]


def test_pods_are_taken_as_structs_mappings_and_json(manager, bind, nfs, make_pod):
    node = manager(bind())
    struct = make_pod(nfs("a"), name="struct", uid="")
    assert node.mount_pod(struct, timeout=20).ready
    assert struct.metadata.finalizers == []
    text = '{"metadata": {"name": "json"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}'
    assert node.mount_pod(text, timeout=20).ready
    assert [status.name for status in node.status()] == ["json", "struct"]


def test_a_wrong_manifest_is_refused_and_nothing_is_done(manager, bind, nfs, mounts, root):
    node = manager(bind())
    bad = _pod({"name": "a", "nfs": {"server": "s", "path": "/x"}, "emptyDir": {}})
    with pytest.raises(InvalidObjectError):
        node.mount_pod(bad, timeout=20)
    assert node.status() == []
    assert os.listdir(f"{root}/pods") == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"metadata": []},
        {"metadata": {"name": "x", "finalizers": "no list"}},
        {"metadata": {"name": "x", "finalizers": [{}]}},
        {"kind": "Secret", "metadata": {"name": "x"}},
        {"metadata": {"name": "../x"}},
        {"metadata": {"name": "x"}, "spec": 3},
        {},
        "not json",
        "[]",
        7,
    ],
)
def test_what_is_no_pod_is_refused_by_name(manager, bind, manifest):
    node = manager(bind())
    with pytest.raises(InvalidObjectError):
        node.mount_pod(manifest, timeout=20)
    assert node.status() == []


def test_a_volume_that_no_plugin_supports_fails_at_once_and_the_others_are_mounted(manager, bind, nfs):
    node = manager(bind())
    with pytest.raises(VolumesFailedError) as caught:
        node.mount_pod(_pod(nfs("a"), {"name": "b", "emptyDir": {}}), timeout=60)
    text = str(caught.value)
    assert "unmounted volumes=[b]" in text
    assert "no volume plugin matched" in text
    states = {volume.volume: volume.state for volume in node.status()[0].volumes}
    assert states == {"a": "mounted", "b": "pending"}
    node.unmount_pod("web", timeout=20)


def test_a_volume_that_two_plugins_support_names_both(manager, bind, nfs):
    node = manager(bind("example.com/one"), bind("example.com/two"))
    with pytest.raises(VolumesFailedError, match=r"example\.com/one,example\.com/two"):
        node.mount_pod(_pod(nfs("a")), timeout=60)


def test_two_pods_at_once(manager, bind, nfs, mounts):
    node = manager(bind())
    failures = []

    def mount(name):
        try:
            node.mount_pod(_pod(nfs("a"), nfs("b"), name=name), timeout=30)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=mount, args=(f"pod-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(mounts()) == 12
    assert sorted(node.unmount_all(timeout=30)) == [f"default/pod-{number}" for number in range(6)]
    assert mounts() == []


def test_unmounting_what_is_not_there(manager, bind):
    with pytest.raises(ObjectNotFoundError, match="no such pod"):
        manager(bind()).unmount_pod("absent")


def test_one_manager_at_a_time(manager, bind):
    manager(bind())
    with pytest.raises(RootDirectoryLockedError):
        manager(bind())


def test_a_manager_is_used_in_a_with_statement(manager, bind):
    outside = manager(bind(), enter=False)
    with pytest.raises(FailedPreconditionError, match="with statement"):
        outside.status()
    with outside, pytest.raises(FailedPreconditionError, match="already"):
        outside.__enter__()


def test_br69_a_symlinked_root_is_the_same_root(manager, bind, nfs, root, tmp_path, mounts):
    os.symlink(root, tmp_path / "link")
    with manager(bind(), enter=False, root=tmp_path / "link") as node:
        status = node.mount_pod(_pod(nfs("a")), timeout=20)
        assert node.root_dir == os.path.realpath(root)
        assert status.volumes[0].path.startswith(f"{root}/pods/")
        assert mounts() == [status.volumes[0].path]
        with pytest.raises(RootDirectoryLockedError):
            manager(bind(), root=root)
    with manager(bind(), enter=False, root=root) as node:
        assert node.status()[0].volumes[0].state == "mounted"
        node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_a_root_on_a_path_with_spaces(manager, bind, nfs, root, mounts):
    node = manager(bind(), root=f"{root} with spaces\tand é")
    status = node.mount_pod(_pod(nfs("a")), timeout=20)
    assert mounts() == [status.volumes[0].path]
    node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_layout07_the_root_directory_can_be_put_on_a_shared_mount(manager, bind, nfs, root, mounts):
    from volumehost.mount.mountinfo import read_mount_table

    node = manager(bind(), share_root=True)
    (shared,) = [mount for mount in read_mount_table() if mount.path == root]
    assert shared.shared
    (volume,) = node.mount_pod(_pod(nfs("a")), timeout=20).volumes
    assert mounts() == [root, volume.path]
    node.unmount_pod("web", timeout=20)
    assert mounts() == [root]


def test_metrics_are_told_of_every_run(manager, bind, nfs):
    class Metrics:
        def __init__(self):
            self.seen = []

        def observe(self, operation, seconds, error, labels):
            self.seen.append((operation, seconds >= 0, error, labels))
            if "unmount" in operation:
                raise ValueError("metrics that fail disturb nobody")

        def mounted(self, seconds, labels):
            self.seen.append(("overall", seconds >= 0, None, labels))

    metrics = Metrics()
    with manager(bind(), enter=False, metrics=metrics) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        node.unmount_pod("web", timeout=20)
    labels = ("example.com/bind", False, False)
    assert metrics.seen == [
        ("volume_mount", True, None, labels),
        ("overall", True, None, labels),
        ("volume_unmount", True, None, labels),
    ]


def test_an_observer_is_told_of_every_step(manager, bind, nfs):
    seen = []
    with manager(bind(), enter=False, observer=lambda *step: seen.append(step)) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        node.unmount_pod("web", timeout=20)
    assert [(operation, step) for operation, step, _, _ in seen] == [
        *(("volume_mount", step) for step in ("plugin", "check", "journal", "set-up", "mark-mounted")),
        *(("volume_unmount", step) for step in ("plugin", "journal", "clean-subpaths", "tear-down", "mark-unmounted")),
    ]
    assert {volume for _, _, volume, _ in seen} == {f"example.com/bind/{seen[0][3]}-a"}


def test_a_reconcile_between_the_wish_and_the_word_that_the_pod_may_be_mounted_loses_nothing(manager, bind, nfs):
    """Another thread looks at the new volume before the pod itself is entered, and passes it over."""
    node = manager(bind())
    parts = node._now.parts
    resolve = parts.populator._resolver.resolve

    class Eager(dict):
        def items(self):
            for name, use in super().items():
                yield name, use
                parts.reconciler.run()  # the wish is entered, the pod is not

    parts.populator._resolver.resolve = lambda pod, used: Eager(resolve(pod, used))
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [container], "volumes": [nfs()]}}
    assert node.mount_pod(pod, timeout=5).ready
