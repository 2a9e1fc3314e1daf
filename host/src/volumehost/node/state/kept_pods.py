"""Pods of which nothing is to be done are kept as their JSON text: an object of one takes eight times the memory.

The pods that were used last are there as objects too, so that a burst of work on one does not read it again and again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.node.state.desired import VolumeUse
    from volumehost.spec import Spec

#: How many pods are kept as objects.
OBJECTS = 64


class KeptPod:
    """One pod. ``uid`` is there without reading it."""

    __slots__ = ("_pods", "_text", "uid")

    def __init__(self, pods: KeptPods, uid: str, text: bytes | Pod) -> None:
        self._pods = pods
        self._text = text
        self.uid = uid

    @property
    def pod(self) -> Pod:
        """The pod, borrowed: nobody may change it."""
        return self._pods.unpacked(self).pod

    def unpack(self) -> Unpacked:
        """The pod, with the specs of its volumes that were made last."""
        return self._pods.unpacked(self)

    def read(self) -> Pod:
        """A new object of the pod."""
        if not isinstance(self._text, bytes):
            return self._text
        return _decoder().decode(self._text)


class Unpacked:
    """A pod as an object, with what was made of it: specs and uses of its volumes, by unique volume name."""

    __slots__ = ("kept", "pod", "specs", "uses")

    def __init__(self, kept: KeptPod, pod: Pod) -> None:
        self.kept = kept
        self.pod = pod
        self.specs: dict[str, Spec] = {}
        #: Each with the wish that it was made of.
        self.uses: dict[str, tuple[object, VolumeUse]] = {}


class KeptPods:
    """Keeps pods. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The last ones by UID, the one that was used last at the end.
        self._unpacked: dict[str, Unpacked] = {}
        self._holding = 0

    @contextmanager
    def all_as_objects(self) -> Iterator[None]:
        """Meanwhile keep every pod that is used as an object too: many are entered, and worked with at once after."""
        with self._lock:
            self._holding += 1
        try:
            yield
        finally:
            with self._lock:
                self._holding -= 1
                self._drop()

    def keep(self, pod: Pod) -> KeptPod:
        """The pod from now on; the same again for the object that was given or handed out last."""
        return self.entered(pod).kept

    def entered(self, pod: Pod) -> Unpacked:
        """The same, with the object."""
        uid = pod.metadata.uid
        known = self._unpacked.get(uid)
        if known is not None and known.pod is pod:
            return known
        known = Unpacked(KeptPod(self, uid, _encoded(pod)), pod)
        self._remember(known)
        return known

    def unpacked(self, kept: KeptPod) -> Unpacked:
        """The pod as an object."""
        with self._lock:
            known = self._unpacked.pop(kept.uid, None)
            if known is not None and known.kept is kept:
                self._unpacked[kept.uid] = known
                return known
        known = Unpacked(kept, kept.read())
        self._remember(known)
        return known

    def _remember(self, unpacked: Unpacked) -> None:
        with self._lock:
            self._unpacked.pop(unpacked.kept.uid, None)
            self._unpacked[unpacked.kept.uid] = unpacked
            self._drop()

    def _drop(self) -> None:
        """The first ones, under the lock."""
        while not self._holding and len(self._unpacked) > OBJECTS:
            del self._unpacked[next(iter(self._unpacked))]


def _encoded(pod: Pod) -> bytes | Pod:
    """The text; the pod itself where a name in it is no text."""
    try:
        return bytes(memoryview(msgspec.json.encode(pod)))  # a copy, since the encoder leaves room at the end
    except (UnicodeEncodeError, TypeError, ValueError):
        return pod


@functools.cache
def _decoder() -> msgspec.json.Decoder[Pod]:
    from volumehost.api.objects import Pod

    return msgspec.json.Decoder(Pod)
