"""A repair works alone, and the next one goes on where one was killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.errors import FailedPreconditionError, RootDirectoryLockedError

from .conftest import kinds

pytestmark = pytest.mark.root


def actions(report):
    return [step.action.value for _, step in report.plan.steps()]


def test_beside_a_kubelet_only_when_that_is_said(kubelet):
    import socket

    kubelet.csi(kubelet.pod(1))
    directory = os.open(f"{kubelet.root}/pod-resources", os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{directory}/kubelet.sock")
        server.listen(8)
        assert "a kubelet" in kubelet.plan().inspection.at_work
        with pytest.raises(FailedPreconditionError, match="kubelet") as caught:
            kubelet.repair()
        assert "--while-kubelet-runs" in caught.value.hint
        assert kubelet.pods()
        assert kubelet.repair(while_kubelet_runs=True).complete
    os.close(directory)
    assert kubelet.pods() == []


def test_two_repairs_do_not_meet(kubelet):
    kubelet.csi(kubelet.pod(1))
    kubelet.nfs(kubelet.pod(2))
    met = []

    def on_step(_repair, _result):
        if not met:
            with pytest.raises(RootDirectoryLockedError):
                kubelet.repair()
            met.append(True)

    assert kubelet.repair(on_step=on_step).complete
    assert met


KILLED = """
import os, sys
from volumehost.inspection.inspect import Sources
from volumehost.inspection.repair import apply_repair
left = int(sys.argv[3])
def on_step(repair, result):
    global left
    left -= 1
    if not left:
        os._exit(9)
report = apply_repair(sys.argv[1], Sources(pods=sys.argv[2]), on_step=on_step)
sys.exit(0 if report.complete else 1)
"""


def test_killed_after_any_step_the_next_repair_goes_on(kubelet):
    known, orphan = kubelet.pod(1), kubelet.pod(2)
    kept = kubelet.csi(known)
    target = kubelet.csi(orphan, "vol-2", "pv-2")
    kubelet.nfs(orphan, "other")
    kubelet.subpath(orphan, "pv-2", f"{target}/file")
    kubelet.block(orphan)
    pods = kubelet.pods_file(known)
    steps = len(actions(kubelet.plan(known)))
    assert steps >= 8
    for _ in range(steps + 1):  # each is killed after its first step, and has brought the next one further
        command = [sys.executable, "-c", KILLED, kubelet.root, pods, "1"]
        code = subprocess.run(command, timeout=60, check=False).returncode
        if code != 9:
            break
    assert code == 0
    assert kubelet.pods() == [known]
    assert kubelet.mounts() == [f"{kubelet.staging('vol-1')}/globalmount", kept]
    assert kinds(kubelet.inspect(known)) == []
    assert Path(kubelet.data("vol-2"), "file").read_text() == "vol-2"
