"""Secrets, tokens and pod info: what is sent, and that it is shown nowhere (CSI-TOK, CSI-PLUG-29, -32, BR-74)."""

from __future__ import annotations

import json
import logging
import os

import pytest

from volumehost import MounterArgs
from volumehost.api.objects import (
    CSIDriver,
    CSITokenRequest,
    LocalObjectReference,
    SecretReference,
    TokenRequest,
    TokenRequestStatus,
)
from volumehost.errors import NotAvailableOnHostError, SpecError, StorageDriverError, TransientOperationError

pytestmark = pytest.mark.root

UID = "11111111-2222-3333-4444-555555555555"
KEY = "csi.storage.k8s.io/serviceAccount.tokens"


class Tokens:
    """Stands for the API server, which alone can sign tokens."""

    def __init__(self):
        self.requests = []

    def get(self, namespace, name, request: TokenRequest):
        self.requests.append((namespace, name, request.spec))
        audience = request.spec.audiences[0] if request.spec.audiences else "default"
        status = TokenRequestStatus(token=f"token-for-{audience}", expiration_timestamp="2031-05-06T07:08:09Z")
        return TokenRequest(spec=request.spec, status=status)


@pytest.fixture
def signer(host, monkeypatch):
    tokens = Tokens()
    monkeypatch.setattr(host, "get_service_account_token_func", lambda: tokens.get)
    return tokens


@pytest.fixture
def publish(plugin, make_inline, pod, node):
    def run(**source):
        plugin.new_mounter(make_inline(**source), pod).set_up(MounterArgs())
        return node.last("NodePublishVolume")

    return run


def test_csi_tok_05_09_tokens_in_the_volume_context(publish, csi_driver, signer):
    requests = [CSITokenRequest(audience="vault", expiration_seconds=900), CSITokenRequest(audience="")]
    csi_driver(token_requests=requests)
    request = publish(volume_attributes={"a": "b"})
    assert request.volume_context == {
        "a": "b",
        KEY: '{"":{"token":"token-for-default","expirationTimestamp":"2031-05-06T07:08:09Z"},'
        '"vault":{"token":"token-for-vault","expirationTimestamp":"2031-05-06T07:08:09Z"}}',
    }
    assert request.secrets == {}
    namespace, account, spec = signer.requests[0]
    assert (namespace, account, spec.audiences, spec.expiration_seconds) == ("default", "robot", ["vault"], 900)
    bound = spec.bound_object_ref
    assert (bound.kind, bound.api_version, bound.name, bound.uid) == ("Pod", "v1", "web", UID)
    assert signer.requests[1][2].audiences == []


def test_csi_tok_06_tokens_in_the_secrets_alone(publish, csi_driver, signer, secret):
    csi_driver(token_requests=[CSITokenRequest(audience="v")], service_account_token_in_secrets=True)
    secret("s", other="1")
    request = publish(node_publish_secret_ref=LocalObjectReference(name="s"))
    assert dict(request.volume_context) == {}
    assert set(request.secrets) == {"other", KEY}
    assert json.loads(request.secrets[KEY])["v"]["token"] == "token-for-v"


def test_csi_tok_01_improved_a_driver_without_tokens_needs_no_one_to_sign_them(publish, csi_driver):
    csi_driver()
    publish()


def test_csi_tok_04_no_token_no_mount(publish, csi_driver, node):
    csi_driver(token_requests=[CSITokenRequest(audience="v")])
    with pytest.raises(TransientOperationError, match="token"):
        publish()
    assert "NodePublishVolume" not in node.names()


def test_csi_tok_07_tokens_are_not_staged_and_not_on_disk(host, staged, mounted, csi_driver, signer, node):
    csi_driver(token_requests=[CSITokenRequest(audience="v")])
    mounted()
    assert KEY not in node.last("NodeStageVolume").volume_context
    assert KEY in node.last("NodePublishVolume").volume_context
    for directory, _, names in os.walk(host.root_dir):
        for name in names:
            with open(os.path.join(directory, name), "rb") as file:
                assert b"token-for" not in file.read()


def test_csi_mnt_30_a_refresh_brings_fresh_tokens(mounted, csi_driver, signer):
    csi_driver(token_requests=[CSITokenRequest(audience="v")], requires_republish=True)
    volume = mounted()
    volume.mounter.set_up(MounterArgs(is_remount=True))
    assert len(signer.requests) == 2


def test_csi_edge_13_pod_info_only_where_it_is_wanted(publish, csi_driver, api):
    csi_driver()
    assert publish(volume_attributes={"a": "b"}).volume_context == {"a": "b"}
    api.patch(CSIDriver, "fake.csi.example.com", {"spec": {"podInfoOnMount": True}})  # CSI-DRV-06: the next one sees it
    assert publish(volume_attributes={"a": "b"}).volume_context["csi.storage.k8s.io/pod.name"] == "web"


def test_csi_plug_29_the_service_account_is_named_even_if_it_is_empty(publish, csi_driver, pod):
    csi_driver(pod_info_on_mount=True)
    pod.spec.service_account_name = ""
    context = publish(volume_attributes={"csi.storage.k8s.io/pod.name": "forged"}).volume_context
    assert context["csi.storage.k8s.io/serviceAccount.name"] == ""
    assert context["csi.storage.k8s.io/pod.name"] == "web"  # CSI-MNT-11: later parts win


def test_csi_plug_32_improved_a_secret_that_is_not_text_is_refused_with_its_key(publish, csi_driver, secret, node):
    csi_driver()
    secret("binary", fine="text", blob=b"\xff\xfeprivate")
    with pytest.raises(TransientOperationError, match=r"key 'blob' is not UTF-8") as caught:
        publish(node_publish_secret_ref=LocalObjectReference(name="binary"))
    assert "private" not in repr(caught.value) + str(caught.value)
    assert caught.value.__cause__ is None
    assert "NodePublishVolume" not in node.names()


def test_csi_edge_10_a_missing_secret_is_transient_and_leaves_nothing(publish, staged, csi_driver, make_pv, tree):
    csi_driver()
    before = tree()
    with pytest.raises(TransientOperationError, match="default/none"):
        publish(node_publish_secret_ref=LocalObjectReference(name="none"))
    with pytest.raises(TransientOperationError, match="elsewhere/none"):
        staged(make_pv(node_stage_secret_ref=SecretReference(name="none", namespace="elsewhere")))
    assert tree() == before


def test_csi_dev_02_stage_secrets_are_not_asked_for_where_nothing_is_staged(staged, node, csi_driver, make_pv):
    node.capabilities = []
    csi_driver()
    staged(make_pv(node_stage_secret_ref=SecretReference(name="none", namespace="elsewhere")))


def test_csi_eph_09_attributes_that_csi_cannot_carry_are_refused(publish, csi_driver, node):
    csi_driver()
    publish(volume_attributes={"a": "x" * 4000})
    with pytest.raises(TransientOperationError, match="5002 bytes") as caught:
        publish(volume_attributes={"a": "x" * 5000, "b": ""})
    assert isinstance(caught.value.__cause__, SpecError)
    assert node.names().count("NodePublishVolume") == 1


MARKERS = ["hunter2-secret", "token-for-v", "hunter3-option"]


@pytest.mark.parametrize("in_secrets", [False, True])
def test_br_74_no_secret_in_errors_logs_or_records(
    plugin, host, node, csi_driver, signer, secret, make_pv, pod, caplog, in_secrets
):
    caplog.set_level(logging.DEBUG)
    csi_driver(token_requests=[CSITokenRequest(audience="v")], service_account_token_in_secrets=in_secrets)
    secret("s", password="hunter2-secret")
    spec = make_pv(
        node_stage_secret_ref=SecretReference(name="s", namespace="default"),
        node_publish_secret_ref=SecretReference(name="s", namespace="default"),
        spec={"mount_options": ["password=hunter3-option"]},
    )

    def repeat(request, context):
        import grpc

        context.abort(grpc.StatusCode.INTERNAL, f"refused {request}")

    node.script("NodeStageVolume", repeat)
    node.script("NodePublishVolume", repeat)
    texts = []
    from volumehost import DeviceMounterArgs

    mounter = plugin.new_device_mounter()
    for step in (
        lambda: mounter.mount_device(spec, "", mounter.get_device_mount_path(spec), DeviceMounterArgs()),
        lambda: plugin.new_mounter(spec, pod).set_up(MounterArgs()),
    ):
        with pytest.raises(StorageDriverError) as caught:
            step()
        error = caught.value
        import traceback

        texts += [str(error), repr(error), repr(error.__dict__), "".join(traceback.format_exception(error))]
        logging.getLogger("test").error("it failed", exc_info=error)
    for directory, _, names in os.walk(host.root_dir):
        for name in names:
            with open(os.path.join(directory, name), errors="replace") as file:
                texts.append(file.read())
    texts.append(caplog.text)
    for marker in MARKERS:
        assert not [text for text in texts if marker in text], marker
    assert "refused" in texts[0]


def test_tokens_of_a_host_that_cannot_sign_say_what_to_do(publish, csi_driver):
    csi_driver(token_requests=[CSITokenRequest(audience="v")])
    with pytest.raises(TransientOperationError, match="signs service account tokens") as caught:
        publish()
    assert isinstance(caught.value.__cause__, NotAvailableOnHostError)
