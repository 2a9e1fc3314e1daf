"""Names, labels, annotations, owners, finalizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.validation.names import config_key, dns_label, dns_subdomain, label_value, qualified_name

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}}


@pytest.mark.parametrize("name", ["a", "a1", "a-b", "0", "x" * 63])
def test_dns_labels(name: str) -> None:
    assert dns_label(name) == ""


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a_b", "a.b", "a b", "ä", "a\n", "..", "a/b", "x" * 64])
def test_no_dns_labels(name: str) -> None:
    assert dns_label(name)


@pytest.mark.parametrize("name", ["a", "a.b", "a-1.b-2", "x" * 253])
def test_dns_subdomains(name: str) -> None:
    assert dns_subdomain(name) == ""


@pytest.mark.parametrize("name", ["", ".", "..", "a..b", ".a", "a.", "A", "a/b", "x" * 254, "x" * 300, "a.-b"])
def test_no_dns_subdomains(name: str) -> None:
    assert dns_subdomain(name)


@pytest.mark.parametrize("name", ["a", "A_b.c-1", "example.com/Key", "x" * 63, "a.b/" + "x" * 63])
def test_qualified_names(name: str) -> None:
    assert qualified_name(name) == ""


@pytest.mark.parametrize(
    "name", ["", "/", "/a", "a/", "a/b/c", "Example.com/a", "-a", "a-", "x" * 64, "ex_ample/a", "a b", "y" * 254 + "/a"]
)
def test_no_qualified_names(name: str) -> None:
    assert qualified_name(name)


def test_label_values_may_be_empty() -> None:
    assert label_value("") == ""
    assert label_value("A_b.c-1") == ""
    for wrong in ("-a", "a-", "a b", "a/b", "x" * 64):
        assert label_value(wrong)


def test_config_keys_are_safe_file_names() -> None:
    for right in ("a", "A.b_c-d", ".hidden", "-x", "x" * 253):
        assert config_key(right) == ""
    for wrong in ("", ".", "..", "..a", "a/b", "a b", "ä", "x" * 254, "a\0"):
        assert config_key(wrong)


@given(st.text(max_size=20))
def test_a_valid_config_key_never_leaves_its_directory(key: str) -> None:
    if not config_key(key):
        assert "/" not in key
        assert "\0" not in key
        assert key not in {"", ".", ".."}


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        ({}, "metadata.name", "Required value"),
        ({"name": "Config"}, "metadata.name", "Invalid value"),
        ({"name": "../etc"}, "metadata.name", "Invalid value"),
        ({"name": "x" * 300}, "metadata.name", "no more than 253"),
        ({"name": "x", "namespace": "a.b"}, "metadata.namespace", "Invalid value"),
        ({"name": "x", "namespace": "y" * 64}, "metadata.namespace", "no more than 63"),
        ({"name": "x", "labels": {"-bad": "v"}}, "metadata.labels", "Invalid value: '-bad'"),
        ({"name": "x", "labels": {"k": "not valid"}}, "metadata.labels[k]", "Invalid value: 'not valid'"),
        ({"name": "x", "annotations": {"a/b/c": "v"}}, "metadata.annotations", "Invalid value"),
        ({"name": "x", "annotations": {"k": "v" * (256 * 1024)}}, "metadata.annotations", "Too long"),
        ({"name": "x", "finalizers": ["plain"]}, "metadata.finalizers[0]", "domain"),
        ({"name": "x", "finalizers": ["a/b/c"]}, "metadata.finalizers[0]", "Invalid value"),
        (
            {"name": "x", "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u"}]},
            "metadata.ownerReferences[0].apiVersion",
            "Required",
        ),
        (
            {
                "name": "x",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"
                ],
            },
            "metadata.ownerReferences",
            "only one",
        ),
    ],
)
def test_metadata(problems_of: Callable[[Any], dict[str, str]], metadata: Any, field: str, message: str) -> None:
    found = problems_of(CONFIG_MAP | {"metadata": metadata})
    assert list(found) == [field]
    assert message in found[field]


def test_kinds_without_namespace_refuse_one(problems_of: Callable[[Any], dict[str, str]]) -> None:
    document = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "driver.example.com", "namespace": "default"},
    }
    assert problems_of(document) == {"metadata.namespace": "Forbidden: a CSIDriver belongs to no namespace"}


def test_messages_stay_short(problems_of: Callable[[Any], dict[str, str]]) -> None:
    found = problems_of(CONFIG_MAP | {"metadata": {"name": "A" * 10_000}})
    assert len(found["metadata.name"]) < 300


def test_annotation_values_are_never_shown(problems_of: Callable[[Any], dict[str, str]]) -> None:
    found = problems_of(CONFIG_MAP | {"metadata": {"name": "x", "annotations": {"bad key": "hunter2"}}})
    assert "hunter2" not in str(found)
