"""The mount table is not read for each volume, however often everything is looked at (BR-57)."""

import builtins
import os

import pytest

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


@pytest.fixture
def reads(monkeypatch):
    """How often the mount table was opened."""
    seen = []

    def counting(function):
        def opened(path, *args, **options):
            if isinstance(path, str) and path.endswith("/mountinfo"):
                seen.append(path)
            return function(path, *args, **options)

        return opened

    monkeypatch.setattr(builtins, "open", counting(builtins.open))
    monkeypatch.setattr(os, "open", counting(os.open))
    return seen


def test_br57_looks_at_many_volumes_read_no_mount_table(manager, bind, nfs, reads):
    node = manager(bind())
    for number in range(10):
        node.mount_pod(_pod(nfs("a"), nfs("b"), name=f"pod-{number}"), timeout=30)
    reads.clear()
    for _ in range(5):
        node._now.mounting.sync()
        node.parts.reconciler.resync()
        for record in node.parts.populator.records():
            node._now.mounting.notice_lost_mounts(record.pod.metadata.uid)
        node.status()
    assert reads == []
    node.host.get_mounter().list_mounts()
    assert len(reads) >= 1, "it would be counted"
