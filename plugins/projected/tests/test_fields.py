"""Fields of pods and resources of containers as text: PAYLOAD-30 to -34."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost import MounterArgs
from volumehost.api.convert import to_object
from volumehost.api.objects import Pod, ResourceFieldSelector
from volumehost.errors import SpecError
from volumehost_projected.fields import field_of, format_map, quote
from volumehost_projected.resources import resource_of

NODE = {"cpu": 4000, "memory": 16 << 30, "ephemeral-storage": 100 << 30, "hugepages-2Mi": 64 << 20}


def make_pod(**metadata) -> Pod:
    metadata = {"name": "web", "namespace": "prod", "uid": "u-1", **metadata}
    return to_object(Pod, {"metadata": metadata, "spec": {}})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "prod"),
        ("metadata.uid", "u-1"),
        ("metadata.labels", 'app="shop"\ntier="front"'),
        ("metadata.annotations", 'a.example.com/B="x\\ny"'),
        ("metadata.labels['app']", "shop"),
        ("metadata.annotations['a.example.com/B']", "x\ny"),
        ("metadata.labels['nope']", ""),
        ("metadata.annotations['nope']", ""),
        ("metadata.labels['']", ""),
    ],
)
def test_payload31_fields(path, value):
    pod = make_pod(labels={"tier": "front", "app": "shop"}, annotations={"a.example.com/B": "x\ny"})
    assert field_of(pod, path) == value


@pytest.mark.parametrize(
    "path",
    ["status.podIP", "spec.nodeName", "metadata", "", "metadata.Name", "metadata.labels[app]", "metadata.labels['a'"],
)
def test_payload31_other_fields_are_refused(path):
    with pytest.raises(SpecError) as caught:
        field_of(make_pod(), path)
    assert str(caught.value) == f"unsupported fieldPath: {path}"


def test_only_maps_have_subscripts():
    with pytest.raises(SpecError, match=r"metadata.name\['x'\]. does not support subscript"):
        field_of(make_pod(), "metadata.name['x']")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ('say "hi"', r'"say \"hi\""'),
        ("back\\slash", r'"back\\slash"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\0\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("\x80\xa0\xad\u200b\u2028\ufeff", r'"\u0080\u00a0\u00ad\u200b\u2028\ufeff"'),
        ("héllo 世界 😀", '"héllo 世界 😀"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("'single' `back`", "\"'single' `back`\""),
        ("\ufffd", '"\ufffd"'),
    ],
)
def test_payload32_quoting(text, quoted):
    assert quote(text) == quoted


def test_payload32_maps_are_sorted_and_end_without_a_newline():
    assert format_map({"b": "2", "a": "1", "A": "0"}) == 'A="0"\na="1"\nb="2"'
    assert format_map({}) == ""


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_payload32_quoted_text_is_one_printable_line_that_can_be_read_back(text):
    quoted = quote(text)
    assert quoted.isprintable()
    inner = quoted[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
    assert inner == text


def containers(**lists):
    return to_object(Pod, {"metadata": {"name": "web"}, "spec": lists})


def value(resource, divisor=None, limits=None, requests=None, container="main"):
    resources = {"limits": limits or {}, "requests": requests or {}}
    pod = containers(containers=[{"name": "main", "image": "x", "resources": resources}])
    selector = ResourceFieldSelector(container_name=container, resource=resource, divisor=divisor)
    return resource_of(pod, selector, lambda: NODE)


@pytest.mark.parametrize(
    ("resource", "divisor", "amount", "text"),
    [
        ("limits.cpu", None, "500m", "1"),
        ("limits.cpu", "1m", "500m", "500"),
        ("limits.cpu", "1", "2500m", "3"),
        ("limits.cpu", "0", "2500m", "3"),
        ("requests.cpu", "1m", "0.1", "100"),
        ("limits.memory", "1Mi", "64Mi", "64"),
        ("limits.memory", "1Mi", "65535Ki", "64"),
        ("requests.memory", None, "1k", "1000"),
        ("requests.ephemeral-storage", "1Gi", "1Gi", "1"),
        ("limits.hugepages-2Mi", "1Mi", "4Mi", "4"),
        ("requests.memory", "1", "9007199254740993", "9007199254740993"),
    ],
)
def test_payload34_amounts_are_divided_and_rounded_up(resource, divisor, amount, text):
    kind, _, name = resource.partition(".")
    assert value(resource, divisor, **{kind: {name: amount}}) == text


@pytest.mark.parametrize(
    ("resource", "divisor", "text"),
    [
        ("limits.cpu", "1", "4"),
        ("limits.cpu", "1m", "4000"),
        ("limits.memory", "1Gi", "16"),
        ("limits.ephemeral-storage", "1Gi", "100"),
        ("limits.hugepages-2Mi", None, "0"),
        ("requests.cpu", None, "0"),
        ("requests.memory", None, "0"),
    ],
)
def test_payload34_an_unset_limit_is_what_the_node_has(resource, divisor, text):
    assert value(resource, divisor) == text
    kind, _, name = resource.partition(".")
    assert value(resource, divisor, **{kind: {name: "0"}}) == text


def test_a_request_that_is_not_made_is_the_limit():
    """As an API server has it when a pod is created."""
    assert value("requests.cpu", "1m", limits={"cpu": "250m"}) == "250"
    assert value("requests.cpu", "1m", limits={"cpu": "250m"}, requests={"cpu": "100m"}) == "100"


def test_payload34_init_and_ephemeral_containers_are_found_too():
    of = {"resources": {"limits": {"cpu": "2"}}, "image": "x"}
    pod = containers(initContainers=[{"name": "first", **of}], ephemeralContainers=[{"name": "debug", **of}])
    for name in ("first", "debug"):
        selector = ResourceFieldSelector(container_name=name, resource="limits.cpu")
        assert resource_of(pod, selector, lambda: NODE) == "2"
    with pytest.raises(SpecError, match="container nobody not found"):
        resource_of(pod, ResourceFieldSelector(container_name="nobody", resource="limits.cpu"), lambda: NODE)


@pytest.mark.parametrize("resource", ["limits.gpu", "cpu", "limits.", "requests.pods", "capacity.cpu", ""])
def test_payload34_other_resources_are_refused(resource):
    with pytest.raises(SpecError) as caught:
        value(resource)
    assert str(caught.value) == f"unsupported container resource : {resource}"


@pytest.mark.root
def test_payload30_files_about_the_pod(world):
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}, "mode": 0o400},
        {"path": "deep/./cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
    ]
    volume = {"name": "about", "downwardAPI": {"items": items, "defaultMode": 0o440}}
    path = world.mount(volume)
    assert world.files(path) == {"labels": b'app="web"', "deep/cpu": b"4"}
    assert (world.mode(f"{path}/labels"), world.mode(f"{path}/deep/cpu")) == (0o400, 0o440)
    (mount,) = world.mounts(path)
    assert mount.fs_type == "tmpfs"
    pod = world.pod(volume)
    pod.metadata.labels = {"app": "other"}
    world.mounter(pod).set_up(MounterArgs(is_remount=True))
    assert world.files(path)["labels"] == b'app="other"'
    world.unmount(path)
    assert world.left() == []


@pytest.mark.root
def test_payload30_all_problems_are_told_and_nothing_is_written(world):
    items = [
        {"path": "a", "fieldRef": {"fieldPath": "status.podIP"}},
        {"path": "b", "fieldRef": {"fieldPath": "metadata.name"}},
        {"path": "c", "resourceFieldRef": {"containerName": "nobody", "resource": "limits.cpu"}},
        {"path": "d"},
    ]
    with pytest.raises(SpecError) as caught:
        world.mount({"name": "about", "downwardAPI": {"items": items}})
    for part in ("unsupported fieldPath: status.podIP", "container nobody not found", "the item for d has neither"):
        assert part in str(caught.value)
    assert world.left() == []
