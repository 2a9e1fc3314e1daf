"""The plugin under test: found by its qualified name among the installed ones, or as ``module:Object``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from volumehost.errors import PluginLookupError, VolumeHostError
from volumehost.loader.loading import instantiate
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.origin import Origin
from volumehost.loader.prober import EntryPointProber
from volumehost.loader.scan import normalize
from volumehost.loader.sources import import_object, split_value
from volumehost.loader.trust import TrustPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.volume_host import VolumeHost


@dataclass(frozen=True, slots=True)
class PluginUnderTest:
    """One plugin.

    ``name`` is its qualified name, or what was asked for when it never told one. ``target`` is ``module:Object``, by
    which another process finds it; ``thing`` is that object: a class, an instance or a module. ``error`` is why it does
    not load. ``id`` begins the ids of its checks: the name, or the target when several plugins have the same name.
    """

    name: str
    target: str
    thing: object
    origin: Origin = field(default_factory=Origin)
    error: VolumeHostError | None = None
    id: str = ""

    @property
    def distribution(self) -> str:
        """The distribution that it comes from; guessed from the package where it was named as ``module:Object``."""
        top = self.target.partition(":")[0].partition(".")[0]
        return self.origin.distribution or normalize(top)


def with_ids(found: Sequence[PluginUnderTest]) -> list[PluginUnderTest]:
    """The plugins, each with an id of its own."""
    count = Counter(subject.name for subject in found)
    return [replace(each, id=each.name if count[each.name] == 1 else each.target) for each in found]


def find_plugin(asked: str) -> PluginUnderTest:
    """The plugin of that name, or at that ``module:Object``.

    :raises PluginLookupError: no installed plugin has that name; says which there are and which do not load.
    :raises ImportError: the module cannot be imported.
    :raises AttributeError: the module has no such object.
    """
    if "/" in asked:
        return _installed(asked)
    thing = import_object(*split_value(asked))
    manager = VolumePluginManager(trust=TrustPolicy(), inspect_only=True)
    errors = manager.init_plugins([thing])
    statuses = manager.plugins()
    manager.close()
    if errors:
        return PluginUnderTest(errors[0].subject or asked, asked, thing, error=errors[0])
    return PluginUnderTest(statuses[0].name, asked, thing)


def _installed(name: str) -> PluginUnderTest:
    manager = VolumePluginManager(trust=TrustPolicy(), inspect_only=True)
    manager.init_plugins(prober=EntryPointProber())
    try:
        origin = manager.find_plugin_by_name(name).origin
    except PluginLookupError as error:
        raise _not_installed(name, manager) from error
    finally:
        manager.close()
    return PluginUnderTest(name, origin.value, import_object(*split_value(origin.value)), origin)


def _not_installed(name: str, manager: VolumePluginManager) -> PluginLookupError:
    statuses = manager.plugins()
    there = ", ".join(each.name for each in statuses if each.error is None) or "none"
    broken = [f"{each.name} of {each.distribution} does not load: {each.detail}" for each in statuses if each.error]
    return PluginLookupError(
        f"no installed plugin has this name; there are: {there}" + "".join(f"; {text}" for text in broken),
        action=f"looking for the volume plugin {name}",
        subject=name,
        hint="install it, or name it as module:Object",
    )


def load(thing: object, host: VolumeHost) -> tuple[VolumePluginManager, LoadedPlugin]:
    """A new plugin object, checked and initialised as the host does it. Close the manager when done.

    :raises PluginError: it does not load.
    """
    manager = VolumePluginManager(trust=TrustPolicy())
    errors = manager.init_plugins([thing], host=host)
    if errors:
        raise errors[0]
    (status,) = manager.plugins()
    return manager, manager.find_plugin_by_name(status.name)


def told_name(thing: object) -> object:
    """What ``get_plugin_name`` of a new plugin object returns."""
    return cast("LoadedPlugin", instantiate(thing)).get_plugin_name()
