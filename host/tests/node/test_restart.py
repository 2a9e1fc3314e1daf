"""A manager that starts finds what a former one left: journal, directories, or neither (RECON rules)."""

import os
import shutil

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import ObjectNotFoundError, StoreError, VolumesFailedError
from volumehost.mount import syscalls
from volumehost.node.journal.format import encode

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "volumeMounts": [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes],
                }
            ],
            "volumes": list(volumes),
        },
    }


def _states(node):
    return {status.name: [volume.state for volume in status.volumes] for status in node.status()}


def _forget_store(root):
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")


def test_mounts_outlive_the_manager_and_the_next_one_knows_them(manager, bind, nfs, mounts):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a"), nfs("b")), timeout=20)
    assert len(mounts()) == 2
    plugin = bind()
    with manager(plugin, enter=False) as node:
        assert _states(node) == {"web": ["mounted", "mounted"]}
        assert plugin.count("set_up") == plugin.count("tear_down") == 0
        node.unmount_pod("web", timeout=20)
        assert plugin.count("tear_down") == 2
    assert mounts() == []


def test_recon50_a_pod_that_is_mounted_again_is_set_up_again_as_reconstructed(manager, bind, nfs, mounts):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    plugin = bind()
    node = manager(plugin)
    assert node.mount_pod(_pod(nfs("a")), timeout=20).ready
    (arguments,) = [call[1] for call in plugin.calls if call[0] == "set_up"]
    assert arguments.reconstructed_volume
    assert not arguments.is_remount
    assert len(mounts()) == 1


def test_mounting_one_pod_leaves_the_others_as_they_are(manager, bind, nfs, mounts):
    with manager(bind(), enter=False) as node:
        for name in ("one", "two", "three"):
            node.mount_pod(_pod(nfs("a"), name=name), timeout=20)
    plugin = bind()
    with manager(plugin, enter=False) as node:
        node.mount_pod(_pod(nfs("a"), name="four"), timeout=20)
        node.unmount_pod("two", timeout=20)
        assert _states(node) == {"four": ["mounted"], "one": ["mounted"], "three": ["mounted"]}
        assert plugin.count("set_up") == 1
        assert plugin.count("tear_down") == 1
    assert len(mounts()) == 3


def test_recon53_what_is_in_the_journal_and_in_no_pod_is_unmounted(manager, bind, nfs, mounts, until, root):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        # somebody removes the pod behind the manager's back, finalizer and all
        node.api.patch(Pod, "web", {"metadata": {"finalizers": None}}, "default")
        node.api.delete(Pod, "web", "default")
    plugin = bind()
    manager(plugin)
    until(lambda: mounts() == [])
    assert plugin.count("tear_down") == 1


def test_br15_a_plugin_that_is_not_there_never_means_that_a_volume_is_unwanted(manager, bind, nfs, mounts, kept):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    with manager(enter=False) as node:
        (volume,) = node.status()[0].volumes
        assert (volume.plugin, volume.state) == ("example.com/bind", "mounted")
        assert volume.error.startswith("waits for its volume plugin example.com/bind")
        caught = kept(node, "web", "no volume plugin matched name")
        assert "example.com/bind" in str(caught.value)
    assert len(mounts()) == 1
    plugin = bind()
    with manager(plugin, enter=False) as node:
        node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_br15_pods_that_cannot_be_read_are_not_gone(manager, bind, nfs, mounts, root, tmp_path, until):
    from volumehost.api.store import EmbeddedStore

    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    plugin = bind()
    with EmbeddedStore(f"{root}/store.sqlite3") as store:
        api = SometimesBroken(store)
        with manager(plugin, enter=False, api=api) as node:
            until(lambda: api.failures >= 1)
            assert plugin.count("tear_down") == 0
            api.broken = False
            until(lambda: node._now.parts.populator.complete)
            assert _states(node) == {"web": ["mounted"]}
            assert plugin.count("tear_down") == 0
    assert len(mounts()) == 1


class SometimesBroken:
    """An API that does not list pods while it is broken."""

    def __init__(self, api):
        self.api = api
        self.broken = True
        self.failures = 0

    def __getattr__(self, name):
        return getattr(self.api, name)

    def list(self, *arguments, **options):
        if self.broken:
            self.failures += 1
            raise StoreError("no answer")
        return self.api.list(*arguments, **options)


@pytest.mark.parametrize("damage", ["missing", "empty", "half", "garbage", "newer"])
def test_br56_a_bad_journal_and_the_directories_serve_instead(manager, bind, nfs, mounts, root, damage):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a"), nfs("b")), timeout=20)
    path = f"{root}/volumes.journal"
    with open(path, "rb") as file:
        content = file.read()
    os.unlink(path)
    if damage != "missing":
        newer = encode({"journal": 99}) + content
        with open(path, "wb") as file:
            file.write({"empty": b"", "half": content[:40], "garbage": b"\0" * 99 + b"\n", "newer": newer}[damage])
    plugin = bind()
    with manager(plugin, enter=False) as node:
        assert plugin.count("construct_volume_spec") == 2
        assert plugin.count("tear_down") == 0
        assert node.mount_pod(_pod(nfs("a"), nfs("b")), timeout=20).ready
        assert len(mounts()) == 2
        node.unmount_pod("web", timeout=20)
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []


def test_br56_cleanup_is_possible_without_journal_and_without_store(manager, bind, nfs, mounts, root):
    with manager(bind(), enter=False) as node:
        uid = node.mount_pod(_pod(nfs("a")), timeout=20).uid
    os.unlink(f"{root}/volumes.journal")
    _forget_store(root)
    plugin = bind()
    with manager(plugin, enter=False) as node:
        # nothing but a directory speaks for it, so nothing is done by itself
        assert plugin.count("tear_down") == 0
        (status,) = node.status()
        assert (status.uid, status.volumes[0].volume) == (uid, "a")
        node.unmount_pod(uid, timeout=20)
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []


def test_a_manager_that_cannot_open_the_store_lets_go_of_the_root_directory(manager, bind, nfs, mounts, root):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    os.rename(f"{root}/store.sqlite3", f"{root}/aside")
    os.mkdir(f"{root}/store.sqlite3")
    with pytest.raises(StoreError, match="open the store"), manager(bind(), enter=False):
        pass
    assert len(mounts()) == 1
    os.rmdir(f"{root}/store.sqlite3")
    os.rename(f"{root}/aside", f"{root}/store.sqlite3")
    with manager(bind(), enter=False) as node:  # it is not locked
        node.unmount_pod("web", timeout=20)


def test_recon51_an_agent_tears_down_what_only_directories_tell_of(manager, bind, nfs, mounts, root, until):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        node.api.patch(Pod, "web", {"metadata": {"finalizers": None}}, "default")
        node.api.delete(Pod, "web", "default")
    os.unlink(f"{root}/volumes.journal")
    manager(bind(), adopt=True)
    until(lambda: mounts() == [])


def test_recon40_a_directory_that_the_plugin_cannot_rebuild_can_still_be_torn_down(manager, bind, nfs, mounts, root):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    os.unlink(f"{root}/volumes.journal")
    plugin = bind()

    def refuse():
        raise ValueError("no vol_data.json")

    plugin.trouble["construct_volume_spec"] = refuse
    with manager(plugin, enter=False) as node:
        node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_br58_unmounted_behind_its_back_it_is_set_up_again(manager, bind, nfs, mounts):
    with manager(bind(), enter=False) as node:
        (volume,) = node.mount_pod(_pod(nfs("a")), timeout=20).volumes
    syscalls.umount2(volume.path, syscalls.MNT_DETACH)
    plugin = bind()
    with manager(plugin, enter=False) as node:
        assert _states(node) == {"web": ["lost"]}
        assert node.mount_pod(_pod(nfs("a")), timeout=20).ready
        assert mounts() == [volume.path]


def test_br58_a_changed_boot_id_means_that_no_mount_survived(manager, bind, nfs, mounts):
    with manager(bind(), enter=False, boot_id="one") as node:
        (volume,) = node.mount_pod(_pod(nfs("a")), timeout=20).volumes
    syscalls.umount2(volume.path, syscalls.MNT_DETACH)
    plugin = bind()
    with manager(plugin, enter=False, boot_id="two") as node:
        assert _states(node) == {"web": ["lost"]}
        assert node.mount_pod(_pod(nfs("a")), timeout=20).ready
        (arguments,) = [call[1] for call in plugin.calls if call[0] == "set_up"]
        assert not arguments.reconstructed_volume
        assert mounts() == [volume.path]
        node.unmount_pod("web", timeout=20)
    assert mounts() == []


def test_an_end_that_was_recorded_is_completed_by_the_next_manager(manager, bind, nfs, mounts, root, kept):
    plugin = bind()

    def refuse():
        raise OSError("busy")

    with manager(plugin, enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        plugin.trouble["tear_down"] = refuse
        kept(node, "web", "busy")
    with manager(bind(), enter=False) as node:
        node.unmount_pod("web", timeout=20)
        with pytest.raises(ObjectNotFoundError):
            node.api.get(Pod, "web", "default")
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []


def test_the_next_manager_unmounts_what_a_former_one_was_told_to_end(manager, bind, nfs, mounts, until, kept):
    plugin = bind()

    def refuse():
        raise OSError("busy")

    with manager(plugin, enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        plugin.trouble["tear_down"] = refuse
        kept(node, "web")
    node = manager(bind())
    until(lambda: mounts() == [])
    until(lambda: node.status() == [], what="the pod's object goes when its volumes are gone")


def test_an_end_that_the_next_manager_has_completed_is_no_unknown_pod(manager, bind, nfs, mounts, until, kept):
    """Whoever asks again, as the error of the first time says, may come a moment later than that: once."""
    plugin = bind()

    def refuse():
        raise OSError("busy")

    with manager(plugin, enter=False) as node:
        for name in ("web", "other"):
            node.mount_pod(_pod(nfs("a"), name=name), timeout=30)
        plugin.trouble["tear_down"] = refuse
        for name in ("web", "other"):
            kept(node, name)
        uid = next(status.uid for status in node.status() if status.name == "other")
    with manager(bind(), enter=False) as node:
        until(lambda: node.status() == [])
        for name in ("web", uid):
            node.unmount_pod(name, timeout=30)
            with pytest.raises(ObjectNotFoundError):
                node.unmount_pod(name, timeout=30)
        assert node.parts.services.journal.entries() == {}
    assert mounts() == []


def test_br57_reconstruction_does_not_touch_the_volumes_themselves(manager, bind, nfs, root, mounts):
    with manager(bind(), enter=False) as node:
        (volume,) = node.mount_pod(_pod(nfs("a")), timeout=20).volumes
    plugin = bind()
    with manager(plugin, enter=False):
        assert plugin.calls == []
    assert mounts() == [volume.path]


def test_files_and_links_among_the_pods_do_not_disturb_it(manager, bind, nfs, root, tmp_path):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    with open(f"{root}/pods/file", "w") as file:
        file.write("x")
    os.makedirs(f"{root}/pods/uid-x/volumes")
    with open(f"{root}/pods/uid-x/volumes/file", "w") as file:
        file.write("x")
    os.symlink("/", f"{root}/pods/link")
    with manager(bind(), enter=False) as node:
        assert _states(node) == {"web": ["mounted"]}
        node.unmount_pod("web", timeout=20)
    shutil.rmtree(f"{root}/pods/uid-x")


def test_recon40_a_directory_that_cannot_be_rebuilt_is_not_taken_from_the_pod_that_wants_it(
    manager, disk, claimed, mounts, root, until
):
    """Its unique name is not known then, so it is entered under another one than the pod's volume gets."""
    plugin = disk(attaches=False)
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    source = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [container], "volumes": [source]}}
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        node.mount_pod(pod)
        there = mounts()
    os.unlink(f"{root}/volumes.journal")

    def fail():
        raise RuntimeError("not now")

    plugin.trouble = {"construct_volume_spec": fail, "set_up": fail}
    with manager(plugin, enter=False) as node:
        parts = node._now.parts
        with pytest.raises(VolumesFailedError):
            node.mount_pod(pod, attempts=1)
        parts.reconciler.resync()
        until(lambda: not parts.pending.running())
        assert plugin.count("tear_down") == 0
        plugin.trouble.clear()
        (volume,) = node.mount_pod(pod).volumes
        assert volume.ready
        parts.reconciler.resync()
        until(lambda: not parts.pending.running())
        assert plugin.count("tear_down") == 0
        assert mounts() == there
        node.unmount_pod("web")
        assert plugin.count("tear_down") == 1
    assert mounts() == []
