"""Trust anchors out of ClusterTrustBundle objects (KHOST-01)."""

import pytest

from volumehost.api.objects import (
    ClusterTrustBundle,
    ClusterTrustBundleSpec,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
)
from volumehost.errors import ObjectNotFoundError
from volumehost.hosts.api_objects import labels_match
from volumehost.hosts.node_host import NodeHost

ONE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
TWO = "-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def host(store):
    for name, signer, labels, text in (
        ("plain", "", {}, TWO + ONE),
        ("example.com:signer:a", "example.com/signer", {"live": "yes"}, ONE),
        ("example.com:signer:b", "example.com/signer", {"live": "yes"}, ONE + TWO),
        ("example.com:signer:c", "example.com/signer", {"live": "no"}, TWO),
    ):
        spec = ClusterTrustBundleSpec(signer_name=signer, trust_bundle=text)
        store.create(ClusterTrustBundle(metadata=ObjectMeta(name=name, labels=labels), spec=spec))
    return NodeHost("/r", api=store)


def test_by_name_each_certificate_once_in_a_stable_order(host):
    assert host.get_trust_anchors_by_name("plain", False).decode() == ONE + TWO


def test_by_name_missing(host):
    assert host.get_trust_anchors_by_name("absent", True) == b""
    with pytest.raises(ObjectNotFoundError):
        host.get_trust_anchors_by_name("absent", False)


def test_by_signer_and_labels(host):
    selector = LabelSelector(match_labels={"live": "no"})
    assert host.get_trust_anchors_by_signer("example.com/signer", selector, False).decode() == TWO
    everything = host.get_trust_anchors_by_signer("example.com/signer", LabelSelector(), False)
    assert everything.decode() == ONE + TWO


def test_by_signer_no_selector_matches_nothing(host):
    assert host.get_trust_anchors_by_signer("example.com/signer", None, True) == b""
    with pytest.raises(ObjectNotFoundError):
        host.get_trust_anchors_by_signer("example.com/signer", None, False)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ["a", "b"], {"k": "a"}, True),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {}, True),
        ("DoesNotExist", [], {"k": ""}, False),
        ("Near", [], {"k": ""}, False),
    ],
)
def test_label_conditions(operator, values, labels, expected):
    condition = LabelSelectorRequirement(key="k", operator=operator, values=values)
    assert labels_match(LabelSelector(match_expressions=[condition]), labels) is expected
