"""What the error of an operation says of its cause (EXEC-03)."""

from __future__ import annotations

import pytest

from volumehost.errors import OperationError
from volumehost.node.operations.common import OperationFailedError, event_message


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (OSError(2, "No such file or directory"), "[Errno 2] No such file or directory"),
        (ValueError("wrong"), "wrong"),
        (OperationError("x" * 2000), "x" * 2000),
        (StopIteration(), "StopIteration"),
        (SystemExit(3), "it tried to end the process (SystemExit: 3)"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (UnspeakableError(), "<UnspeakableError that cannot be shown>"),
    ],
)
def test_exec_03_the_cause_is_always_told(cause: BaseException, words: str) -> None:
    error = OperationFailedError("MountVolume.SetUp failed", "data", "(details)", cause)
    assert str(error).startswith(f'MountVolume.SetUp failed for volume "data" (details): {words}')
    assert event_message(error) == f'MountVolume.SetUp failed for volume "data" : {words}'
