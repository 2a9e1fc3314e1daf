"""Projected volumes: PAYLOAD-06, PAYLOAD-40 to -45, HOST-03, HOST-04, KHOST-01, KHOST-04."""

from __future__ import annotations

import base64
import json
import os

import pytest

from volumehost import MounterArgs
from volumehost.api.objects import ClusterTrustBundle, ClusterTrustBundleSpec, ObjectMeta
from volumehost.errors import NotAvailableOnHostError, SpecError, TransientOperationError

pytestmark = pytest.mark.root

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
TOKEN = {"serviceAccountToken": {"path": "token"}}
NAMESPACE = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}


def projected(*sources, **more):
    return {"name": "identity", "projected": {"sources": list(sources), **more}}


def claims_of(token: bytes) -> dict:
    body = token.split(b".")[1]
    return json.loads(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))


def test_the_volume_that_every_pod_of_a_cluster_gets(world):
    world.config_map("kube-root-ca.crt", {"ca.crt": "PEM", "other": "x"})
    root = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    path = world.mount(projected(token, root, NAMESPACE), serviceAccountName="builder")
    files = world.files(path)
    assert files.keys() == {"token", "ca.crt", "namespace"}
    assert (files["ca.crt"], files["namespace"]) == (b"PEM", world.namespace.encode())
    claims = claims_of(files["token"])
    assert claims["sub"] == f"system:serviceaccount:{world.namespace}:builder"
    assert claims["exp"] - claims["iat"] == 3607
    assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": path.split("/")[-4]}
    (mount,) = world.mounts(path)
    assert mount.fs_type == "tmpfs"


def test_payload40_a_later_source_replaces_the_file_of_an_earlier_one(world):
    world.config_map("one", {"a": "1", "b": "1"})
    world.secret("two", {"b": b"2"})
    path = world.mount(projected({"configMap": {"name": "one"}}, {"secret": {"name": "two"}}))
    assert world.files(path) == {"a": b"1", "b": b"2"}


def test_payload42_each_source_is_optional_by_itself_and_all_have_the_volumes_mode(world):
    world.config_map("one", {"a": "1"})
    missing = [{"secret": {"name": "nope", "optional": True}}, {"configMap": {"name": "nope", "optional": True}}, {}]
    path = world.mount(projected(*missing, {"configMap": {"name": "one"}}, defaultMode=0o440))
    assert world.files(path) == {"a": b"1"}
    assert world.mode(f"{path}/a") == 0o440


def test_payload41_all_failures_are_told_and_nothing_is_written(world):
    world.config_map("one", {"a": "1"})
    sources = [
        {"secret": {"name": "nope"}},
        {"configMap": {"name": "one", "items": [{"key": "x", "path": "x"}]}},
        {"downwardAPI": {"items": [{"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}}]}},
        {"clusterTrustBundle": {"path": "ca"}},
        {"configMap": {"name": "one"}},
    ]
    with pytest.raises(SpecError) as caught:
        world.mount(projected(*sources))
    for part in (
        'secret "nope" not found',
        "configmap references non-existent config key: x",
        "unsupported fieldPath: status.podIP",
        "ClusterTrustBundle projection requires either name or signerName to be set",
    ):
        assert part in str(caught.value)
    assert world.left() == []


def test_payload41_without_an_api_there_is_none(world):
    world.host.get_kube_client = lambda: None
    with pytest.raises(NotAvailableOnHostError) as caught:
        world.mount(projected(NAMESPACE))
    assert str(caught.value) == "cannot setup projected volume identity because kube client is not configured"
    assert world.left() == []


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (MounterArgs(), (0, None, 0o644)),
        (MounterArgs(fs_user=1000), (1000, None, 0o600)),
        (MounterArgs(fs_group=5000), (0, 5000, 0o640)),
        (MounterArgs(fs_user=1000, fs_group=5000), (1000, 5000, 0o640)),
    ],
)
def test_payload43_whose_a_token_is(world, args, expected):
    path = world.mount(projected(TOKEN, NAMESPACE), args=args)
    status = os.stat(f"{path}/token")
    group = expected[1] if expected[1] is not None else status.st_gid
    assert (status.st_uid, status.st_gid, world.mode(f"{path}/token")) == (expected[0], group, expected[2])
    assert os.stat(f"{path}/namespace").st_uid == 0
    assert world.mode(f"{path}/namespace") == 0o644


def test_payload43_audience_and_default_account(world):
    path = world.mount(projected({"serviceAccountToken": {"path": "token", "audience": "vault"}}))
    claims = claims_of(world.files(path)["token"])
    assert claims["aud"] == ["vault"]
    assert claims["sub"].endswith(":default")


class Signer:
    """Numbers the tokens that it signs, which live an hour."""

    def __init__(self) -> None:
        self.signed = 0

    def __call__(self, namespace, name, request):
        self.signed += 1
        request.status.token = f"token-{self.signed}"
        return request


@pytest.fixture
def signer(world):
    """Signs for the host, on whose clock time passes only when it is told to."""
    from volumehost.hosts.tokens import TokenCache

    signer, clock = Signer(), [0.0]
    cache = TokenCache(signer, clock=lambda: clock[0], jitter=lambda: 0.0)
    world.host._objects._tokens = cache
    signer.clock = clock
    return signer


def test_a_token_is_renewed_before_it_ends_and_only_then(world, signer):
    volume = projected(TOKEN)
    path = world.mount(volume)
    for now, expected in ((0, 1), (2800, 1), (2881, 2), (5000, 2), (2881 + 2881, 3)):
        signer.clock[0] = float(now)
        world.mount(volume, args=MounterArgs(is_remount=True))
        assert world.files(path) == {"token": f"token-{expected}".encode()}
    assert signer.signed == 3


def test_payload06_tokens_are_forgotten_with_the_volume_and_not_before(world, signer):
    volume = projected(TOKEN)
    path = world.mount(volume)
    mounter = world.host.get_mounter()
    os.makedirs(f"{path}/busy")
    mounter.mount("tmpfs", f"{path}/busy", "tmpfs", [])
    with pytest.raises(Exception, match="busy"):
        world.unmount(path)
    world.mount(volume)
    assert signer.signed == 1
    mounter.unmount(f"{path}/busy")
    world.unmount(path)
    assert world.left() == []
    world.mount(volume)
    assert signer.signed == 2


def bundle(world, name, certificate, signer=""):
    spec = ClusterTrustBundleSpec(signer_name=signer, trust_bundle=CERTIFICATE.format(certificate))
    metadata = ObjectMeta(name=name, labels={"use": world.namespace})
    world.store.create(ClusterTrustBundle(metadata=metadata, spec=spec))


def test_payload44_trust_anchors_by_name_and_by_signer(world):
    mine, signer = world.namespace, "example.com/ca"
    bundle(world, f"{mine}-plain", "AAAA")
    bundle(world, f"example.com:ca:{mine}-signed", "BBBB", signer)
    selector = {"matchLabels": {"use": mine}}
    sources = [
        {"clusterTrustBundle": {"name": f"{mine}-plain", "path": "by-name"}},
        {"clusterTrustBundle": {"signerName": signer, "labelSelector": selector, "path": "by-signer"}},
        {"clusterTrustBundle": {"name": "nope", "optional": True, "path": "missing"}},
        {"clusterTrustBundle": {"signerName": "example.com/none", "optional": True, "path": "none"}},
    ]
    path = world.mount(projected(*sources), args=MounterArgs(fs_user=1000))
    assert world.files(path) == {
        "by-name": CERTIFICATE.format("AAAA").encode(),
        "by-signer": CERTIFICATE.format("BBBB").encode(),
        "missing": b"",
        "none": b"",
    }
    assert (os.stat(f"{path}/by-name").st_uid, world.mode(f"{path}/by-name")) == (1000, 0o600)
    with pytest.raises(Exception, match="nope"):
        world.mount(projected({"clusterTrustBundle": {"name": "nope", "path": "x"}}))


def test_payload45_certificates_in_one_file_and_in_two(world):
    asked = []

    def certificate(*wanted):
        asked.append(wanted)
        return b"KEY\n", b"CHAIN\n"

    world.host.get_pod_certificate_credential_bundle = certificate
    source = {"signerName": "example.com/ca", "keyType": "ED25519"}
    sources = [
        NAMESPACE,
        {"podCertificate": {**source, "credentialBundlePath": "bundle.pem"}},
        {"podCertificate": {**source, "keyPath": "tls/key", "certificateChainPath": "tls/chain"}},
    ]
    path = world.mount(projected(*sources), args=MounterArgs(fs_group=5000))
    files = world.files(path)
    assert files["bundle.pem"] == b"KEY\nCHAIN\n"
    assert (files["tls/key"], files["tls/chain"]) == (b"KEY\n", b"CHAIN\n")
    assert world.mode(f"{path}/tls/key") == 0o640
    uid = path.split("/")[-4]
    assert asked == [(world.namespace, "web", uid, "identity", index) for index in (1, 2)]


def test_a_certificate_that_is_not_issued_yet_is_waited_for(world):
    """Nothing happened that must be undone (ERR-01)."""

    def pending(*_wanted):
        raise TransientOperationError("there is no certificate yet")

    world.host.get_pod_certificate_credential_bundle = pending
    source = {"podCertificate": {"signerName": "e.com/ca", "keyType": "ED25519", "credentialBundlePath": "x"}}
    with pytest.raises(TransientOperationError):
        world.mount(projected(source, source))
    with pytest.raises(SpecError, match="there is no certificate yet"):
        world.mount(projected(source, {"secret": {"name": "nope"}}))
    assert world.left() == []


def test_khost04_what_only_a_node_has_is_refused_elsewhere(world):
    from volumehost.hosts.config import HostConfig
    from volumehost.hosts.controller_host import ControllerHost
    from volumehost_projected.credentials import FileMaker, trust_anchor_files

    host = ControllerHost(world.store, config=HostConfig({}))
    pod = world.pod(projected({"clusterTrustBundle": {"name": "x", "path": "x"}}))
    source = pod.spec.volumes[0].projected.sources[0].cluster_trust_bundle
    with pytest.raises(NotAvailableOnHostError, match="this is not the host of a node"):
        trust_anchor_files(host, source, FileMaker(0o644, None))
