"""References in subPathExpr: expanded as the kubelet expands them, from env, envFrom, and what they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.convert import to_object
from volumehost.api.objects import Container
from volumehost.errors import SpecError
from volumehost.node.workloads.environment import expand_subpath

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A host with an API that has some configuration."""
    from volumehost import VolumeManager

    def meta(name):
        return {"name": name, "namespace": "default"}

    with VolumeManager(tmp_path_factory.mktemp("root"), plugins=[], node_name="n1") as manager:
        data = {"where": "from-map", "EMPTY": ""}
        manager.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("settings"), "data": data})
        manager.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta("keys"), "stringData": {"k": "s3"}})
        yield manager.host


@pytest.fixture
def pod(make_pod):
    return make_pod(
        metadata={"labels": {"app": "x", "a.b/c": "y"}, "annotations": {}}, spec={"serviceAccountName": "robot"}
    )


@pytest.fixture
def expand(host, pod):
    def run(text, *env, env_from=()):
        container = to_object(Container, {"name": "c", "image": "i", "env": list(env), "envFrom": list(env_from)})
        return expand_subpath(text, container, pod, host)

    return run


def field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def ref(name, kind, source, key, **more):
    return {"name": name, "valueFrom": {kind: {"name": source, "key": key, **more}}}


# --- how references are written -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$(A)/x", "one/x"),
        ("$(A)$(A)", "oneone"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("a$b", "a$b"),
        ("$b$(A)", "$bone"),
        ("ends with $", "ends with $"),
        ("$(A", "$(A"),
        ("$($$", "$($"),
        ("${A}", "${A}"),
        ("$(odd name!)", "odd"),
        ("$(B)", "one-two"),
        ("$(C)", "$(LATER)-$(A)-one"),
    ],
)
def test_references_are_replaced(expand, text, expected):
    env = [
        {"name": "A", "value": "one"},
        {"name": "B", "value": "$(A)-two"},
        {"name": "C", "value": "$(LATER)-$$(A)-$(A)"},
        {"name": "LATER", "value": "later"},
        {"name": "odd name!", "value": "odd"},
    ]
    assert expand(text, *env) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [("$(X)", "X"), ("$(X)$(W)", "W, X"), ("$()", ""), ("$($(A)", r"\$\(A"), ("$(1)", "1"), ("$(EMPTY)", "EMPTY")],
)
def test_a_variable_without_a_value_is_an_error(expand, text, named):
    with pytest.raises(SpecError, match=rf"missing value for {named}\b|missing value for $"):
        expand(text, {"name": "A", "value": "one"}, {"name": "EMPTY", "value": ""}, {"name": "B"})


@given(st.text(alphabet="$()Aa/. ", max_size=30))
def test_text_without_references_is_the_same_with_dollars_halved(text):
    """The reference's own scan, letter by letter, against the pattern."""
    container = to_object(Container, {"name": "c", "image": "i", "env": [{"name": "A", "value": "one"}]})
    out, names, cursor = [], [], 0
    while cursor < len(text):
        rest = text[cursor:]
        if rest.startswith("$$"):
            out.append("$")
            cursor += 2
        elif rest.startswith("$(") and ")" in rest:
            names.append(rest[2 : rest.index(")")])
            out.append("one")
            cursor += rest.index(")") + 1
        else:
            out.append(rest[0])
            cursor += 1
    if set(names) <= {"A"}:
        assert expand_subpath(text, container, _NO_POD, _NO_HOST) == "".join(out)
    else:
        with pytest.raises(SpecError):
            expand_subpath(text, container, _NO_POD, _NO_HOST)


_NO_POD = _NO_HOST = None  # not needed where all values are written down


# --- where values come from -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['a.b/c']", "y"),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "robot"),
    ],
)
def test_fields_of_the_pod(expand, path, expected):
    assert expand("$(F)", field("F", path)) == expected


def test_addresses_of_the_pod_are_those_that_its_status_has(expand, pod):
    with pytest.raises(SpecError, match="missing value for IP"):
        expand("$(IP)", field("IP", "status.podIP"))
    pod.status.pod_ip, pod.status.host_ip = "10.0.0.7", "192.0.2.1"
    assert expand("$(IP)@$(HOST)", field("IP", "status.podIP"), field("HOST", "status.hostIP")) == "10.0.0.7@192.0.2.1"


@pytest.mark.parametrize("path", ["metadata.annotations['absent']", "metadata.labels['absent']"])
def test_a_field_that_is_empty_is_no_value(expand, path):
    with pytest.raises(SpecError, match=r"missing value for F$"):
        expand("$(F)", field("F", path))


@pytest.mark.parametrize("path", ["metadata.labels", "spec.hostname", "status.phase", "metadata.labels['']", "None"])
def test_other_fields_are_not_for_the_environment(expand, path):
    with pytest.raises(SpecError, match=r"missing value for F \(unsupported fieldPath"):
        expand("$(F)", field("F", path))


def test_config_maps_and_secrets(expand):
    env = [ref("M", "configMapKeyRef", "settings", "where"), ref("S", "secretKeyRef", "keys", "k")]
    assert expand("$(M)/$(S)", *env) == "from-map/s3"
    assert expand("$(V)", *env, {"name": "V", "value": "$(M)-$(S)"}) == "from-map-s3"


@pytest.mark.parametrize(
    ("variable", "why"),
    [
        (ref("X", "configMapKeyRef", "settings", "absent"), "couldn't find key absent in ConfigMap default/settings"),
        (ref("X", "secretKeyRef", "keys", "absent"), "couldn't find key absent in Secret default/keys"),
        (ref("X", "secretKeyRef", "absent", "k"), "absent"),
        (ref("X", "secretKeyRef", "keys", "absent", optional=True), "missing value for X"),
        (ref("X", "configMapKeyRef", "absent", "k", optional=True), "missing value for X"),
        ({"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}, "no values of resourceFieldRef"),
    ],
)
def test_what_cannot_be_had_is_told(expand, variable, why):
    with pytest.raises(SpecError, match=why):
        expand("$(X)", variable)
    assert expand("a/$(A)", variable, {"name": "A", "value": "one"}) == "a/one", "and is no trouble of other variables"


def test_what_depends_on_something_that_cannot_be_had_is_not_had_either(expand):
    env = [ref("X", "secretKeyRef", "absent", "k"), {"name": "Y", "value": "y-$(X)"}]
    with pytest.raises(SpecError, match=r"missing value for Y \(X: "):
        expand("$(Y)", *env)


def test_an_optional_variable_that_is_not_there_leaves_what_env_from_gave(expand):
    env_from = [{"configMapRef": {"name": "settings"}}]
    assert (
        expand("$(where)", ref("where", "secretKeyRef", "absent", "k", optional=True), env_from=env_from) == "from-map"
    )


def test_all_of_a_config_map_or_secret(expand):
    env_from = [{"configMapRef": {"name": "settings"}}, {"prefix": "S_", "secretRef": {"name": "keys"}}]
    assert expand("$(where)/$(S_k)", env_from=env_from) == "from-map/s3"
    assert expand("$(where)", {"name": "where", "value": "mine"}, env_from=env_from) == "mine"
    assert expand("$(V)", {"name": "V", "value": "$(where)"}, env_from=env_from) == "from-map"


def test_env_from_something_that_is_missing(expand):
    with pytest.raises(SpecError, match="reading the environment of container c"):
        expand("$(A)", {"name": "A", "value": "one"}, env_from=[{"secretRef": {"name": "absent"}}])
    optional = [{"secretRef": {"name": "absent", "optional": True}}, {"unknown": {}}]
    assert expand("$(A)", {"name": "A", "value": "one"}, env_from=optional) == "one"


def test_no_environment_is_read_without_a_reference(expand):
    assert expand("a$$b", env_from=[{"secretRef": {"name": "absent"}}]) == "a$b"


def test_a_secret_does_not_show_in_the_error(expand):
    with pytest.raises(SpecError) as caught:
        expand("$(S)$(X)", ref("S", "secretKeyRef", "keys", "k"))
    assert "s3" not in str(caught.value)
