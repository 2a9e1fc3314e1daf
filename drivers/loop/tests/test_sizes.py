"""Sizes between what is required and the limit, and what may still be promised (CSI-WIRE-09)."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_loop_driver.errors import OutOfRangeError, ResourceExhaustedError
from volumehost_loop_driver.sizes import DEFAULT_SIZE, GRANULARITY, MAXIMUM_SIZE, Capacity, choose_size

MiB = 1 << 20


@pytest.mark.parametrize(
    ("required", "limit", "minimum", "expected"),
    [
        (0, 0, 1, DEFAULT_SIZE),
        (10**6, 0, 1, 1003520),
        (64 * MiB, 64 * MiB, 1, 64 * MiB),
        (0, 5 * MiB + 5, 1, 5 * MiB),
        (1, 0, MiB, MiB),
        (0, 2 * DEFAULT_SIZE, 1, DEFAULT_SIZE),
        (MiB, 0, 3 * MiB, 3 * MiB),
    ],
)
def test_chosen(required, limit, minimum, expected) -> None:
    assert choose_size(required, limit, minimum=minimum) == expected


@pytest.mark.parametrize(
    ("required", "limit", "minimum"),
    [(2, 1, 1), (-1, 0, 1), (0, -1, 1), (0, MiB, 2 * MiB), (5, 6, 1), (1 << 63, 0, 1), (MAXIMUM_SIZE + 1, 0, 1)],
)
def test_refused(required, limit, minimum) -> None:
    with pytest.raises(OutOfRangeError):
        choose_size(required, limit, minimum=minimum)


@given(st.integers(0, 1 << 63), st.integers(0, 1 << 63), st.integers(1, 1 << 40))
def test_whatever_is_chosen_fits(required, limit, minimum) -> None:
    try:
        size = choose_size(required, limit, minimum=minimum)
    except OutOfRangeError:
        return
    assert size >= max(required, minimum)
    assert not limit or size <= limit
    assert size % GRANULARITY == 0


class Promised:
    total_size = 0


def test_without_a_limit_the_disk_decides(tmp_path) -> None:
    found = os.statvfs(tmp_path)
    assert Capacity(str(tmp_path), None).available() == pytest.approx(found.f_bavail * found.f_frsize, rel=0.05)


def test_a_limit_counts_what_is_promised_and_what_is_being_made(tmp_path) -> None:
    promised = Promised()
    capacity = Capacity(str(tmp_path), 10 * MiB, promised)
    assert capacity.available() == 10 * MiB
    with capacity.reserve(6 * MiB, "create"):
        assert capacity.available() == 4 * MiB
        with pytest.raises(ResourceExhaustedError, match=r"5Mi .* 4Mi .* 10Mi"), capacity.reserve(5 * MiB, "create"):
            pass
        promised.total_size = 6 * MiB
    assert capacity.available() == 4 * MiB
    promised.total_size = 20 * MiB
    assert capacity.available() == 0


def test_more_than_the_disk_has_free_is_refused(tmp_path) -> None:
    capacity = Capacity(str(tmp_path), None)
    with pytest.raises(ResourceExhaustedError, match="free on the disk"), capacity.reserve(1 << 60, "create"):
        pass
    with capacity.reserve(1 << 60, "take a snapshot", on_disk=False):
        pass


def test_two_at_once_do_not_promise_the_same_space(tmp_path) -> None:
    capacity = Capacity(str(tmp_path), 10 * MiB)
    results: list[bool] = []
    inside, go = threading.Barrier(2), threading.Event()

    def one() -> None:
        inside.wait(30)
        try:
            with capacity.reserve(6 * MiB, "create"):
                results.append(True)
                go.wait(30)
        except ResourceExhaustedError:
            results.append(False)
            go.set()

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == [False, True]
