"""The driver without work does its two mounts as often as it is asked, with one mount to show for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake.mounts import unmount
from volumehost_csi_kit.fake.null import NullNode


@pytest.mark.root
def test_what_is_published_again_is_mounted_once_and_what_is_gone_may_be_unpublished(tmp_path: Path) -> None:
    staged, target = tmp_path / "staged", tmp_path / "target"
    staged.mkdir()
    node = NullNode()
    publish = csi.NodePublishVolumeRequest(staging_target_path=str(staged), target_path=str(target))
    node.node_publish_volume(publish, None)
    node.node_publish_volume(publish, None)
    assert target.samefile(staged)
    assert unmount(str(target))
    assert not target.samefile(staged)
    node.node_publish_volume(publish, None)
    assert target.samefile(staged)
    for _ in range(2):
        node.node_unpublish_volume(csi.NodeUnpublishVolumeRequest(target_path=str(target)), None)
    assert not target.exists()
