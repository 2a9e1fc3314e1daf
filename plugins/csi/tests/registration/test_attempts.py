"""When a registration is tried again (CSI-PM-10 to -12, BR-24, BR-25)."""

from __future__ import annotations

import time

import pytest

from volumehost_csi.registration.attempts import ATTEMPTS_AT_OTHER_SOCKETS, Attempt, RegistrationState
from volumehost_csi.registration.caches import DesiredSocket
from volumehost_csi.registration.checks import DriverNameTakenError
from volumehost_csi.registration.protocol import NotARegistrationSocketError, RegistrationError
from volumehost_csi.registration.scan import Marks


@pytest.fixture
def attempt() -> Attempt:
    return Attempt(DesiredSocket("/r/a.sock", Marks(1, 2, 3), 1))


def test_pauses_double_up_to_two_minutes_and_two_seconds(attempt) -> None:
    """CSI-PM-10."""
    pauses = []
    for _ in range(11):
        attempt.failed(RegistrationError("no"), 100.0)
        pauses.append(attempt.retry_in(100.0))
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122, 122]
    assert attempt.retry_in(100.0 + 121) == 1
    assert attempt.retry_in(100.0 + 122) == 0
    attempt.succeeded()
    attempt.failed(RegistrationError("no"), 300.0)
    assert attempt.retry_in(300.0) == 0.5


def test_a_failure_is_shown_with_its_next_attempt(attempt) -> None:
    """BR-25."""
    error = RegistrationError("NodeGetInfo failed", subject="/r/a.sock")
    error.notification = "it had ended"
    attempt.failed(error, 100.0)
    before = time.time()
    status = attempt.status(registered=False, running=False, now=100.2)
    assert (status.state, status.error, status.notification, status.attempts) == (
        RegistrationState.FAILED, "NodeGetInfo failed", "it had ended", 1,
    )  # fmt: skip
    assert before + 0.3 == pytest.approx(status.retry_at, abs=5)
    assert attempt.status(registered=False, running=True, now=100.2).retry_at is None


def test_other_sockets_are_given_up(attempt) -> None:
    """BR-24."""
    for number in range(ATTEMPTS_AT_OTHER_SOCKETS):
        assert not attempt.given_up, number
        attempt.failed(NotARegistrationSocketError("not one"), 0.0)
    assert attempt.given_up
    assert attempt.status(registered=False, running=False, now=0.0).state is RegistrationState.IGNORED


def test_a_taken_name_is_tried_at_once_when_it_is_free(attempt) -> None:
    """CSI-REG-06, BR-21 (c)."""
    refusal = RegistrationError("taken")
    refusal.__cause__ = DriverNameTakenError("taken")
    attempt.failed(refusal, 100.0)
    assert attempt.name_taken
    attempt.retry_now()
    assert attempt.retry_in(100.0) == 0
    attempt.failed(RegistrationError("something else"), 100.0)
    assert not attempt.name_taken
