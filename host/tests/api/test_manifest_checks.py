from __future__ import annotations

import pytest

from volumehost.api.manifest_checks import check_manifests
from volumehost.api.manifests import Manifest, parse_manifests
from volumehost.errors import ManifestError, NotAvailableOnHostError

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{{metadata}}}\n"


def config(*metadata: str) -> list[Manifest]:
    return parse_manifests("---\n".join(CONFIG.format(metadata=each) for each in metadata), "m.yaml")


def errors_of(manifests: list[Manifest], namespace: str = "") -> list[Exception]:
    with pytest.raises(ExceptionGroup) as caught:
        check_manifests(manifests, namespace)
    return list(caught.value.exceptions)


def test_objects_without_a_namespace_get_the_commands_or_the_default_one() -> None:
    (default,) = check_manifests(config("name: a"))
    (given,) = check_manifests(config("name: a"), "mine")
    assert default.obj.metadata.namespace == default.document["metadata"]["namespace"] == "default"
    assert given.obj.metadata.namespace == given.document["metadata"]["namespace"] == "mine"


def test_what_was_handed_in_is_not_changed() -> None:
    manifests = config("name: a")
    check_manifests(manifests, "mine")
    assert manifests[0].obj.metadata.namespace == ""
    assert "namespace" not in manifests[0].document["metadata"]


def test_a_namespace_that_differs_from_the_commands_is_an_error_with_file_document_and_line() -> None:
    (error,) = errors_of(config("name: a", "name: b, namespace: other"), "mine")
    assert isinstance(error, ManifestError)
    assert "the object is in other, the command in mine" in str(error)
    assert "m.yaml, document 2" in str(error)
    assert "line 7" in str(error)


def test_kinds_without_a_namespace_are_left_without() -> None:
    text = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: example.com/x\n"
    (checked,) = check_manifests(parse_manifests(text), "mine")
    assert "namespace" not in checked.document["metadata"]


def test_every_invalid_object_is_told_and_none_gets_through() -> None:
    errors = errors_of(config("name: Not_A_Name", "name: fine", "generateName: made-", "labels: {a: b}"))
    assert len(errors) == 3
    assert all(isinstance(error, ManifestError) for error in errors)
    texts = [str(error) for error in errors]
    assert "document 1" in texts[0]
    assert "a generated name cannot be applied" in texts[1]
    assert "metadata.name: Required value" in texts[2]


def test_defaults_are_for_the_check_alone() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}],"
        " volumes: [{name: v, hostPath: {path: /srv}}]}\n"
    )
    (checked,) = check_manifests(parse_manifests(text))
    assert checked.document["spec"]["volumes"][0]["hostPath"] == {"path": "/srv"}


def test_requests_that_nobody_stores_are_refused() -> None:
    text = "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\nmetadata: {name: t}\nspec: {audiences: [a]}\n"
    (error,) = errors_of(parse_manifests(text))
    assert isinstance(error, NotAvailableOnHostError)
