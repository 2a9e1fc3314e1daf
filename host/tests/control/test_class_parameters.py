"""What a storage class says to the provisioner itself, by the external-provisioner's rules."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import SecretReference
from volumehost.control.provisioning.class_parameters import class_secrets, driver_parameters, fs_type
from volumehost.errors import SpecError

P = "csi.storage.k8s.io/"


def secret(make: Any, purpose: str, parameters: dict[str, str], **annotations: str) -> SecretReference | None:
    claim = make.claim("data", namespace="team", annotations={k.replace("_", "/"): v for k, v in annotations.items()})
    found: SecretReference | None = getattr(class_secrets(parameters, "pvc-1", claim), purpose)
    return found


def test_reserved_parameters_stay_here() -> None:
    given = {"tier": "hot", f"{P}fstype": "xfs", f"{P}node-stage-secret-name": "s", "csiNodeStageSecretName": "old"}
    assert driver_parameters(given) == {"tier": "hot", "csiNodeStageSecretName": "old"}


def test_an_unknown_reserved_parameter_is_refused() -> None:
    with pytest.raises(SpecError, match="fstyp: the prefix"):
        driver_parameters({f"{P}fstyp": "xfs"})


@pytest.mark.parametrize(
    ("parameters", "expected"), [({}, ""), ({f"{P}fstype": "xfs"}, "xfs"), ({"fsType": "ext4"}, "ext4")]
)
def test_fs_type(parameters: dict[str, str], expected: str) -> None:
    assert fs_type(parameters) == expected


def test_two_filesystem_types_are_refused() -> None:
    with pytest.raises(SpecError, match="more than once"):
        fs_type({"fstype": "ext4", f"{P}fstype": "xfs"})


@pytest.mark.parametrize(
    "purpose",
    ["provisioner", "controller-publish", "node-stage", "node-publish", "controller-expand", "node-expand"],
)
def test_each_purpose_has_its_secret_and_the_default_serves_the_others(make: Any, purpose: str) -> None:
    parameters = {
        f"{P}{purpose}-secret-name": "own",
        f"{P}{purpose}-secret-namespace": "vault",
        f"{P}secret-name": "shared",
        f"{P}secret-namespace": "vault",
    }
    secrets = class_secrets(parameters, "pvc-1", make.claim())
    field = purpose.replace("-", "_")
    others = {name for name in secrets.__dataclass_fields__ if name != field}
    assert getattr(secrets, field) == SecretReference(name="own", namespace="vault")
    assert {getattr(secrets, name).name for name in others} == {"shared"}


def test_templates(make: Any) -> None:
    parameters = {
        f"{P}node-stage-secret-name": "${pvc.name}-${pv.name}-${pvc.annotations['acme.example.com/user']}",
        f"{P}node-stage-secret-namespace": "${pvc.namespace}",
    }
    found = secret(make, "node_stage", parameters, **{"acme.example.com_user": "ann"})
    assert found == SecretReference(name="data-pvc-1-ann", namespace="team")


@pytest.mark.parametrize(
    ("name", "namespace", "reason"),
    [
        ("${pvc.nam}", "vault", "pvc.nam, which stands for nothing"),
        ("s", "${pvc.name}", "pvc.name, which stands for nothing"),
        ("s", "${pvc.annotations['a']}", "stands for nothing"),
        ("S_", "vault", "is no name"),
        ("s", "a.b", "is no name"),
        ("", "vault", "is empty"),
    ],
)
def test_bad_templates(make: Any, name: str, namespace: str, reason: str) -> None:
    parameters = {f"{P}node-stage-secret-name": name, f"{P}node-stage-secret-namespace": namespace}
    with pytest.raises(SpecError, match=reason):
        secret(make, "node_stage", parameters, a="x")


def test_the_secret_that_creates_volumes_is_not_the_users_to_choose(make: Any) -> None:
    parameters = {
        f"{P}provisioner-secret-name": "${pvc.annotations['a']}",
        f"{P}provisioner-secret-namespace": "vault",
    }
    with pytest.raises(SpecError, match="stands for nothing"):
        secret(make, "provisioner", parameters, a="admin")


def test_half_a_secret_and_one_given_twice_are_refused(make: Any) -> None:
    with pytest.raises(SpecError, match="both a name and a namespace"):
        secret(make, "provisioner", {f"{P}provisioner-secret-name": "s"})
    twice = {
        f"{P}provisioner-secret-name": "s",
        f"{P}provisioner-secret-namespace": "n",
        "csiProvisionerSecretName": "s",
        "csiProvisionerSecretNamespace": "n",
    }
    with pytest.raises(SpecError, match="twice"):
        secret(make, "provisioner", twice)


def test_the_old_names_still_work(make: Any) -> None:
    parameters = {"csiNodePublishSecretName": "s", "csiNodePublishSecretNamespace": "n"}
    assert secret(make, "node_publish", parameters) == SecretReference(name="s", namespace="n")
