"""Service account tokens that this host signs itself (HOST-04, CSI-TOK-03, CSI-TOK-08)."""

import base64
import hashlib
import hmac
import json
import os

import pytest
from msgspec.structs import replace

from volumehost import VolumeManager
from volumehost.api.objects import BoundObjectReference, TokenRequest, TokenRequestSpec, TokenRequestStatus
from volumehost.errors import InvalidObjectError, StoreError
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost.hosts.tokens import LocalSigner, TokenCache
from volumehost.loader.events import NoProber

POD = BoundObjectReference(kind="Pod", api_version="v1", name="web", uid="u-1")


def request(seconds=None, *, audiences=("vault",), bound=POD):
    return TokenRequest(
        spec=TokenRequestSpec(audiences=list(audiences), expiration_seconds=seconds, bound_object_ref=bound)
    )


def parts(token):
    head, body, signature = token.split(".")
    decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))  # noqa: E731
    return f"{head}.{body}".encode(), json.loads(decode(body)), decode(signature)


def test_a_token_says_for_whom_and_how_long_and_can_be_checked_with_the_key(tmp_path):
    answered = LocalSigner(str(tmp_path), lambda: 1_000_000.7)("prod", "default", request(600))
    signed, claims, signature = parts(answered.status.token)
    key = (tmp_path / "tokens.key").read_bytes()
    assert hmac.compare_digest(signature, hmac.new(key, signed, hashlib.sha256).digest())
    assert claims["aud"] == ["vault"]
    assert (claims["iat"], claims["exp"]) == (1_000_000, 1_000_600)
    assert claims["sub"] == "system:serviceaccount:prod:default"
    assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": "u-1"}
    assert answered.status.expiration_timestamp == "1970-01-12T13:56:40Z"
    assert os.stat(tmp_path / "tokens.key").st_mode & 0o777 == 0o600


def test_the_default_lifetime_is_an_hour_and_the_key_stays(tmp_path):
    first = LocalSigner(str(tmp_path), lambda: 0)("ns", "sa", request(None, audiences=()))
    key = (tmp_path / "tokens.key").read_bytes()
    LocalSigner(str(tmp_path), lambda: 0)("ns", "sa", request())
    assert parts(first.status.token)[1]["exp"] == 3600
    assert (tmp_path / "tokens.key").read_bytes() == key


@pytest.mark.parametrize("seconds", [0, 599, (1 << 32) + 1])
def test_a_lifetime_out_of_range_is_refused(tmp_path, seconds):
    with pytest.raises(InvalidObjectError, match="expirationSeconds"):
        LocalSigner(str(tmp_path))("ns", "sa", request(seconds))


def test_a_damaged_key_is_made_anew(tmp_path):
    (tmp_path / "tokens.key").write_bytes(b"half")
    LocalSigner(str(tmp_path))("ns", "sa", request())
    assert len((tmp_path / "tokens.key").read_bytes()) == 32


def test_a_token_is_kept_until_a_fifth_of_its_life_is_left_and_forgotten_with_its_pod(tmp_path):
    now = [0.0]
    cache = TokenCache(LocalSigner(str(tmp_path)), lambda: now[0], lambda: 0.0)
    token = lambda **kw: cache.get("ns", "sa", request(1000, **kw)).status.token  # noqa: E731
    first = token()
    now[0] = 799
    assert token() == first
    assert token(audiences=("other",)) != first
    assert token(bound=BoundObjectReference(kind="Pod", name="web", uid="u-2")) != first
    now[0] = 801
    second = token()
    assert second != first
    cache.forget("u-1")
    assert token() != second


class Issuer:
    """Issues tokens of its own idea of a lifetime, while it can be reached."""

    def __init__(self, seconds):
        self.seconds, self.issued, self.down = seconds, 0, False

    def __call__(self, namespace, name, wanted):
        if self.down:
            raise StoreError("the API server cannot be reached")
        self.issued += 1
        spec = replace(wanted.spec, expiration_seconds=self.seconds)
        status = TokenRequestStatus(token=f"t{self.issued}", expiration_timestamp="2001-01-01T00:00:00Z")
        return replace(wanted, spec=spec, status=status)


def test_what_the_issuer_grants_counts_and_not_its_clock():
    """Clocks that differ do not matter; an issuer that grants less than was asked for is asked again in time."""
    now, issuer = [0.0], Issuer(600)
    cache = TokenCache(issuer, lambda: now[0], lambda: 5.0)
    assert cache.get("ns", "sa", request(36000)).status.token == "t1"
    now[0] = 474
    assert cache.get("ns", "sa", request(36000)).status.token == "t1"
    now[0] = 476
    assert cache.get("ns", "sa", request(36000)).status.token == "t2"


def test_a_token_that_lives_is_used_while_no_other_can_be_had(caplog):
    now, issuer = [0.0], Issuer(600)
    cache = TokenCache(issuer, lambda: now[0], lambda: 0.0)
    cache.get("ns", "sa", request(600))
    issuer.down, now[0] = True, 500
    assert cache.get("ns", "sa", request(600)).status.token == "t1"
    assert "not renewed" in caplog.text
    assert "t1" not in caplog.text
    now[0] = 601
    with pytest.raises(StoreError):
        cache.get("ns", "sa", request(600))
    issuer.down = False
    assert cache.get("ns", "sa", request(600)).status.token == "t2"


def test_a_standalone_host_signs_and_no_token_is_in_a_repr(tmp_path):
    """BR-74."""
    host = StandaloneHost(str(tmp_path))
    answered = host.get_service_account_token_func()("ns", "sa", request())
    assert answered.status.token
    assert answered.status.token not in repr(answered)
    host.delete_service_account_token_func()("u-1")
    assert host.get_service_account_token_func()("ns", "sa", request()).status.token != answered.status.token


def test_a_signer_of_the_embedding_program_is_used(tmp_path):
    def sign(namespace, name, wanted):
        wanted.status.token = f"{namespace}/{name}"
        return wanted

    host = StandaloneHost(str(tmp_path), token_signer=sign)
    assert host.get_service_account_token_func()("ns", "sa", request()).status.token == "ns/sa"


@pytest.mark.parametrize("controllers", [True, False])
def test_the_volume_manager_hands_its_signer_to_the_host_of_either_kind(tmp_path, controllers):
    """HOST-04: also where a cluster would sign, an embedding program may do it itself."""

    def sign(namespace, name, wanted):
        wanted.status.token = f"{namespace}/{name}"
        return wanted

    with VolumeManager(tmp_path, prober=NoProber(), controllers=controllers, token_signer=sign) as manager:
        assert manager.host.get_service_account_token_func()("ns", "sa", request()).status.token == "ns/sa"
