"""A loaded plugin: what the rest of the host sees of a volume plugin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from volumehost.errors import HookNotImplementedError, PluginNotFoundError
from volumehost.hookspecs import INTERFACES, required_hooks
from volumehost.loader.hook_methods import HookMethods

if TYPE_CHECKING:
    from volumehost.loader.contract import Contract
    from volumehost.loader.origin import Origin
    from volumehost.volumes import SpecTranslator


#: Packages of this project's own plugins.
OWN_PACKAGES = frozenset({"volumehost_csi", "volumehost_emptydir", "volumehost_hostpath", "volumehost_projected"})


class LoadedPlugin(HookMethods):
    """One volume plugin: its name, origin and interfaces, one typed method per hook, and who uses it.

    Hook methods are bound to the plugin's own functions. What a hook raises reaches the caller unchanged. Hooks of
    an interface that the plugin does not have raise HookNotImplementedError; optional hooks give their default.
    """

    def __init__(
        self, plugin: object, name: str, origin: Origin, contract: Contract, hooks: Mapping[str, Callable[..., Any]]
    ) -> None:
        #: The plugin's own name, ``example.com/nfs``.
        self.name = name
        #: Where it came from.
        self.origin = origin
        #: The object itself: an instance of the plugin's class, or a module.
        self.plugin = plugin
        self.contract = contract
        #: Called without a lock when the last user has let go; set by the manager.
        self.on_idle: Callable[[], None] | None = None
        #: Kinds of source for which to ask it, None for any; known once it is initialised.
        self.sources: frozenset[str] | None = None
        #: Kinds of source that it takes over, each with its translator; known once it is initialised.
        self.translators: Mapping[str, SpecTranslator] = {}
        #: Kinds of source for which ``can_support`` has answered as it should; kept by whoever asks.
        self.proven_sources: set[str] = set()
        #: Whether it is this project's own: its hooks that describe a volume ask nobody but the host's API.
        self.is_own = _package_of(plugin) in OWN_PACKAGES
        #: Whether new volumes may use it: False once its distribution was removed.
        self.offered = True
        self._lock = threading.Lock()
        self._users: set[Hashable] = set()
        self._prepare: Callable[[], None] | None = None
        self._retired = False
        self.bind_hooks(hooks)

    def bind_hooks(self, hooks: Mapping[str, Callable[..., Any]]) -> None:
        """Put callables in the place of the methods of the same name."""
        self.__dict__.update(hooks)

    @property
    def interfaces(self) -> frozenset[type]:
        """The interface classes of ``volumehost.hookspecs`` that this plugin implements in full."""
        return self.contract.interfaces

    def supports(self, interface: type) -> bool:
        """Whether the plugin implements this interface; the Go original's type assertion."""
        return interface in self.contract.interfaces

    # --- who uses it ---

    def hold(self, *users: Hashable) -> None:
        """Mark the plugin as in use, so that it is neither unloaded nor replaced under a volume.

        :param users: each names a volume and pod as text; holding twice for one user is holding once.
        :raises PluginNotFoundError: it has been unloaded since it was looked up; look it up again.
        """
        with self._lock:
            if self._retired:
                raise PluginNotFoundError(
                    "it was unloaded a moment ago",
                    action=f"using the volume plugin {self.name}",
                    subject=self.name,
                    hint="look it up again",
                )
            self._users.update(users)
            prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare()

    def when_held(self, prepare: Callable[[], None]) -> None:
        """Call the function when somebody next takes hold of the plugin; at once when somebody has already."""
        with self._lock:
            held = bool(self._users)
            self._prepare = None if held else prepare
        if held:
            prepare()

    def release(self, user: Hashable) -> None:
        """Take the mark away; the plugin may then be unloaded or replaced. Unknown users are ignored."""
        with self._lock:
            was_used = bool(self._users)
            self._users.discard(user)
            idle = was_used and not self._users
        if idle and self.on_idle is not None:
            self.on_idle()

    @property
    def in_use(self) -> bool:
        """Whether anybody holds it."""
        return bool(self._users)

    @property
    def users(self) -> frozenset[str]:
        """Who holds it."""
        with self._lock:
            return frozenset(map(str, self._users))

    def retire(self) -> bool:
        """Refuse any further user, unless somebody holds it now; whether it is retired."""
        with self._lock:
            if not self._users:
                self._retired = True
            return self._retired

    def unretire(self) -> None:
        """Take it back: what was to replace it cannot."""
        with self._lock:
            self._retired = False

    def __repr__(self) -> str:
        return f"<LoadedPlugin {self.name} from {self.origin}>"

    def _missing(self, hook: str) -> NoReturn:
        owners = sorted(kind.__name__ for kind in INTERFACES if hook in required_hooks(kind))
        raise HookNotImplementedError(
            f"it does not implement {hook}, a hook of {' and '.join(owners)}",
            plugin=self.name,
            distribution=self.origin.distribution,
            version=self.origin.version,
            action=f"calling the volume plugin {self.name}",
        )


def _package_of(plugin: object) -> str:
    module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
    return module.partition(".")[0]
