"""A workload that exchanges parts of a subpath in a tight loop while it is made and bound (BR-71, SUBPATH-16, -21).

Nothing outside of the volume is ever bound, by device and inode, and nothing is ever made there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from volumehost.errors import VolumeHostError
from volumehost.host_services import Subpath
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.subpath import LinuxSubpather

pytestmark = pytest.mark.root

EXCHANGER = Path(__file__).with_name("exchanger.py")
#: How often each outcome has to be seen, and after how many attempts that would be strange.
OFTEN, ATTEMPTS = 40, 20_000


class Ground:
    """A volume of a pod, and beside it what the workload is after: a directory that has to stay empty."""

    def __init__(self, area: Path) -> None:
        self.pod = area / "pod"
        self.volume = self.pod / "volumes" / "x~y" / "vol"
        self.canary = area / "canary"
        self.honest = self.volume / "top" / "mid" / "end"
        self.honest.mkdir(parents=True)
        (self.canary / "mid" / "end").mkdir(parents=True)
        (self.canary / "end").mkdir()
        self._before = self._state()

    def _state(self) -> list[tuple[str, int, int]]:
        """All that is outside of the volume: what is there, and when each directory was changed last."""
        found = []
        for path, directories, files in os.walk(self.canary):
            status = os.stat(path)
            found.append((path, status.st_mtime_ns, len(directories) + len(files)))
        return sorted(found)

    def is_untouched(self) -> bool:
        return self._state() == self._before

    def subpath(self, inside: str) -> Subpath:
        return Subpath(0, str(self.volume / inside), "vol", str(self.volume), str(self.pod), "container")


@pytest.fixture
def ground(area: Path) -> Ground:
    return Ground(area)


@pytest.fixture
def subpather() -> LinuxSubpather:
    return LinuxSubpather(LinuxMounter(), seconds=20)


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """The attack, for as long as the block takes."""
    command = [sys.executable, str(EXCHANGER), str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline() == b"ready\n"
            yield
            assert attacker.poll() is None, "the attack went on to the end"
        finally:
            attacker.kill()


def identity(path: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


#: What is exchanged, and with what: a link to where the canary is, by each way that there is out of a volume.
WAYS_OUT = {
    "absolute": lambda ground, level: ground.canary / level,
    "relative": lambda ground, level: Path(os.path.relpath(ground.canary / level, ground.volume)),
    "magic": lambda ground, level: Path(f"/proc/self/root{ground.canary / level}"),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize(("part", "level"), [("top", ""), ("top/mid", "mid"), ("top/mid/end", "end")])
def test_br71_only_the_honest_directory_is_ever_bound_while_parts_are_exchanged(
    way: str, part: str, level: str, subpather: LinuxSubpather, ground: Ground
) -> None:
    evil = ground.volume / "evil"
    evil.symlink_to(WAYS_OUT[way](ground, level))
    honest = identity(ground.honest)
    bound = refused = 0
    with exchanging(ground.volume / part, evil):
        for _ in range(ATTEMPTS):
            if bound >= OFTEN and refused >= OFTEN:
                break
            try:
                target = subpather.prepare_safe_subpath(ground.subpath("top/mid/end"))
            except (OSError, VolumeHostError):
                refused += 1
                assert not (ground.pod / "volume-subpaths").exists(), "an error leaves nothing"
                continue
            bound += 1
            assert identity(target) == honest
            subpather.clean_sub_paths(str(ground.pod), "vol")
    assert bound >= OFTEN
    assert refused >= OFTEN
    assert ground.is_untouched()


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize(("part", "level"), [("top", ""), ("top/mid", "mid")])
def test_br71_nothing_is_made_outside_while_parts_are_exchanged_subpath16(
    way: str, part: str, level: str, subpather: LinuxSubpather, ground: Ground
) -> None:
    evil = ground.volume / "evil"
    evil.symlink_to(WAYS_OUT[way](ground, level))
    made = refused = number = 0
    with exchanging(ground.volume / part, evil):
        for number in range(ATTEMPTS):
            if made >= OFTEN and refused >= OFTEN:
                break
            try:
                subpather.safe_make_dir(f"top/mid/new-{number}/below", str(ground.volume), 0o755)
            except (OSError, VolumeHostError):
                refused += 1
                continue
            made += 1
    assert made >= OFTEN, number
    assert refused >= OFTEN, number
    assert ground.is_untouched()


def test_br71_a_directory_that_is_made_and_exchanged_at_once_is_not_left(
    subpather: LinuxSubpather, ground: Ground
) -> None:
    """The last part itself: between its creation and the next level it becomes a link."""
    evil = ground.volume / "evil"
    (ground.volume / "new").mkdir()
    evil.symlink_to(ground.canary)
    with exchanging(ground.volume / "new", evil):
        for number in range(300):
            try:
                subpather.safe_make_dir(f"new/a-{number}/b/c", str(ground.volume), 0o755)
                subpather.prepare_safe_subpath(ground.subpath(f"new/a-{number}/b/c"))
            except (OSError, VolumeHostError):
                continue
            subpather.clean_sub_paths(str(ground.pod), "vol")
    assert ground.is_untouched()


def test_br71_a_file_exchanged_with_a_directory_is_bound_as_what_it_was(
    subpather: LinuxSubpather, ground: Ground
) -> None:
    file, other = ground.volume / "file", ground.volume / "directory"
    file.write_text("content")
    other.mkdir()
    known = {identity(file), identity(other)}
    bound, refused = set(), 0
    with exchanging(file, other):
        for _ in range(ATTEMPTS):
            if bound == known and refused < ATTEMPTS // 2:
                break
            try:
                bound.add(identity(subpather.prepare_safe_subpath(ground.subpath("file"))))
            except (OSError, VolumeHostError):
                refused += 1
            # Not cleaned in between: the place has to become what is bound there next.
    assert bound == known
    subpather.clean_sub_paths(str(ground.pod), "vol")


@pytest.mark.parametrize(
    "leads_to",
    ["/proc/self/root", "/proc/self/cwd", "/proc/self/exe", "/proc/self/fd/0", "/proc/1/root", "/dev/fd/0", "/"],
)
@pytest.mark.parametrize("rest", ["", "/etc", "/etc/passwd", "/new/dir"])
def test_br71_magic_links_lead_nowhere(leads_to: str, rest: str, subpather: LinuxSubpather, ground: Ground) -> None:
    (ground.volume / "link").symlink_to(leads_to)
    if rest.startswith("/new"):
        with pytest.raises((OSError, VolumeHostError)):
            subpather.safe_make_dir(f"link{rest}", str(ground.volume), 0o755)
    with pytest.raises((OSError, VolumeHostError)):
        subpather.prepare_safe_subpath(ground.subpath(f"link{rest}"))
    assert not (ground.pod / "volume-subpaths").exists()


def test_subpath27_what_is_bound_is_judged_by_its_descriptor(ground: Ground) -> None:
    """The path becomes a file between its opening and the making of the place for it: a directory is made all the same.

    So the type comes from what was opened, not from what the path is now.
    """

    class Swapping(LinuxMounter):
        def is_mount_point(self, path: str) -> bool:
            ground.honest.rename(ground.volume / "away")
            ground.honest.write_text("a file now")
            return super().is_mount_point(path)

    honest = identity(ground.honest)
    target = LinuxSubpather(Swapping()).prepare_safe_subpath(ground.subpath("top/mid/end"))
    assert os.path.isdir(target)
    assert identity(target) == honest


@pytest.mark.parametrize("before", ["file", "directory"])
def test_a_subpath_that_became_something_else_is_bound_again_subpath22_subpath23(
    before: str, subpather: LinuxSubpather, ground: Ground
) -> None:
    """A container that starts again: its subpath was a file and is a directory now, or the reverse."""
    place = ground.volume / "place"
    place.write_text("x") if before == "file" else place.mkdir()
    first = subpather.prepare_safe_subpath(ground.subpath("place"))
    place.unlink() if before == "file" else place.rmdir()
    place.mkdir() if before == "file" else place.write_text("y")
    assert subpather.prepare_safe_subpath(ground.subpath("place")) == first
    assert identity(first) == identity(place)
    subpather.clean_sub_paths(str(ground.pod), "vol")
    assert not (ground.pod / "volume-subpaths").exists()
