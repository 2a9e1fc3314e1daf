"""Data from outside is fitted to the types; everything wrong is told at once, with its path."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.decoding import decode
from volumehost.api.objects import ConfigMap, Pod, Secret
from volumehost.api.schema import shape_of

POD = shape_of(Pod)


def problems(document: Any) -> dict[str, str]:
    return dict(decode(document, POD).problems)


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (
            {"spec": {"volumes": [{"hostPath": {"path": 5}}]}},
            "$.spec.volumes[0].hostPath.path",
            "expected string, got integer",
        ),
        ({"spec": {"volumes": [{"name": True}]}}, "$.spec.volumes[0].name", "expected string, got boolean"),
        ({"spec": {"volumes": {"name": "x"}}}, "$.spec.volumes", "expected array, got object"),
        ({"spec": {"volumes": ["x"]}}, "$.spec.volumes[0]", "expected object, got string"),
        ({"spec": {"volumes": [None]}}, "$.spec.volumes[0]", "expected object, got null"),
        ({"spec": {"hostUsers": "yes"}}, "$.spec.hostUsers", "expected boolean, got string"),
        ({"spec": {"hostUsers": 1}}, "$.spec.hostUsers", "expected boolean, got integer"),
        ({"spec": {"priority": True}}, "$.spec.priority", "expected integer, got boolean"),
        ({"spec": {"priority": 1.5}}, "$.spec.priority", "expected integer, got number"),
        ({"spec": {"priority": 2**64}}, "$.spec.priority", "does not fit into 64 bits"),
        ({"spec": []}, "$.spec", "expected object, got array"),
        ({"metadata": {"labels": {"a.b/c": 1}}}, "$.metadata.labels['a.b/c']", "expected string, got integer"),
        ({"spec": {"nodeName": "\ud800"}}, "$.spec.nodeName", "is not valid Unicode"),
        ({"spec": {5: "x"}}, "$.spec", "which is no string"),
        ({"spec": {"affinity": {"x": object()}}}, "$.spec.affinity.x", "cannot be written as JSON"),
        ({"spec": {"securityContext": {"fsGroup": "1000"}}}, "$.spec.securityContext.fsGroup", "without quotes"),
    ],
)
def test_wrong_types_name_the_field(document: Any, path: str, message: str) -> None:
    found = problems(document)
    assert list(found) == [path]
    assert message in found[path]


def test_all_problems_are_told() -> None:
    found = problems({"metadata": {"name": 1}, "spec": {"volumes": [{"name": 1}, {"emptyDir": []}], "nodeName": {}}})
    assert list(found) == [
        "$.metadata.name",
        "$.spec.volumes[0].name",
        "$.spec.volumes[1].emptyDir",
        "$.spec.nodeName",
    ]


def test_nulls_are_absent() -> None:
    decoded = decode({"metadata": None, "spec": {"volumes": [{"name": "x", "emptyDir": None}], "nodeName": None}}, POD)
    assert decoded.value == {"spec": {"volumes": [{"name": "x"}]}}
    assert not decoded.problems


def test_a_null_value_of_a_mapping_is_the_empty_value() -> None:
    assert decode({"data": {"a": None}}, shape_of(ConfigMap)).value == {"data": {"a": ""}}


@pytest.mark.parametrize(
    ("given_value", "text"),
    [
        (5, "5"),
        (0.5, "500m"),
        (1000.0, "1k"),
        (1024, "1024"),
        (10**15, "1P"),
        ("1Gi", "1Gi"),
        ("1024Mi", "1Gi"),
        ("1K", "1K"),
    ],
)
def test_numbers_become_quantities(given_value: object, text: str) -> None:
    document = {"spec": {"volumes": [{"emptyDir": {"sizeLimit": given_value}}]}}
    assert decode(document, POD).value["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] == text
    resources = {"spec": {"containers": [{"resources": {"limits": {"memory": given_value}}}]}}
    assert decode(resources, POD).value["spec"]["containers"][0]["resources"]["limits"]["memory"] == text


def test_a_boolean_is_no_quantity() -> None:
    assert "expected quantity" in problems({"spec": {"overhead": {"memory": True}}})["$.spec.overhead.memory"]


def test_unknown_fields_are_kept_and_named() -> None:
    decoded = decode({"spec": {"volumes": [{"name": "x", "hostpath": {"path": "/x", "n": None}}], "novel": 1}}, POD)
    assert decoded.value["spec"]["volumes"][0]["hostpath"] == {"path": "/x", "n": None}
    assert dict(decoded.unknown) == {
        "$.spec.volumes[0].hostpath": "did you mean hostPath?",
        "$.spec.novel": "",
    }


def test_base64_may_be_folded_and_is_checked() -> None:
    shape = shape_of(Secret)
    assert decode({"data": {"a": "aGVs\nbG8=\r\n"}}, shape).value["data"]["a"] == "aGVsbG8="
    for wrong in ("aGVsbG8", "!!!!", "a b=", "ä"):
        found = decode({"data": {"a": wrong}}, shape).problems
        assert found == [("$.data.a", "is not valid base64")]
        assert wrong not in found[0][1]


def test_times_of_other_loaders_become_text() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert decode({"metadata": {"creationTimestamp": moment}}, POD).value["metadata"]["creationTimestamp"] == (
        "2026-01-02T03:04:05Z"
    )
    assert decode({"metadata": {"labels": {"day": date(2026, 1, 2)}}}, POD).value["metadata"]["labels"]["day"] == (
        "2026-01-02"
    )


def test_deep_nesting_is_told_not_crashed() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"x": deep}
    assert any("nested deeper" in message for message in problems({"spec": {"affinity": deep}}).values())
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert any("nested deeper" in message for message in problems({"spec": {"novel": deep}}).values())


def test_the_document_is_left_alone_and_nothing_is_shared() -> None:
    document = {"spec": {"affinity": {"x": [1]}, "volumes": [{"name": "a", "emptyDir": None}]}}
    decoded = decode(document, POD)
    decoded.value["spec"]["affinity"]["x"].append(2)
    assert document == {"spec": {"affinity": {"x": [1]}, "volumes": [{"name": "a", "emptyDir": None}]}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "path", "spec", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
field_names = st.sampled_from(sorted(POD.fields["spec"].fields))  # type: ignore[union-attr]


@given(st.dictionaries(field_names, json_values, max_size=4))
def test_any_document_is_decoded_or_explained(spec: dict[str, Any]) -> None:
    import msgspec

    decoded = decode({"spec": spec}, POD)
    if not decoded.problems:
        msgspec.convert(decoded.value, type=Pod)
    assert all(path.startswith("$") and message for path, message in decoded.problems)
