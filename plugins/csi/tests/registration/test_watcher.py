"""The registration directory and the cache of what lies in it (CSI-WATCH, BR-21, BR-24)."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator

import pytest

from volumehost.errors import RootDirectoryError
from volumehost_csi.registration import scan
from volumehost_csi.registration.caches import DesiredSocket, PathCache
from volumehost_csi.registration.inotify import IN_CREATE, IN_Q_OVERFLOW, Event, Inotify
from volumehost_csi.registration.watcher import RegistrationDirectory


def no_inotify() -> Inotify:
    raise OSError(errno.EMFILE, "too many instances")


class Watched:
    """A watched directory, and sockets to make in it."""

    def __init__(self, path: str, inotify=Inotify) -> None:
        self.path = path
        self.desired: PathCache[DesiredSocket] = PathCache()
        self.directory = RegistrationDirectory(path, self.desired, inotify=inotify, poll_seconds=0.02)
        self._sockets: list[socket.socket] = []

    def bind(self, name: str) -> str:
        path = f"{self.path}/{name}"
        made = socket.socket(socket.AF_UNIX)
        made.bind(path)
        self._sockets.append(made)
        return path

    def names(self) -> list[str]:
        return sorted(os.path.relpath(each.path, self.path) for each in self.desired)

    def settle(self, *names: str) -> None:
        """Wait until exactly these sockets are known."""
        deadline = time.monotonic() + 20
        while self.names() != sorted(names):
            assert time.monotonic() < deadline, f"{self.names()} instead of {sorted(names)}: {self.directory.problem}"
            self.directory.wait(0.2)

    def drain(self) -> None:
        """Take in everything that happened."""
        self.directory.wait(0.0)
        while self.directory._next_look is not None and not self.directory.polling:
            self.directory.wait(0.5)

    def release(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    def close(self) -> None:
        self.directory.close()
        self.release()


@pytest.fixture(params=[Inotify, no_inotify], ids=["inotify", "polling"])
def watched(request, short_dir) -> Iterator[Watched]:
    watched = Watched(f"{short_dir}/registry", request.param)
    watched.directory.open()
    yield watched
    watched.close()


@pytest.fixture
def notified(short_dir) -> Iterator[Watched]:
    watched = Watched(f"{short_dir}/registry")
    watched.directory.open()
    yield watched
    watched.close()


def test_the_directory_is_made(watched) -> None:
    """CSI-WATCH-01, CSI-PATH-15."""
    assert stat.S_IMODE(os.stat(watched.path).st_mode) == 0o755


def test_a_directory_that_cannot_be_made_is_an_error(short_dir) -> None:
    """CSI-WATCH-01."""
    with open(f"{short_dir}/file", "w"):
        pass
    directory = RegistrationDirectory(f"{short_dir}/file/registry", PathCache())
    with pytest.raises(RootDirectoryError, match="registry: Not a directory"):
        directory.open()


def test_sockets_come_and_go(watched) -> None:
    """CSI-WATCH-04, -07, -08."""
    watched.bind("a.sock")
    watched.bind("without-suffix")
    watched.settle("a.sock", "without-suffix")
    os.unlink(f"{watched.path}/a.sock")
    watched.settle("without-suffix")


def test_ten_sockets_are_ten_entries(watched) -> None:
    """CSI-EDGE-39."""
    names = [f"p{n}.sock" for n in range(10)]
    for name in names:
        watched.bind(name)
    watched.settle(*names)


def test_directories_are_followed_three_levels_down(watched) -> None:
    """CSI-WATCH-03, -12, CSI-EDGE-39: made while it runs, and sockets in them afterwards."""
    os.makedirs(f"{watched.path}/one/two/three")
    watched.bind("one/a.sock")
    watched.bind("one/two/b.sock")
    watched.bind("one/two/three/c.sock")
    watched.settle("one/a.sock", "one/two/b.sock", "one/two/three/c.sock")
    watched.bind("one/two/d.sock")
    watched.settle("one/a.sock", "one/two/b.sock", "one/two/d.sock", "one/two/three/c.sock")


def test_a_directory_that_is_moved_takes_its_sockets_along(watched) -> None:
    os.makedirs(f"{watched.path}/one")
    watched.bind("one/a.sock")
    watched.settle("one/a.sock")
    os.rename(f"{watched.path}/one", f"{watched.path}/two")
    watched.settle("two/a.sock")
    watched.bind("two/b.sock")
    watched.settle("two/a.sock", "two/b.sock")


def test_what_is_no_registration_socket_is_passed_over(watched, short_dir) -> None:
    """CSI-WATCH-05, -06, BR-24: hidden ones, at the start and later; files, pipes, links to nothing."""
    os.mkdir(f"{watched.path}/.hidden")
    watched.bind(".hidden/a.sock")
    watched.bind(".b.sock")
    with open(f"{watched.path}/file", "w"):
        pass
    os.mkfifo(f"{watched.path}/pipe")
    os.symlink("nothing", f"{watched.path}/dangling")
    os.mkdir(f"{short_dir}/elsewhere")
    os.symlink(f"{short_dir}/elsewhere", f"{watched.path}/link-to-directory")
    watched.bind("link-to-directory/c.sock")
    watched.bind("d.sock")
    watched.settle("d.sock")
    watched.drain()
    assert watched.names() == ["d.sock"]
    again = Watched(watched.path)
    again.directory.open()
    assert again.names() == ["d.sock"]
    again.close()


def test_a_link_to_a_socket_is_a_socket(watched, short_dir) -> None:
    """CSI-WATCH-07."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{short_dir}/elsewhere.sock")
        os.symlink(f"{short_dir}/elsewhere.sock", f"{watched.path}/link")
        watched.settle("link")


def test_a_socket_renamed_over_another_is_a_new_one(watched) -> None:
    """BR-21 (a)."""
    path = watched.bind("a.sock")
    watched.settle("a.sock")
    before = watched.desired.get(path)
    os.rename(watched.bind(".new"), path)
    deadline = time.monotonic() + 20
    while watched.desired.get(path) == before:
        assert time.monotonic() < deadline
        watched.directory.wait(0.2)
    assert watched.names() == ["a.sock"]


def test_a_socket_made_anew_is_a_new_one_though_its_inode_number_is_the_same(watched) -> None:
    """CSI-PM-03, -04, BR-21: the removal may be told late, or not at all."""
    path = watched.bind("a.sock")
    watched.settle("a.sock")
    before = watched.desired.get(path)
    watched.release()  # As long as somebody has it open, its inode number is not free.
    os.unlink(path)
    watched.bind("a.sock")
    deadline = time.monotonic() + 20
    while watched.desired.get(path) in (None, before):
        assert time.monotonic() < deadline
        watched.directory.wait(0.2)


def test_a_socket_made_anew_within_a_tick_of_the_clock_is_a_new_one(notified) -> None:
    """CSI-PM-03, BR-21: where the filesystem gives it the same number and time, only the events tell."""
    path = notified.bind("a.sock")
    notified.settle("a.sock")
    before = notified.desired.get(path)
    notified.release()
    os.unlink(path)
    notified.bind("a.sock")
    os.utime(path, ns=(before.marks.made_at, before.marks.made_at))
    notified.drain()
    after = notified.desired.get(path)
    assert after is not None
    assert after != before


def test_a_change_of_mode_is_no_new_socket(watched) -> None:
    """A registrar may chmod the socket that it has just made; it is the same one."""
    path = watched.bind("a.sock")
    watched.settle("a.sock")
    before = watched.desired.get(path)
    os.chmod(path, 0o600)
    watched.bind("b.sock")
    watched.settle("a.sock", "b.sock")
    assert watched.desired.get(path) == before


def test_the_directory_itself_may_be_removed(watched) -> None:
    """It is made again, and watched."""
    watched.bind("a.sock")
    watched.settle("a.sock")
    os.unlink(f"{watched.path}/a.sock")
    os.rmdir(watched.path)
    watched.settle()
    deadline = time.monotonic() + 20
    while not os.path.isdir(watched.path):
        assert time.monotonic() < deadline
        watched.directory.wait(0.2)
    watched.bind("b.sock")
    watched.settle("b.sock")


def test_nothing_is_taken_for_gone_while_the_directory_cannot_be_read(watched, monkeypatch) -> None:
    """CSI-WATCH-09 improved: looked at again after an error."""
    watched.bind("a.sock")
    watched.settle("a.sock")

    def fails(root, entering):
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr("volumehost_csi.registration.watcher.look", fails)
    watched.bind("b.sock")
    deadline = time.monotonic() + 20
    while "cannot be read" not in watched.directory.problem:
        assert time.monotonic() < deadline
        watched.directory.wait(0.2)
    assert watched.names() == ["a.sock"]
    monkeypatch.undo()
    watched.settle("a.sock", "b.sock")


def test_a_wait_ends_when_it_is_woken(watched) -> None:
    woken = threading.Thread(target=watched.directory.wake)
    woken.start()
    watched.directory.wait(None if not watched.directory.polling else 20)
    woken.join()


def test_without_inotify_it_says_so(short_dir) -> None:
    """CSI-WATCH-13, BR-24."""
    watched = Watched(f"{short_dir}/registry", no_inotify)
    watched.directory.open()
    assert watched.directory.polling
    assert "inotify" in watched.directory.problem
    watched.close()


def test_inotify_is_tried_again(short_dir, monkeypatch) -> None:
    """BR-24: an instance is free again later."""
    monkeypatch.setattr("volumehost_csi.registration.watcher._LOOKS_BEFORE_INOTIFY", 3)
    makers = iter([no_inotify, no_inotify])

    def make() -> Inotify:
        return next(makers, Inotify)()

    watched = Watched(f"{short_dir}/registry", make)
    watched.directory.open()
    deadline = time.monotonic() + 20
    while watched.directory.polling:
        assert time.monotonic() < deadline
        watched.directory.wait(0.1)
    assert watched.directory.problem == ""
    watched.bind("a.sock")
    watched.settle("a.sock")
    watched.close()


class OneWatch(Inotify):
    """The user's watches are used up after the first."""

    def watch(self, directory: str, *, follow: bool = False) -> int:
        if not follow:
            raise OSError(errno.ENOSPC, "no space left on device")
        return super().watch(directory, follow=follow)


def test_when_watches_are_used_up_it_is_polled(short_dir) -> None:
    """BR-24."""
    watched = Watched(f"{short_dir}/registry", OneWatch)
    watched.directory.open()
    assert not watched.directory.polling
    os.mkdir(f"{watched.path}/one")
    watched.bind("one/a.sock")
    watched.settle("one/a.sock")
    assert watched.directory.polling
    watched.close()


def test_events_that_are_lost_are_made_good(notified, monkeypatch) -> None:
    """CSI-WATCH-09 improved: the queue overflowed."""
    original = notified.directory._inotify.read

    def overflowed() -> list[Event]:
        list(original())
        return [Event(-1, IN_Q_OVERFLOW, "")]

    monkeypatch.setattr(notified.directory._inotify, "read", overflowed)
    notified.bind("a.sock")
    notified.settle("a.sock")


def test_a_directory_of_data_is_passed_over(notified, monkeypatch) -> None:
    """BR-24: its entries cost nothing more once it is known for what it is."""
    monkeypatch.setattr(scan, "MAX_SUBDIRECTORY_ENTRIES", 20)
    os.mkdir(f"{notified.path}/data")
    for number in range(25):
        with open(f"{notified.path}/data/{number}", "w"):
            pass
    notified.bind("a.sock")
    notified.settle("a.sock")
    notified.drain()
    assert "data" in notified.directory.problem
    assert list(notified.directory._watches.values()) == [notified.path]


def test_a_deep_and_large_tree_is_looked_at_within_bounds(notified, monkeypatch) -> None:
    """BR-24: sockets near the top are found all the same."""
    monkeypatch.setattr(scan, "MAX_DIRECTORIES", 8)
    for number in range(12):
        os.makedirs(f"{notified.path}/data/{number}/a/b/c/d/e/f/g/h/i/j")
    notified.bind("z.sock")
    notified.settle("z.sock")
    notified.drain()
    assert len(notified.directory._watches) <= 8
    assert "nearest" in notified.directory.problem


def test_too_deep_is_not_looked_at(notified) -> None:
    deep = "/".join("abcdefghij")
    os.makedirs(f"{notified.path}/{deep}")
    os.chdir(f"{notified.path}/{deep}")
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("deep.sock")
            notified.bind("a.sock")
            notified.settle("a.sock")
            notified.drain()
    finally:
        os.chdir("/")
    assert notified.names() == ["a.sock"]
    assert "too deep" in notified.directory.problem


def test_ordinary_files_cause_no_look(notified, monkeypatch) -> None:
    """BR-24: data being written beside the sockets."""
    notified.bind("a.sock")
    notified.settle("a.sock")
    notified.drain()
    looks: list[str] = []
    monkeypatch.setattr("volumehost_csi.registration.watcher.look", lambda root, entering: looks.append(root))
    for number in range(100):
        with open(f"{notified.path}/{number}", "w"):
            pass
        os.unlink(f"{notified.path}/{number}")
    notified.directory.wait(0.05)
    assert looks == []


class NeverQuiet(Inotify):
    """There is always an event to read, and none is of interest."""

    def __init__(self) -> None:
        super().__init__()
        os.close(self.fd)
        self.fd = os.eventfd(1)

    def watch(self, directory: str, *, follow: bool = False) -> int:
        return 1

    def unwatch(self, watch: int) -> None:
        pass

    def read(self) -> Iterator[Event]:
        return iter([Event(1, IN_CREATE, "data")])


@pytest.mark.timeout(20)
def test_a_wait_ends_in_time_however_much_happens_beside_the_sockets(short_dir) -> None:
    """BR-24: a retry that is due does not wait for the end of a storm of events."""
    watched = Watched(f"{short_dir}/registry", NeverQuiet)
    watched.directory.open()
    watched.directory.wait(0.02)
    assert watched.names() == []
    watched.close()


@pytest.mark.root
def test_other_filesystems_are_not_entered(notified) -> None:
    """BR-24: volume data mounted inside."""
    from volumehost.mount.mounter import LinuxMounter

    os.mkdir(f"{notified.path}/mounted")
    LinuxMounter().mount("tmpfs", f"{notified.path}/mounted", "tmpfs")
    try:
        notified.bind("mounted/a.sock")
        notified.bind("b.sock")
        notified.settle("b.sock")
        notified.drain()
        assert notified.names() == ["b.sock"]
    finally:
        notified.release()
        LinuxMounter().unmount(f"{notified.path}/mounted")


def test_an_empty_path_is_refused() -> None:
    """CSI-PM-02."""
    cache: PathCache[DesiredSocket] = PathCache()
    broken = DesiredSocket("", scan.Marks(1, 1, 1), 1)
    with pytest.raises(ValueError, match="empty"):
        cache.add(broken)
    with pytest.raises(ValueError, match="empty"):
        cache.replace_all({"": broken})
    cache.remove("/never/there")
    assert list(cache) == []
