"""Unknown fields survive typed writes; merge patches and label selectors keep their rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.convert import to_object, to_wire
from volumehost.api.merging import merge_known, merge_patch
from volumehost.api.objects import LabelSelector, Node, Pod
from volumehost.api.schema import shape_of
from volumehost.api.selectors import parse_selector, selector_of
from volumehost.errors import InvalidObjectError

STORED: Any = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "novel": 1},
    "spec": {
        "novel": {"deep": None},
        "volumes": [
            {"name": "a", "emptyDir": {"novel": 2}},
            {"name": "b", "novel": 3, "hostPath": {"path": "/b"}},
        ],
        "containers": [
            {
                "name": "main",
                "novel": 4,
                "volumeMounts": [{"name": "a", "mountPath": "/1", "novel": 5}, {"name": "a", "mountPath": "/2"}],
            }
        ],
        "affinity": {"free": "form"},
    },
    "novel": 6,
}


def merged(change: Any) -> Any:
    pod = to_object(Pod, STORED)
    change(pod)
    return merge_known(STORED, to_wire(pod), shape_of(Pod))


def test_nothing_changes_when_nothing_changed() -> None:
    assert merged(lambda pod: None) == STORED | {"status": {}}


def test_a_changed_field_leaves_unknown_ones_alone() -> None:
    def change(pod: Pod) -> None:
        pod.spec.node_name = "node-1"

    found = merged(change)
    assert found["spec"]["nodeName"] == "node-1"
    assert found["spec"]["novel"] == {"deep": None}
    assert found["novel"] == 6


def test_items_are_matched_by_name_and_mounts_by_path() -> None:
    def change(pod: Pod) -> None:
        pod.spec.volumes.reverse()
        pod.spec.containers[0].volume_mounts.reverse()

    found = merged(change)
    assert found["spec"]["volumes"] == [STORED["spec"]["volumes"][1], STORED["spec"]["volumes"][0]]
    assert found["spec"]["containers"][0]["volumeMounts"] == [
        {"name": "a", "mountPath": "/2"},
        {"name": "a", "mountPath": "/1", "novel": 5},
    ]


def test_a_removed_item_takes_its_unknown_fields_along() -> None:
    def change(pod: Pod) -> None:
        del pod.spec.volumes[1]

    assert merged(change)["spec"]["volumes"] == [{"name": "a", "emptyDir": {"novel": 2}}]


def test_a_removed_known_field_goes() -> None:
    def change(pod: Pod) -> None:
        pod.spec.volumes[0].empty_dir = None
        pod.spec.affinity = None

    found = merged(change)
    assert found["spec"]["volumes"][0] == {"name": "a"}
    assert "affinity" not in found["spec"]


def test_items_without_names_are_matched_by_position() -> None:
    stored = {"spec": {"volumes": [{"novel": 1}, {"novel": 2}]}}
    new: Any = {"spec": {"volumes": [{"emptyDir": {}}, {}, {}]}}
    assert merge_known(stored, new, shape_of(Pod))["spec"]["volumes"] == [
        {"emptyDir": {}, "novel": 1},
        {"novel": 2},
        {},
    ]


# --- merge patches (the examples of RFC 7386, appendix A) --------------------------------------------------


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


json_objects = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)


@given(json_objects, json_objects)
def test_a_patch_applied_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


# --- selectors ---------------------------------------------------------------------------------------------

LABELS = {"app": "web", "tier": "front", "example.com/zone": "a"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, True),
        ("", True),
        ("  ", True),
        ({}, True),
        ({"app": "web"}, True),
        ({"app": "web", "tier": "back"}, False),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app!=web", False),
        ("absent!=x", True),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("app notin (web)", False),
        ("absent notin (x)", True),
        ("example.com/zone=a,app in (web),!gone", True),
        ("app=", False),
    ],
)
def test_selectors(selector: Any, matches: bool) -> None:
    assert parse_selector(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    "text", ["=web", "app in web", "app in ()x", "app=web tier=front", "a b", ",", "app=we b", "-x", "a>1"]
)
def test_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidObjectError, match="label selector"):
        parse_selector(text)


def test_selectors_of_objects() -> None:
    assert selector_of(None) is None
    everything = selector_of(LabelSelector())
    assert everything is not None
    assert everything.matches({})
    document = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}],
    }
    selector = selector_of(to_object(LabelSelector, document))
    assert selector is not None
    assert selector.matches(LABELS)
    assert not selector.matches(LABELS | {"tier": "back"})


def test_items_without_names_keep_what_is_theirs_when_they_move() -> None:
    stored = {"spec": {"taints": [{"key": "a", "novel": 1}, {"key": "b", "novel": 2}]}}
    new: Any = {"spec": {"taints": [{"key": "c"}, {"key": "a"}]}}
    merged = merge_known(stored, new, shape_of(Node))["spec"]["taints"]
    assert merged == [{"key": "c"}, {"key": "a", "novel": 1}]
