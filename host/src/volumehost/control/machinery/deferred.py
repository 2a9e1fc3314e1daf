"""Controllers that are not loaded before there is something for them to do: most hosts have no snapshots, say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject
    from volumehost.control.machinery.controller import Affects, ControlContext, Controller, Key


class DeferredController:
    """A controller that is made when the first object is seen that it may have work with.

    :param name: its name, as it has it itself.
    :param home: module of this package and class, ``attach_controller:AttachController``.
    :param begins_with: the kinds of these objects; the first is the kind of its keys.
    :param also: what else it watches; as long as there are none of the others, that affects none of its keys.
    """

    def __init__(
        self,
        context: ControlContext,
        name: str,
        home: str,
        begins_with: Sequence[type[KubeObject]],
        also: Sequence[type[KubeObject]] = (),
    ) -> None:
        self.name = name
        self.kind = begins_with[0]
        self._context = context
        self._home = home
        self._begins_with = frozenset(begins_with)
        self._kinds = (*begins_with, *also)
        self._lock = threading.Lock()
        self._made: Controller | None = None
        self._affects: Mapping[type[KubeObject], Affects] = {}

    def not_watching(self, kind: type[KubeObject]) -> DeferredController:
        """This one, which hears nothing of that kind."""
        self._kinds = tuple(each for each in self._kinds if each is not kind)
        return self

    @property
    def controller(self) -> Controller:
        """The controller, made now if it was not."""
        with self._lock:
            if self._made is None:
                module, _, name = self._home.partition(":")
                make: Callable[[ControlContext], Controller]
                make = getattr(import_module(f"volumehost.control.{module}"), name)
                made = make(self._context)
                self._affects = made.watches()
                self._made = made
            return self._made

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """What the controller watches."""
        return {kind: partial(self._affected, kind) for kind in self._kinds}

    def _affected(self, kind: type[KubeObject], obj: Any) -> Iterable[Key]:
        if self._made is None:
            if kind not in self._begins_with:
                return ()
            _ = self.controller
        return self._affects[kind](obj)

    def reconcile(self, key: Key) -> float | None:
        """Have the controller do it."""
        return self.controller.reconcile(key)
