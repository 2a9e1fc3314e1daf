"""Makes mounts answer, each within a deadline and many at a time: which of them serve, which are dead, which hang."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from volumehost.mount.corrupted import CORRUPTED_ERRNOS, DEAD_ERRNOS
from volumehost.mount.deadline import DeadlineExceededError, TooManyStuckCallsError
from volumehost.mount.places import Places

#: How long one mount may take to answer, in seconds.
ANSWER_SECONDS: Final = 2.0
_AT_A_TIME: Final = 16


@dataclass(frozen=True, slots=True)
class Answer:
    """How a mount answered. ``dead``: its server or daemon is certainly gone. ``hung``: no answer in time.

    ``problem`` is "" for one that serves; a refusal (``EACCES``) alone proves nothing, and leaves it at that.
    """

    problem: str = ""
    dead: bool = False
    hung: bool = False


_SERVES: Final = Answer()


def probe(paths: Iterable[str], *, seconds: float = ANSWER_SECONDS) -> dict[str, Answer]:
    """The answer of what is mounted at each path. Filesystems of the kernel and of local disks need not be asked.

    :param seconds: how long each may take. One that hangs leaves a thread behind until the kernel lets it go.
    """
    places = Places(answer_seconds=seconds)
    wanted = list(paths)
    if not wanted:
        return {}
    # The pool's threads come back in any case: what hangs is in a thread of its own.
    with ThreadPoolExecutor(min(_AT_A_TIME, len(wanted)), thread_name_prefix="volumehost-probe") as pool:
        return dict(zip(wanted, pool.map(lambda path: _ask(places, path), wanted), strict=True))


def _ask(places: Places, path: str) -> Answer:
    try:
        places.check(path)
    except TooManyStuckCallsError as error:
        return Answer(f"it was not asked: {error}", hung=True)
    except DeadlineExceededError as error:
        return Answer(str(error), hung=True)
    except FileNotFoundError:
        return _SERVES  # unmounted meanwhile
    except OSError as error:
        number = error.errno or 0
        if number in CORRUPTED_ERRNOS:
            return Answer(os.strerror(number), dead=number in DEAD_ERRNOS)
        return _SERVES
    return _SERVES
