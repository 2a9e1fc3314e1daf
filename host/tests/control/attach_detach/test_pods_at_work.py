"""Which pods want their volumes attached (UTIL-15), and what the multi-attach error tells (ADC-42)."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, Pod, Volume
from volumehost.control.attach_detach.multi_attach import may_be_shared, multi_attach_message
from volumehost.control.attach_detach.world import is_at_work
from volumehost.control.machinery.controller import Key
from volumehost.spec import Spec

RUNNING = {"name": "c", "state": {"running": {}}}
ENDED = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("metadata", "status", "wanted"),
    [
        ({}, {}, True),
        ({}, {"phase": "Running"}, True),
        ({}, {"phase": "Succeeded", "containerStatuses": [RUNNING]}, False),
        ({}, {"phase": "Failed"}, False),
        (DELETED, {"phase": "Running", "containerStatuses": [RUNNING]}, True),
        (DELETED, {"phase": "Running", "ephemeralContainerStatuses": [RUNNING]}, True),
        (DELETED, {"phase": "Running", "containerStatuses": [ENDED]}, False),
        (DELETED, {"phase": "Pending"}, False),
    ],
)
def test_a_pod_on_a_node(metadata: dict[str, Any], status: dict[str, Any], wanted: bool) -> None:
    document = {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": "n"}, "status": status}
    assert is_at_work(to_object(Pod, document)) is wanted
    document["spec"] = {}
    assert not is_at_work(to_object(Pod, document)), "nobody has chosen a node for it"


@pytest.mark.parametrize(
    ("users", "told"),
    [
        ([], "Volume is already exclusively attached to one node and can't be attached to another"),
        ([Key("b", "mine"), Key("a", "mine")], "Volume is already used by pod(s) a, b"),
        (
            [Key("a", "mine"), Key("x", "other")],
            "Volume is already used by pod(s) a and 1 pod(s) in different namespaces",
        ),
        ([Key("x", "other"), Key("y", "other")], "Volume is already used by 2 pod(s) in different namespaces"),
    ],
)
def test_names_of_other_namespaces_are_never_told(users: list[Key], told: str) -> None:
    assert multi_attach_message("pv", "mine", users) == f'Multi-Attach error for volume "pv" {told}'


@pytest.mark.parametrize(
    ("modes", "shared"),
    [([], True), (["ReadWriteOnce"], False), (["ReadWriteOncePod"], False), (["ReadWriteOnce", "ReadOnlyMany"], True)],
)
def test_who_may_have_a_volume_at_once(modes: list[str], shared: bool) -> None:
    """UTIL-20."""
    volume = to_object(PersistentVolume, {"metadata": {"name": "v"}, "spec": {"accessModes": modes}})
    assert may_be_shared(Spec.from_persistent_volume(volume, read_only=False)) is shared


@pytest.mark.parametrize(("source", "shared"), [("azureDisk", False), ("cinder", False), ("gcePersistentDisk", True)])
def test_a_pods_own_volume(source: str, shared: bool) -> None:
    fields = {"azureDisk": {"diskName": "d", "diskURI": "u"}, "cinder": {"volumeID": "v"}}
    volume = to_object(Volume, {"name": "v", source: fields.get(source, {"pdName": "d"})})
    assert may_be_shared(Spec.from_volume(volume)) is shared
