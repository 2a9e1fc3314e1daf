"""Helpers for calls that come twice, and for sizes (CSI-WIRE-09, CSI-WIRE-13, CSI-WIRE-17)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_csi_kit import csi
from volumehost_csi_kit.redaction import TOKEN_KEY
from volumehost_csi_kit.server import OutOfRangeError, chosen_size, fingerprint, fits

SIZES = st.integers(0, 1 << 50)


def request(**changes):
    return csi.NodePublishVolumeRequest(
        **{"volume_id": "v", "target_path": "/t", "volume_context": {"a": "1", "b": "2"}, **changes}
    )


def test_the_same_request_has_the_same_fingerprint():
    assert fingerprint(request()) == fingerprint(request(volume_context={"b": "2", "a": "1"}))


@pytest.mark.parametrize(
    "changes", [{"volume_id": "w"}, {"readonly": True}, {"target_path": "/u"}, {"volume_context": {"a": "1"}}]
)
def test_another_request_has_another(changes):
    assert fingerprint(request()) != fingerprint(request(**changes))


def test_secrets_and_tokens_may_have_been_renewed():
    renewed = request(secrets={"key": "new"}, volume_context={"a": "1", "b": "2", TOKEN_KEY: "new"})
    assert fingerprint(renewed) == fingerprint(request())
    assert renewed.secrets["key"] == "new"
    assert TOKEN_KEY in renewed.volume_context


def test_fields_that_do_not_count():
    assert fingerprint(request(readonly=True), without={"readonly"}) == fingerprint(request())


def test_requests_without_a_context():
    assert fingerprint(csi.DeleteVolumeRequest(volume_id="v", secrets={"a": "b"})) == fingerprint(
        csi.DeleteVolumeRequest(volume_id="v")
    )


@pytest.mark.parametrize(
    ("size", "low", "high", "expected"),
    [(5, 0, 0, True), (5, 5, 5, True), (5, 6, 0, False), (5, 0, 4, False), (5, 4, 6, True)],
)
def test_fits(size, low, high, expected):
    assert fits(size, csi.CapacityRange(required_bytes=low, limit_bytes=high)) is expected


@pytest.mark.parametrize(
    ("low", "high", "multiple", "expected"),
    [
        (0, 0, 1, 1000),  # nothing asked for
        (10, 0, 1, 10),
        (10, 0, 4, 12),
        (0, 10, 4, 8),  # the default is too much
        (0, 1024, 1024, 1024),  # the default is less than can be made
        (0, 1023 * 2, 1024, 1024),
        (0, 5000, 1, 1000),
        (8, 8, 4, 8),
    ],
)
def test_chosen_size(low, high, multiple, expected):
    capacity = csi.CapacityRange(required_bytes=low, limit_bytes=high)
    assert chosen_size(capacity, default=1000, multiple_of=multiple) == expected


@pytest.mark.parametrize(("low", "high", "multiple"), [(9, 11, 4), (0, 3, 4), (5, 4, 1)])
def test_a_range_that_holds_no_size(low, high, multiple):
    capacity = csi.CapacityRange(required_bytes=low, limit_bytes=high)
    with pytest.raises(OutOfRangeError, match=f"between {low} and {high} bytes is a multiple of {multiple}"):
        chosen_size(capacity, default=1000, multiple_of=multiple)


@given(low=SIZES, high=SIZES, default=st.integers(1, 1 << 50), multiple=st.sampled_from([1, 512, 4096, 1 << 20]))
def test_what_is_chosen_fits(low, high, default, multiple):
    capacity = csi.CapacityRange(required_bytes=low, limit_bytes=high)
    try:
        size = chosen_size(capacity, default=default, multiple_of=multiple)
    except OutOfRangeError:
        assert high, "without a limit there is always one"
        first = max(1, -(-low // multiple)) * multiple
        assert first > high
        return
    assert fits(size, capacity)
    assert size % multiple == 0
    assert size > 0
