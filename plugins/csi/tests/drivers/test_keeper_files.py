"""What the keeper writes is there whole or not at all, and leaves nothing beside it."""

import os

import pytest

from volumehost.mount import syscalls
from volumehost_csi.drivers.keeper import replace


@pytest.mark.root
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    syscalls.mount("small", str(place), "tmpfs", 0, "size=8k")
    try:
        replace(f"{place}/exit.json", b"old")
        with pytest.raises(OSError, match="No space left"):
            replace(f"{place}/exit.json", b"x" * 16384)
        assert os.listdir(place) == ["exit.json"]
        assert (place / "exit.json").read_bytes() == b"old"
    finally:
        syscalls.umount2(str(place), 0)
