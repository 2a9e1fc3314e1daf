"""Whatever form an object has, it becomes ours; and ours becomes JSON and YAML that everybody reads alike."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.convert import is_client_model, to_json, to_object, to_wire, to_yaml
from volumehost.api.decoding import timestamp
from volumehost.api.manifests import parse_manifests
from volumehost.api.objects import ConfigMap, ObjectMeta, Pod, PodSpec, Secret, Volume
from volumehost.errors import InvalidObjectError


class Model:
    """The shape that OpenAPI generators give their models."""

    openapi_types: ClassVar[dict[str, str]] = {}
    attribute_map: ClassVar[dict[str, str]] = {}

    def __init__(self, **values: Any) -> None:
        for name in self.attribute_map:
            setattr(self, name, values.get(name))

    def to_dict(self) -> dict[str, Any]:
        raise AssertionError("snake case names are no use here")


class ModelMeta(Model):
    attribute_map: ClassVar[dict[str, str]] = {
        "name": "name",
        "creation_timestamp": "creationTimestamp",
        "labels": "labels",
    }


class ModelHostPath(Model):
    attribute_map: ClassVar[dict[str, str]] = {"path": "path", "type": "type"}


class ModelVolume(Model):
    attribute_map: ClassVar[dict[str, str]] = {"name": "name", "host_path": "hostPath"}


class ModelSpec(Model):
    attribute_map: ClassVar[dict[str, str]] = {"volumes": "volumes", "host_pid": "hostPID"}


class ModelPod(Model):
    attribute_map: ClassVar[dict[str, str]] = {
        "api_version": "apiVersion",
        "kind": "kind",
        "metadata": "metadata",
        "spec": "spec",
    }


DOCUMENT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"a": "b"}},
    "spec": {"volumes": [{"name": "data", "hostPath": {"path": "/srv"}}], "hostPID": True},
}


def test_our_own_object_is_returned_as_it_is() -> None:
    pod = Pod()
    assert to_object(Pod, pod) is pod


@pytest.mark.parametrize("thing", [DOCUMENT, json.dumps(DOCUMENT), json.dumps(DOCUMENT).encode()])
def test_mappings_and_json(thing: object) -> None:
    pod = to_object(Pod, thing)
    assert pod.metadata.name == "web"
    assert pod.spec.host_pid
    assert pod.spec.volumes[0].host_path is not None
    assert pod.spec.volumes[0].host_path.path == "/srv"


def test_models_of_the_kubernetes_client() -> None:
    model = ModelPod(
        api_version="v1",
        kind="Pod",
        metadata=ModelMeta(name="web", creation_timestamp=datetime(2026, 1, 2, tzinfo=UTC), labels={"a": "b"}),
        spec=ModelSpec(volumes=[ModelVolume(name="data", host_path=ModelHostPath(path="/srv"))], host_pid=True),
    )
    assert is_client_model(model)
    pod = to_object(Pod, model)
    assert pod.metadata.creation_timestamp == "2026-01-02T00:00:00Z"
    assert to_wire(pod)["spec"] == DOCUMENT["spec"]


def test_kind_and_version_may_be_absent_but_not_wrong() -> None:
    assert to_object(Pod, {"metadata": {"name": "x"}}).kind == "Pod"
    with pytest.raises(InvalidObjectError, match=r"\$\.kind: expected Pod, got Secret"):
        to_object(Pod, {"kind": "Secret"})
    with pytest.raises(InvalidObjectError, match=r"\$\.apiVersion: expected v1, got v2"):
        to_object(Pod, {"apiVersion": "v2"})


@pytest.mark.parametrize("thing", [None, 5, [], "not json", b"\xff", "[1]"])
def test_other_things_are_refused(thing: object) -> None:
    with pytest.raises(InvalidObjectError):
        to_object(Pod, thing)


def test_wrong_types_name_object_and_field() -> None:
    with pytest.raises(
        InvalidObjectError, match=r"Pod web is invalid: \$\.spec\.volumes\[0\]\.hostPath\.path"
    ) as caught:
        to_object(Pod, {"metadata": {"name": "web"}, "spec": {"volumes": [{"hostPath": {"path": 5}}]}})
    assert caught.value.problems[0][0] == "$.spec.volumes[0].hostPath.path"


def test_secrets_travel_as_base64() -> None:
    secret = Secret(metadata=ObjectMeta(name="s"), data={"key": b"\x00\xff"})
    assert to_wire(secret)["data"] == {"key": "AP8="}
    assert to_object(Secret, to_wire(secret)) == secret


def test_json_on_one_line_or_indented() -> None:
    assert (
        to_json(ConfigMap(data={"a": "b"})) == '{"apiVersion":"v1","kind":"ConfigMap","metadata":{},"data":{"a":"b"}}'
    )
    assert '\n  "kind": "ConfigMap"' in to_json(ConfigMap(), indent=2)


AMBIGUOUS = ["yes", "no", "on", "y", "n", "null", "~", "", "true", "0644", "0o17", "1e3", "1_000", "1:30", "0x1f"]
AMBIGUOUS += [
    "2026-01-02",
    ".5",
    "5.",
    "-1",
    "+1",
    "=",
    "<<",
    "*x",
    "&x",
    "!x",
    "- x",
    "a: b",
    "#x",
    "|",
    "\ttab",
    "a\n",
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_ambiguous_texts_come_back_from_yaml_as_texts(text: str) -> None:
    config_map = ConfigMap(metadata=ObjectMeta(name="c"), data={"key": text})
    written = to_yaml(config_map)
    assert yaml.safe_load(written)["data"]["key"] == text
    assert parse_manifests(written)[0].obj == config_map


def test_long_texts_are_readable() -> None:
    written = to_yaml(ConfigMap(data={"script": "line one\nline two\n"}))
    assert "script: |\n    line one\n    line two\n" in written


def test_equal_parts_are_written_twice_not_by_alias() -> None:
    shared = {"a": "b"}
    assert "&" not in to_yaml({"one": shared, "two": shared})


@given(st.dictionaries(st.text("abc-._", min_size=1, max_size=5), st.text(max_size=20), max_size=3))
def test_any_text_survives_yaml_and_json(data: dict[str, str]) -> None:
    config_map = ConfigMap(metadata=ObjectMeta(name="c"), data=data)
    assert to_object(ConfigMap, to_json(config_map)) == config_map
    assert parse_manifests(to_yaml(config_map))[0].obj == config_map


def test_timestamps() -> None:
    assert timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05Z"
    assert timestamp(datetime(2026, 1, 2, 3, 4, 5, 678)) == "2026-01-02T03:04:05.000678Z"


def test_parts_of_objects_convert_too() -> None:
    assert to_object(Volume, {"name": "x", "emptyDir": {}}).empty_dir is not None
    assert to_object(PodSpec, {"nodeName": "n"}).node_name == "n"
