"""What to do about a volume, from facts alone: about what hangs, and nothing twice."""

import pytest

from volumehost.node.explaining.facts import STUCK_SECONDS, VolumeFacts, explanation_of
from volumehost.node.explaining.sequence import VolumeKind
from volumehost.node.status.records import VolumeStatus


def advice(where="", age=STUCK_SECONDS, by="driver csi.example.com", **facts):
    status = VolumeStatus("v", "mounting", operation="volume_mount", step="set-up", age=age, where=where)
    return explanation_of(VolumeFacts(status, VolumeKind(by=by), **facts)).advice


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (
            "in NodeStageVolume of the CSI driver csi.example.com, called by acme.py:1 x",
            "'volumehost drivers show csi.",
        ),
        ("in openat() of the kernel (D, fuse_get_req), called by acme.py:1 x", "what serves the filesystem"),
        ("in the program mount.nfs (process 7, D, rpc_wait)", "what serves the filesystem"),
    ],
)
def test_br83_what_hangs_for_long_says_what_to_do(where, words):
    (line,) = advice(where)
    assert words in line
    assert advice(where, age=STUCK_SECONDS - 1) == ()
    assert advice(where, age=None) == ()


def test_what_waits_for_a_worker_or_is_in_its_plugins_own_code_has_no_such_advice():
    assert advice("waiting for a worker, 16 operations of csi.example.com hang") == ()
    assert advice("in acme/scratch.py:7 set_up") == ()


def test_nothing_is_said_twice():
    given = ["end what uses it", "end what uses it (process 7) or have it leave", "see to it", "see to it"]
    assert advice(advice=given) == ("end what uses it (process 7) or have it leave", "see to it")
