"""YAML from untrusted text: read as Kubernetes' tools read it, bounded, with the line of everything."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.yaml_document import YamlError
from volumehost.api.yaml_reader import read_yaml

LOADERS = [getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader]


def read_one(text: str, **loader: Any) -> Any:
    (document,) = read_yaml(text, **loader)
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("No", False),
        ("ON", True),
        ("off", False),
        ("true", True),
        ("y", "y"),
        ("N", "N"),
        ("yEs", "yEs"),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("nul", "nul"),
        ("0", 0),
        ("12", 12),
        ("-7", -7),
        ("+7", 7),
        ("0644", 0o644),
        ("0o644", 0o644),
        ("0b101", 5),
        ("0x1F", 31),
        ("1_000", 1000),
        ("08", "08"),
        ("0999", "0999"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("1.2.3", "1.2.3"),
        ("10.0.0.1", "10.0.0.1"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("1Gi", "1Gi"),
        ("=", "="),
        ("'yes'", "yes"),
        ('"0644"', "0644"),
        ("!!str 0644", "0644"),
        ("!!int '7'", 7),
        ("!!float 7", 7.0),
        ("!!bool 'on'", True),
        ("9" * 100, "9" * 100),
    ],
)
def test_scalars(text: str, value: object) -> None:
    for loader in LOADERS:
        found = read_one(f"key: {text}", loader=loader)["key"]
        assert found == value
        assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: 2\na: 3", 3, "the key a occurs twice"),
        ("a:\n  b: 1\n  'b': 2", 3, "the key b occurs twice"),
        ("yes: 1", 1, "put it in quotes"),
        ("1.5: x", 1, "put it in quotes"),
        ("~: x", 1, "put it in quotes"),
        ("0644: x", 1, "read as 420"),
        ("? [a]\n: b", 1, "a key must be text"),
        ("? {a: b}\n: b", 1, "a key must be text"),
        ("a: !!python/object/apply:os.system ['true']", 1, "is not allowed"),
        ("a: !!python/name:os.system", 1, "is not allowed"),
        ("a: !!binary aGk=", 1, "is not allowed"),
        ("a: !!set {x}", 1, "is not allowed"),
        ("a: !custom x", 1, "is not allowed"),
        ("a: !!int text", 1, "does not fit"),
        ("a: .inf", 1, "not a number"),
        ("a: -.INF", 1, "not a number"),
        ("a: .nan", 1, "not a number"),
        ("a: 1e999", 1, "too large"),
        ("a: *nowhere", 1, "no anchor"),
        ("a: &a [*a]", 1, "inside of what it stands for"),
        ("a: &a {b: *a}", 1, "inside of what it stands for"),
        ("a: 1\n<<: 5", 2, "merges mappings only"),
        ("<<: [x]", 1, "merges mappings only"),
        ("a: [1", 2, "did not find expected"),
        ("a: b: c", 1, "mapping values are not allowed"),
        ("a: 'open", 1, "end of stream"),
        ("\ta: b", 1, "cannot start any token"),
        ("a: \0", 0, "control characters"),
        ("ok: 1\n---\n@bad", 3, "cannot start any token"),
    ],
)
def test_refused_with_the_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(YamlError) as caught:
        list(read_yaml(text))
    assert reason in caught.value.reason
    assert caught.value.line == line


@pytest.mark.parametrize("opening", ["[", "{", "- ", "a: [", "? "])
@pytest.mark.parametrize("loader", LOADERS)
def test_deep_nesting_is_refused(opening: str, loader: Any) -> None:
    with pytest.raises(YamlError):
        list(read_yaml(opening * 20_000, loader=loader))


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(YamlError, match="aliases"):
        list(read_yaml("\n".join(lines)))


def test_a_bomb_of_merges_is_refused_at_once() -> None:
    lines = ["a0: &a0 {k0: v}"]
    lines += [f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}" for n in range(1, 30)]
    with pytest.raises(YamlError, match="aliases"):
        list(read_yaml("\n".join(lines)))


def test_aliases_and_merge_keys() -> None:
    text = """
base: &base {a: 1, b: 2}
other: &other {c: 3}
same: *base
merged:
  <<: [*base, *other]
  b: own
quoted: {"<<": text}
"""
    assert read_one(text) == {
        "base": {"a": 1, "b": 2},
        "other": {"c": 3},
        "same": {"a": 1, "b": 2},
        "merged": {"b": "own", "a": 1, "c": 3},
        "quoted": {"<<": "text"},
    }


def test_an_anchor_can_name_a_scalar_and_a_key() -> None:
    assert read_one("&k key: &v value\ncopy: *v\n*k : 1\n".replace("\n*k : 1", "")) == {"key": "value", "copy": "value"}
    assert read_one("first: &k name\n*k : 1") == {"first": "name", "name": 1}


def test_documents_are_numbered_and_empty_ones_skipped() -> None:
    text = "# comment only\n---\na: 1\n---\n---\nb: 2\n...\n---\n~\n"
    documents = list(read_yaml(text))
    assert [(document.number, document.line, document.value) for document in documents] == [
        (1, 3, {"a": 1}),
        (3, 6, {"b": 2}),
    ]


def test_anchors_end_with_their_document() -> None:
    with pytest.raises(YamlError, match="no anchor"):
        list(read_yaml("a: &x 1\n---\nb: *x"))


@pytest.mark.parametrize("loader", LOADERS)
def test_every_field_has_its_line(loader: Any) -> None:
    text = "spec:\n  volumes:\n  - name: a\n    emptyDir: {}\n  - name: b\n  data:\n    tls.crt: x\n"
    (document,) = read_yaml(text, loader=loader)
    assert document.lines == {
        "$": 1,
        "$.spec": 2,
        "$.spec.volumes": 3,
        "$.spec.volumes[0]": 3,
        "$.spec.volumes[0].name": 3,
        "$.spec.volumes[0].emptyDir": 4,
        "$.spec.volumes[1]": 5,
        "$.spec.volumes[1].name": 5,
        "$.spec.data": 7,
        "$.spec.data['tls.crt']": 7,
    }


def test_json_is_yaml_too() -> None:
    assert read_one('{"a": [1, "x", null, true, {"b": "\\u00e4"}]}') == {"a": [1, "x", None, True, {"b": "ä"}]}


def test_a_large_text_of_plain_data_is_read() -> None:
    text = "".join(f"- {{name: n{index}, value: {index}}}\n" for index in range(5000))
    assert len(read_one(text)) == 5000


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcXYZ-._ ", min_size=1, max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(plain)
def test_what_pyyaml_writes_is_read_alike(value: Any) -> None:
    text = yaml.safe_dump({"value": value}, allow_unicode=False, default_style='"')
    assert read_one(text) == {"value": value}


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    started = time.monotonic()
    try:
        list(read_yaml(text))
    except YamlError as error:
        reason = error.reason
    else:
        reason = "read"
    assert reason
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("loader", LOADERS)
def test_a_line_that_is_indented_by_a_tab_is_told(loader: Any) -> None:
    with pytest.raises(YamlError, match="indented by a tab, use spaces") as caught:
        list(read_yaml("kind: Pod\nspec:\n\tcontainers: []\n", loader=loader))
    assert caught.value.line == 3
