"""Makes sure that where an operation works is below the root directory, and not where a link leads.

Plugins work with paths. With a link among the parents of one (a mistake, an attack, a damaged disk) they would mount,
unmount and delete what is not the volume's. So the operations ask here before their plugin is called.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

from volumehost.errors import RemovalError, UnsafePathError
from volumehost.mount import syscalls
from volumehost.mount.places import shared_places
from volumehost.mount.safe_path import open_beneath

if TYPE_CHECKING:
    from volumehost.hosts.layout import Layout

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
_PLAIN = syscalls.OpenPath(syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_SYMLINKS | syscalls.RESOLVE_NO_XDEV)
_CACHED = syscalls.OpenPath(syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_SYMLINKS | syscalls.RESOLVE_CACHED)
#: Of a whole path, whose root directory has no links in it: nearly always enough, and nothing has to be opened before.
_KNOWN = syscalls.OpenPath(syscalls.RESOLVE_NO_SYMLINKS | syscalls.RESOLVE_CACHED)

#: For how many seconds a pod of which nothing was there is new to those who set its volumes up together, and one that
#: has no subpaths has none for those who tear its volumes down together. One of them alone may take longer than that
#: after its look. To look anew for each of them would take as long as their mounts.
_NEW_SECONDS = 0.01
#: Of the last new pod its directory and the number of the set-ups; and when it was looked for. One is enough, since the
#: volumes of a pod come one after the other.
_new_pod: tuple[tuple[str, int], float] = ("", 0), 0.0
#: The same of the last pod without subpaths: the directory of these, and the number of the teardowns.
_without_subpaths: tuple[tuple[str, int], float] = ("", 0), 0.0


def check_place_in_pod(
    layout: Layout, pod_uid: str, plugin_name: str, name: str, *, block: bool, together: int = 0
) -> None:
    """Refuse the place of a volume in its pod, that of its subpaths, and that of what its plugin keeps, if a link leads
    there.

    What is not there yet is fine. Nothing is asked of what is mounted there, which may hang.

    :param together: the number of the set-ups that were started together, which share a look at a pod that is new; 0
        for a look of one's own.
    :raises UnsafePathError: a link is in the way.
    :raises RemovalError: a file is.
    """
    global _new_pod  # noqa: PLW0603
    directory = layout.pod_dir(pod_uid)
    known, since = _new_pod
    if together and known == (directory, together) and time.monotonic() - since < _NEW_SECONDS:
        return
    places = _places(layout, pod_uid, plugin_name, name, block=block)
    if not block:
        places.append((layout.pod_subpaths_dir(pod_uid), name))
    if not _check(layout, places, within=directory if together else ""):
        _new_pod = (directory, together), time.monotonic()


def check_place_to_tear_down(layout: Layout, pod_uid: str, plugin_name: str, name: str, *, together: int) -> bool:
    """The same for a volume that is taken away, and is no raw block device; whether its pod may have subpaths.

    :param together: the number of the teardowns that were started together, which share a look for subpaths; 0 for a
        look of one's own.
    :raises UnsafePathError: a link is in the way.
    :raises RemovalError: a file is.
    """
    global _without_subpaths  # noqa: PLW0603
    _check(layout, _places(layout, pod_uid, plugin_name, name, block=False))
    directory = layout.pod_subpaths_dir(pod_uid)
    known, since = _without_subpaths
    if together and known == (directory, together) and time.monotonic() - since < _NEW_SECONDS:
        return False
    if _check(layout, [(directory, name)], within=directory):
        return True
    _without_subpaths = (directory, together), time.monotonic()
    return False


def _places(layout: Layout, pod_uid: str, plugin_name: str, name: str, *, block: bool) -> list[tuple[str, str]]:
    """What the plugin keeps of the volume, and the volume itself: a directory, and an entry that is to be no link."""
    if block:  # it is a link itself, to its device
        volume = layout.pod_volume_device_dir(pod_uid, plugin_name), ""
    else:
        volume = os.path.dirname(layout.pod_volume_dir(pod_uid, plugin_name, name)), name
    return [(layout.pod_plugin_dir(pod_uid, plugin_name), name), volume]


def check_place_of_device(layout: Layout, path: str) -> None:
    """The same for the place where a device is mounted on the node; one outside of the root directory is not ours.

    :raises UnsafePathError: a link is in the way.
    :raises RemovalError: a file is.
    """
    if path.startswith(f"{layout.root_dir}/"):
        _check(layout, [(os.path.dirname(path), os.path.basename(path))])


def _check(layout: Layout, places: list[tuple[str, str]], within: str = "") -> bool:
    """Whether the directory that all of them lie in is there; without it there is nothing else to look for.

    :param places: directories, and of each an entry that must be no link either, "" for none.
    """
    if not within and shared_places().cached_lookups_are_safe():
        places = [place for place in places if not _is_known_to_be_fine(*place)]
        if not places:
            return True
    root = os.open(layout.root_dir, _DIRECTORY | os.O_CLOEXEC)
    try:
        begin = len(layout.root_dir) + 1
        if within and _look(root, within[begin:]) == errno.ENOENT:
            return False
        for directory, name in places:
            relative = directory[begin:]
            path = f"{relative}/{name}" if name else relative
            # One call tells for certain that it is not there, or that neither links nor mounts lie on the way. Where
            # something is mounted one in the kernel's cache does, which asks nobody about the mount.
            found = _look(root, path)
            if found == errno.EXDEV and shared_places().cached_lookups_are_safe():
                found = _look(root, path, _CACHED)
            if found not in (0, errno.ENOENT):
                _look_closely(root, directory, relative, name)
    finally:
        os.close(root)
    return True


def _is_known_to_be_fine(directory: str, name: str) -> bool:
    """Whether the kernel knows at once that no link is in the way, or that nothing is there."""
    opened = _KNOWN.open(syscalls.AT_FDCWD, f"{directory}/{name}" if name else directory)
    if opened < 0:
        return opened == -errno.ENOENT
    os.close(opened)
    return True


def _look(root: int, relative: str, how: syscalls.OpenPath = _PLAIN) -> int:
    """0, or the number of the error."""
    opened = how.open(root, relative)
    if opened < 0:
        return -opened
    os.close(opened)
    return 0


def _look_closely(root: int, directory: str, relative: str, name: str) -> None:
    try:
        opened = open_beneath(root, relative, _DIRECTORY)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise RemovalError(
            f"a part of {directory} is no directory",
            action="looking at the place of a volume",
            subject=directory,
            hint="find out what it is and take it away; nothing was touched",
        ) from error
    except UnsafePathError as error:
        raise _leads_elsewhere(directory) from error
    try:
        # By the entry's type in its directory: to ask the thing itself is to ask whatever is mounted there.
        with os.scandir(opened) as entries:
            linked = any(entry.name == name and entry.is_symlink() for entry in entries)
    finally:
        os.close(opened)
    if linked:
        raise _leads_elsewhere(f"{directory}/{name}")


def _leads_elsewhere(path: str) -> UnsafePathError:
    return UnsafePathError(
        f"a symbolic link is in the path {path}, and leads elsewhere",
        action="looking at the place of a volume",
        subject=path,
        hint="find out who made the link, and take it away; nothing was touched",
    )
