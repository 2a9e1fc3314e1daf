"""Starts with a whole journal, which is believed, and the look at everything else a moment later (BR-55 to BR-58)."""

import os
import threading

import pytest

from volumehost.mount import syscalls
from volumehost.node import upkeep
from volumehost.node.journal.format import encode, header
from volumehost.node.journal.journal import read_journal
from volumehost.testing.hung import hung_filesystem

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


def _look(node):
    """What a manager does by itself a moment after its start."""
    if node._now.parts.second_look.take():
        node._now.parts.reconciler.resync()


def _journal(root):
    return read_journal(f"{root}/volumes.journal")


@pytest.fixture
def only_when_told(monkeypatch):
    monkeypatch.setattr(upkeep, "SECOND_LOOK_SECONDS", 3600.0)


@pytest.fixture
def mounted_pod(manager, bind, nfs):
    """One pod that a manager mounted which has ended."""
    with manager(bind(), enter=False) as node:
        return node.mount_pod(_pod(nfs("a")), timeout=20)


@pytest.mark.usefixtures("only_when_told")
def test_with_a_whole_journal_no_plugin_is_asked_at_the_start(manager, bind, mounted_pod, root):
    assert _journal(root).complete
    plugin = bind()
    with manager(plugin, enter=False) as node:
        assert plugin.calls == []
        assert not node._now.parts.found.asked_directories
        assert [status.state for status in node.status()] == ["mounted"]
        _look(node)
        assert plugin.calls == []  # the journal knew it all


@pytest.mark.usefixtures("only_when_told")
def test_recon01_a_directory_that_cannot_be_listed_keeps_the_journal_incomplete(manager, bind, mounted_pod, root):
    """What is in it is not known, so the next start has to look again."""
    os.unlink(f"{root}/volumes.journal")
    place = f"{root}/pods/uid-old/volumes/example.com~bind"
    os.makedirs(place)
    with hung_filesystem(place) as filesystem:
        filesystem.die()
        with manager(bind(), enter=False) as node:
            assert node._now.parts.found.from_directories == 1  # that of the pod that is mounted
            _look(node)
            assert not _journal(root).complete
    with manager(bind(), enter=False) as node:
        _look(node)
    assert _journal(root).complete


@pytest.mark.usefixtures("only_when_told")
def test_br55_what_only_a_directory_tells_of_is_found_a_moment_later(manager, bind, mounted_pod, root):
    os.makedirs(f"{root}/pods/uid-old/volumes/example.com~bind/left")
    with manager(bind(), enter=False) as node:
        assert node._now.parts.services.actual.pods() == [mounted_pod.uid]
        _look(node)
        assert set(node._now.parts.services.actual.pods()) == {mounted_pod.uid, "uid-old"}
        assert node._now.parts.services.actual.get_mount("example.com/bind/uid-old-left", "uid-old").from_directory
        assert node._now.parts.found.from_directories == 1


def test_br55_an_agent_looks_by_itself_and_takes_down_what_nobody_wants(manager, bind, mounted_pod, root, until):
    os.makedirs(f"{root}/pods/uid-old/volumes/example.com~bind/left")
    plugin = bind()
    node = manager(plugin, adopt=True)
    until(lambda: plugin.count("tear_down") == 1)
    until(lambda: "uid-old" not in node._now.parts.services.actual.pods())
    assert [status.state for status in node.status() if status.uid == mounted_pod.uid] == ["mounted"]


@pytest.mark.usefixtures("only_when_told")
def test_what_only_a_directory_told_of_is_on_record_from_then_on(manager, bind, mounted_pod, root, mounts):
    """A kubelet's directory is read once; who comes later must know it from the journal alone."""
    os.unlink(f"{root}/volumes.journal")
    with manager(bind(), enter=False) as node:
        assert node._now.parts.found.asked_directories
        assert not _journal(root).complete
        _look(node)
    contents = _journal(root)
    (record,) = [record for (volume, pod), record in contents.entries.items() if volume and pod]
    assert contents.complete
    assert (record["state"], record["inner"], record["is_mount"], record["dir"]) == ("uncertain", "a", True, True)
    plugin = bind()
    with manager(plugin, enter=False) as node:
        assert plugin.calls == []
        (mount,) = node._now.parts.services.actual.mounts_of_pod(mounted_pod.uid)
        assert (mount.from_directory, mount.is_mount) == (True, True)
        node.unmount_pod("web", timeout=20)
        assert plugin.count("tear_down") == 1
    assert mounts() == []


@pytest.mark.usefixtures("only_when_told")
def test_br15_a_directory_whose_plugin_is_missing_keeps_the_journal_incomplete(manager, bind, mounted_pod, root):
    """Its device and its name can be told when the plugin is there again, so the next start asks again."""
    os.unlink(f"{root}/volumes.journal")
    with manager(enter=False) as node:
        _look(node)
        assert node._now.parts.found.not_rebuilt == 1
    assert not _journal(root).complete
    plugin = bind()
    with manager(plugin, enter=False) as node:
        _look(node)
    assert plugin.count("construct_volume_spec") == 1
    assert _journal(root).complete


@pytest.mark.usefixtures("only_when_told")
def test_br55_a_staged_device_is_on_record_with_its_spec(manager, disk, nfs, root, mounts):
    """Between unpublish and unstage, the journal lost: found by the plugin's records, released by a later manager."""

    class Remembers(disk):
        def device(self):
            return f"{self.host.get_plugin_dir(self.name)}/mounts"

    plugin = _with_devices(Remembers)()
    with manager(plugin, enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    os.unlink(f"{root}/volumes.journal")
    with manager(_with_devices(Remembers)(), enter=False) as node:
        _look(node)
    record = next(record for (_, pod), record in _journal(root).entries.items() if not pod)
    assert (record["dev"], record["vol"]["name"]) == ("uncertain", "a")
    assert record["att"]  # it is attached by the plugin, so it has to be detached one day
    later = _with_devices(Remembers)()
    with manager(later, enter=False) as node:
        node.unmount_pod("web", timeout=20)
        assert (later.count("tear_down"), later.count("unmount_device"), later.count("detach")) == (1, 1, 1)
    assert mounts() == []


def _with_devices(base):
    """The plugin, telling its devices from what lies below its directory."""
    from volumehost import FoundDeviceMount, Spec, hookimpl
    from volumehost.api.convert import to_object
    from volumehost.api.objects import Volume

    class Told(base):
        @hookimpl
        def construct_volume_spec(self, volume_name, mount_path):
            from volumehost import ReconstructedVolume

            return ReconstructedVolume(self._spec(volume_name), complete=False)

        @hookimpl
        def find_device_mounts(self, known):
            names = os.listdir(self.device()) if os.path.isdir(self.device()) else ()
            return [FoundDeviceMount(self._spec("a"), f"{self.device()}/{name}") for name in names]

        def _spec(self, name):
            (path,) = os.listdir(self.device())
            volume = {"name": name, "nfs": {"server": "s", "path": "/" + path.replace("-", "/")}}
            return Spec.from_volume(to_object(Volume, volume))

    return Told


@pytest.mark.usefixtures("only_when_told")
def test_br58_lost_mounts_are_told_and_set_up_again(manager, bind, nfs, mounted_pod, mounts, caplog):
    path = mounted_pod.volumes[0].path
    syscalls.umount2(path, syscalls.MNT_DETACH)
    plugin = bind()
    with manager(plugin, enter=False) as node:
        _look(node)
        assert f"1 of 1 volumes that were mounted when the last manager ended no longer are: {path}" in caplog.text
        assert [volume.state for volume in node.status()[0].volumes] == ["lost"]
        assert plugin.count("tear_down") == 0
        assert node.mount_pod(_pod(nfs("a")), timeout=20).ready
    assert mounts() == [path]


@pytest.mark.usefixtures("only_when_told")
def test_the_look_leaves_alone_what_is_being_mounted_and_unmounted(manager, bind, nfs, mounts, root):
    """Directories come and go meanwhile: none of them may turn into a volume that nobody made."""
    stop = threading.Event()
    with manager(bind(), adopt=True, enter=False) as node:

        def look():
            while not stop.is_set():
                _look(node)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            for number in range(15):
                assert node.mount_pod(_pod(nfs("a"), name=f"pod-{number}"), timeout=20).ready
                node.unmount_pod(f"pod-{number}", timeout=20)
        finally:
            stop.set()
            looking.join(30)
        assert node._now.parts.services.actual.pods() == []
    assert mounts() == []


@pytest.mark.usefixtures("only_when_told")
def test_a_pod_that_only_a_directory_knows_can_be_unmounted_at_once(manager, bind, mounted_pod, root):
    os.makedirs(f"{root}/pods/uid-old/volumes/example.com~bind/left")
    with manager(bind(), enter=False) as node:
        node.unmount_pod("uid-old", timeout=20)
    assert os.listdir(f"{root}/pods") == [mounted_pod.uid]


@pytest.mark.parametrize("spoilt", ["newer", "header-only", "damaged"])
@pytest.mark.usefixtures("only_when_told")
def test_br56_only_a_whole_journal_that_says_so_is_believed_alone(manager, bind, mounted_pod, root, mounts, spoilt):
    path = f"{root}/volumes.journal"
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(
            {
                "newer": encode({"journal": 99, "complete": True}) + content,
                "header-only": header("x", 1.0),
                "damaged": content.replace(b'"inner"', b'"xnner"', 1),
            }[spoilt]
        )
    plugin = bind()
    with manager(plugin, enter=False) as node:
        assert node._now.parts.found.asked_directories
        assert plugin.count("construct_volume_spec") == 1
        assert plugin.count("tear_down") == 0
    assert mounts() == [mounted_pod.volumes[0].path]


@pytest.mark.usefixtures("only_when_told")
def test_br57_a_table_of_thousands_that_changes_all_the_time_misleads_nobody(
    manager, bind, nfs, mounted_pod, tmp_path, root, mounts
):
    """5,000 mounts, some of which come and go while a manager starts by the directories and looks again."""
    many = tmp_path / "host" / "many"
    many.mkdir()
    for number in range(5000):
        target = many / str(number)
        target.mkdir()
        syscalls.mount(str(many), str(target), "", syscalls.MS_BIND, "")
    stop = threading.Event()

    def change():
        target = str(many / "0")
        while not stop.is_set():
            syscalls.mount(str(many), target, "", syscalls.MS_BIND, "")
            syscalls.umount2(target, syscalls.MNT_DETACH)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        os.unlink(f"{root}/volumes.journal")
        plugin = bind()
        with manager(plugin, enter=False) as node:
            (mount,) = node._now.parts.services.actual.mounts_of_pod(mounted_pod.uid)
            assert mount.is_mount
            _look(node)
            assert plugin.count("tear_down") == 0
    finally:
        stop.set()
        changing.join(30)
    syscalls.umount2(mounted_pod.volumes[0].path, syscalls.MNT_DETACH)
