"""Applying a manifest to a server that merges manifests itself."""

from __future__ import annotations

import pytest

from volumehost.api.apply import apply_object
from volumehost.api.kubernetes import connect
from volumehost.api.objects import ConfigMap, Pod, Secret
from volumehost.errors import ConflictError, InvalidObjectError
from volumehost.testing.api_server import ApiServer

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "front"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


@pytest.fixture(scope="module")
def server():
    with ApiServer(service_accounts=True) as server:
        yield server


@pytest.fixture
def api(server, tmp_path):
    with connect(server.kubeconfig(tmp_path / "kubeconfig")) as client:
        yield client
    for each in ("pods", "configmaps", "secrets"):
        for found in server.objects.list(each):
            server.objects.delete(each, found["metadata"]["name"], found["metadata"]["namespace"])


def test_what_the_server_adds_to_lists_stays(api):
    """A pod gets a volume with a token: a list that was replaced as a whole would lose it, and be refused."""
    assert apply_object(api, Pod, POD).outcome == "created"
    names = [each.name for each in api.get(Pod, "web").spec.volumes]
    assert len(names) == 2
    assert apply_object(api, Pod, POD).outcome == "unchanged"
    changed = {**POD, "metadata": {**POD["metadata"], "labels": {"app": "other"}}}
    applied = apply_object(api, Pod, changed)
    assert (applied.outcome, applied.object.metadata.labels) == ("configured", {"app": "other"})
    assert [each.name for each in api.get(Pod, "web").spec.volumes] == names


def test_what_is_no_longer_said_goes_and_what_others_say_stays(api):
    apply_object(api, ConfigMap, {**CONFIG, "data": {"a": "1", "b": "2"}})
    api.patch(ConfigMap, "m", {"data": {"c": "3"}})
    assert apply_object(api, ConfigMap, {**CONFIG, "data": {"b": "2"}}).object.data == {"b": "2", "c": "3"}


def test_a_key_of_a_secret_that_was_given_as_text_goes_too(api):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    apply_object(api, Secret, {**secret, "stringData": {"a": "1", "b": "2"}})
    assert set(apply_object(api, Secret, {**secret, "stringData": {"a": "1"}}).object.data) == {"a"}


def test_what_must_not_change_is_named(api):
    apply_object(api, Pod, POD)
    spec = {**POD["spec"], "volumes": [{"name": "v", "hostPath": {"path": "/srv"}}]}
    with pytest.raises(InvalidObjectError, match=r"spec\.volumes"):
        apply_object(api, Pod, {**POD, "spec": spec})


def test_a_manifest_that_was_read_from_the_server_can_be_applied(api, server):
    apply_object(api, Pod, POD)
    assert apply_object(api, Pod, server.objects.get("pods", "web")).outcome in {"unchanged", "configured"}


def test_a_resource_version_is_a_condition(api):
    made = apply_object(api, ConfigMap, {**CONFIG, "data": {"a": "1"}}).object.metadata.resource_version
    api.patch(ConfigMap, "m", {"data": {"c": "3"}})
    stale = {**CONFIG, "metadata": {**CONFIG["metadata"], "resourceVersion": made}, "data": {"a": "2"}}
    with pytest.raises(ConflictError):
        apply_object(api, ConfigMap, stale)


def test_it_is_one_request_beside_the_look_before(api, server):
    server.requests.clear()
    apply_object(api, ConfigMap, {**CONFIG, "data": {"a": "1"}})
    assert [each.verb for each in server.requests.all()] == ["get", "patch"]
