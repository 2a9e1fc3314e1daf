"""Certificates of pods: requested, kept, renewed; a signer that refuses or does not answer (KHOST-01)."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from volumehost.api.convert import to_object
from volumehost.api.kubernetes import connect
from volumehost.api.objects import Node, Pod, PodCertificateRequest, ServiceAccount
from volumehost.errors import OperationError, SpecError, TransientOperationError
from volumehost.hosts.cluster_host import ClusterHost
from volumehost.hosts.pod_certificate_keys import chain_of, new_key
from volumehost.hosts.pod_certificates import REFUSAL_SECONDS, PodCertificates
from volumehost.testing.api_server import ApiServer

x509 = pytest.importorskip("cryptography.x509")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")

SOURCE = {"signerName": "example.com/signer", "keyType": "ED25519", "credentialBundlePath": "bundle.pem"}


class Signer:
    """Answers every request, as ``answer`` says."""

    def __init__(self, api):
        self.api, self.answer, self.seen, self.done = api, None, [], threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        for event in self.api.watch(PodCertificateRequest, stop=self.done.is_set):
            if event.type == "ADDED" and self.answer is not None:
                self.seen.append(event.object)
                event.object.status = to_object(PodCertificateRequest, {"status": self.answer(event.object)}).status
                self.api.replace_status(event.object)

    def stop(self):
        self.done.set()
        self.thread.join(30)


def certificate(request):
    """A certificate of the key that the request shows, signed by another."""
    from cryptography.hazmat.primitives.asymmetric import ed25519

    stub, now = x509.load_der_x509_csr(request.spec.stub_pkcs10_request), datetime.now(UTC).replace(microsecond=0)
    assert stub.is_signature_valid
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "signer")])
    builder = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(name).public_key(stub.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(hours=1))
    made = builder.sign(ed25519.Ed25519PrivateKey.generate(), None)
    return made.public_bytes(serialization.Encoding.PEM).decode(), now


def issued(request):
    chain, now = certificate(request)
    text = lambda seconds: (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: E731
    condition = {"type": "Issued", "status": "True", "reason": "Issued", "message": "m", "lastTransitionTime": text(0)}
    times = {"notBefore": text(0), "beginRefreshAt": text(2400), "notAfter": text(3600)}
    return {"conditions": [condition], "certificateChain": chain, **times}


def denied(_request):
    condition = {
        "type": "Denied", "status": "True", "reason": "UnsupportedKeyType", "message": "use RSA3072",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return {"conditions": [condition]}


def until(condition):
    deadline, pause = time.monotonic() + 30, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        pause.wait(0.01)


@pytest.fixture
def api(tmp_path):
    with ApiServer() as server:
        client = connect(server.kubeconfig(tmp_path / "kubeconfig"))
        client.create(to_object(Node, {"metadata": {"name": "n1"}}))
        client.create(to_object(ServiceAccount, {"metadata": {"name": "app", "namespace": "default"}}))
        yield client
        client.close()


@pytest.fixture
def signer(api):
    made = Signer(api)
    yield made
    made.stop()


@pytest.fixture
def pod(api):
    volumes = [{"name": "v", "projected": {"sources": [{"podCertificate": SOURCE}]}}]
    spec = {"nodeName": "n1", "serviceAccountName": "app", "containers": [{"name": "c", "image": "i"}],
            "volumes": volumes}  # fmt: skip
    return api.create(to_object(Pod, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}))


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def bundle(api, pod, clock):
    made = PodCertificates(lambda: api, "n1", wait=5, clock=lambda: clock[0])
    return lambda index=0, uid=None: made.get("default", "web", uid or pod.metadata.uid, "v", index)


def test_key_and_chain_fit_and_are_kept_until_they_are_to_be_renewed(bundle, signer, clock, pod):
    signer.answer = issued
    key, chain = bundle()
    private = serialization.load_pem_private_key(key, None)
    assert x509.load_pem_x509_certificate(chain).public_key() == private.public_key()
    spec = signer.seen[0].spec
    assert (spec.pod_uid, spec.node_name, spec.service_account_name) == (pod.metadata.uid, "n1", "app")
    assert spec.service_account_uid
    assert spec.node_uid
    clock[0] += 2300
    assert bundle() == (key, chain)
    clock[0] += 200
    until(lambda: bundle()[0] != key)
    assert len(signer.seen) == 2


def test_one_that_lives_is_handed_out_while_no_other_can_be_had(bundle, signer, clock):
    signer.answer = issued
    first = bundle()
    signer.answer = denied
    clock[0] += 3000
    assert bundle() == first
    clock[0] += 700
    with pytest.raises(OperationError, match="UnsupportedKeyType: use RSA3072"):
        bundle()


def test_nobody_waits_for_a_signer_while_there_is_one_that_lives(api, bundle, signer, clock):
    """It would hold up the mounts of every pod with such a volume."""
    signer.answer = issued
    first = bundle()
    signer.answer, asked = None, api.get
    clock[0] += 3000
    looks = []

    def get(kind, *args, **options):
        looks.append(kind)
        clock[0] += kind is PodCertificateRequest  # each look at the request takes a second
        return asked(kind, *args, **options)

    api.get = get
    assert bundle() == first
    assert looks.count(PodCertificateRequest) == 1


def test_a_refusal_stands_for_a_while_and_is_not_asked_for_again(bundle, signer, clock):
    signer.answer = denied
    for _ in range(3):
        with pytest.raises(OperationError, match=r"example.com/signer says Denied"):
            bundle()
    assert len(signer.seen) == 1
    clock[0] += REFUSAL_SECONDS
    signer.answer = issued
    assert bundle()


def test_a_signer_that_is_not_there_is_named_and_the_same_request_waits_for_it(api, pod, signer):
    waiting = PodCertificates(lambda: api, "n1", wait=0)
    for _ in range(2):
        with pytest.raises(TransientOperationError, match=r"signer example\.com/signer has not answered"):
            waiting.get("default", "web", pod.metadata.uid, "v", 0)
    found = api.list(PodCertificateRequest).items
    assert len(found) == 1
    found[0].status = to_object(PodCertificateRequest, {"status": issued(found[0])}).status
    api.replace_status(found[0])
    assert waiting.get("default", "web", pod.metadata.uid, "v", 0)
    waiting.forget(pod.metadata.uid)
    assert waiting._kept == {}


@pytest.mark.parametrize(("index", "uid", "words"), [(1, None, "no podCertificate"), (0, "other", "another pod")])
def test_what_the_pod_does_not_ask_for_is_refused(bundle, index, uid, words):
    with pytest.raises(OperationError, match=words):
        bundle(index, uid)


def test_a_clusters_host_hands_them_out_and_drops_them_with_the_pods_tokens(api, pod, signer, tmp_path):
    signer.answer = issued
    host = ClusterHost(str(tmp_path), node_name="n1", api=api)
    args = ("default", "web", pod.metadata.uid, "v", 0)
    key, _ = host.get_pod_certificate_credential_bundle(*args)
    host.delete_service_account_token_func()(pod.metadata.uid)
    assert host.get_pod_certificate_credential_bundle(*args)[0] != key


@pytest.mark.parametrize("key_type", ["ECDSAP256", "ECDSAP384", "ECDSAP521", "RSA3072"])
def test_every_type_of_key_shows_itself(key_type):
    made = new_key(key_type)
    request = x509.load_der_x509_csr(made.request)
    assert request.is_signature_valid
    assert not list(request.subject)
    assert "PRIVATE" not in repr(made)
    with pytest.raises(SpecError, match="RSA3072, RSA4096"):
        new_key("DSA")


def test_a_chain_is_freed_of_what_is_between_its_certificates():
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    text = f"subject: a\r\n{begin}\r\nHeader: x\r\n\r\nAAAA\r\n{end}\r\nnoise\n{begin}\nBBBB\n{end}\n"
    assert chain_of(text).decode() == f"{begin}\nAAAA\n{end}\n{begin}\nBBBB\n{end}\n"
