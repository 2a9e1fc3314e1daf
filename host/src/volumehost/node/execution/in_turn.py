"""Calls plugins about many volumes on one thread, with a deadline for each call; reconstruction uses it.

Handing every call to a thread of its own costs ten times what the call itself does. So one thread makes them all, and
is left behind with the call that hangs; the rest go on on another.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from volumehost.mount.deadline import DeadlineExceededError

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: After so many calls that did not end the others are not begun: each would hold a thread, and the start up.
MOST_HANGING = 3


def in_turn(
    function: Callable[[Item], Answer], items: Sequence[Item], *, seconds: float, what: str
) -> list[Answer | BaseException]:
    """``function(item)`` for each item, or what it raised; ``DeadlineExceededError`` for what did not end in time.

    :param seconds: for each call.
    :param what: names the calls to people: "rebuilding volumes of example.com/nfs".
    """
    answers: list[Answer | BaseException] = []
    hanging = 0
    while len(answers) < len(items):
        if hanging == MOST_HANGING:
            left = len(items) - len(answers)
            logger.warning("%s: %d calls hang, %d others are not begun", what, hanging, left)
            answers += [DeadlineExceededError(f"not asked: {hanging} calls before this one hang") for _ in range(left)]
            break
        run = _Run(function, items[len(answers) :], what)
        answers += run.answers_within(seconds)
        if len(answers) < len(items):
            answers.append(DeadlineExceededError(f"no answer within {seconds:g} s"))
            hanging += 1
    return answers


class _Run(Generic[Item, Answer]):
    """One thread that makes the calls, until it is done or one hangs."""

    def __init__(self, function: Callable[[Item], Answer], items: Sequence[Item], what: str) -> None:
        self._function = function
        self._items = items
        self._answers: list[Answer | BaseException] = []
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._left_behind = False
        self._done = threading.Event()
        threading.Thread(target=self._work, name=f"volumehost: {what}", daemon=True).start()

    def answers_within(self, seconds: float) -> list[Answer | BaseException]:
        """What was answered before one call took longer than that, or all."""
        while not self._done.wait(max(0.0, self._began + seconds - time.monotonic())):
            with self._lock:
                if time.monotonic() - self._began >= seconds:
                    self._left_behind = True
                    break
        return self._answers

    def _work(self) -> None:
        for item in self._items:
            try:
                answer: Answer | BaseException = self._function(item)
            except BaseException as error:  # noqa: BLE001 - on a thread of its own every one is a plugin's
                answer = error
            with self._lock:
                if self._left_behind:
                    return  # whoever waited has gone on without this answer
                self._answers.append(answer)
                self._began = time.monotonic()
        self._done.set()
