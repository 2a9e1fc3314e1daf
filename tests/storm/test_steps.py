"""The kill storm knows every named step: those of the code, whoever adds one."""

import re
from pathlib import Path

from storm.steps import all_steps

import volumehost.node


def test_every_step_that_the_code_enters_is_one_to_be_killed_at():
    """What is written as ``enter("...")`` in the node's room; the storm finds its steps by following the calls."""
    room = Path(volumehost.node.__file__).parent
    written = {name for file in room.rglob("*.py") for name in re.findall(r'\benter\(\s*"([^"]+)"', file.read_text())}
    assert written
    assert written <= {step.step for step in all_steps()}


def test_each_operation_has_steps():
    operations = {step.operation for step in all_steps()}
    assert {"volume_mount", "volume_unmount", "map_volume", "unmap_volume", "volume_attach", "volume_detach",
            "unmount_device", "unmap_device", "volume_fs_resize"} <= operations  # fmt: skip
