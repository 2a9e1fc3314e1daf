"""The first page is true as it stands: its program runs, its options and objects are those that there are."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from volumehost.mount.mounter import LinuxMounter
from volumehost_loop_driver.main import _parser
from volumehost_loop_driver.parameters import read_inline

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.root
def test_the_program_makes_and_mounts_a_volume(start, client, place) -> None:
    start("--data-dir", f"{place}/volumes")
    (program,) = blocks("python")
    program = program.replace("/run/loop/", f"{place}/").replace("/srv/", f"{place}/")
    names: dict[str, object] = {}
    exec(compile(program, str(README), "exec"), names)
    names["channel"].close()  # type: ignore[attr-defined]
    assert os.path.ismount(f"{place}/data")
    found = os.statvfs(f"{place}/data")
    assert found.f_blocks * found.f_frsize <= 64 << 20
    id = names["volume"].volume_id  # type: ignore[attr-defined]
    client.call("NodeUnpublishVolume", volume_id=id, target_path=f"{place}/data")
    client.call("NodeUnstageVolume", volume_id=id, staging_target_path=f"{place}/staging")
    client.call("DeleteVolume", volume_id=id)
    assert not [mount for mount in LinuxMounter().list_mounts() if mount.path.startswith(place)]


def test_the_manifest_uses_what_there_is() -> None:
    objects = {item["kind"]: item for item in yaml.safe_load_all(blocks("yaml")[0])}
    assert objects["PersistentVolumeClaim"]["spec"]["storageClassName"] == "loop"
    inline = objects["Pod"]["spec"]["volumes"][1]["csi"]
    assert inline["driver"] == "loop.csi.volumehost"
    assert read_inline(inline["volumeAttributes"], "").size == 512 << 20


def test_every_option_is_told() -> None:
    text = README.read_text(encoding="utf-8")
    own = {option for action in _parser()._actions for option in action.option_strings if option.startswith("--")}
    assert own - {"--help"} <= set(re.findall(r"`(--[a-z-]+)`", text))
