"""What plugins are loaded from: an object that somebody hands over, or an installed distribution."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from volumehost.errors import PluginDeniedError, PluginImportError, PluginIncompatibleError
from volumehost.loader.import_path import run_pth_code
from volumehost.loader.loading import mending_hint
from volumehost.loader.origin import Origin
from volumehost.loader.requirements import incompatibility

if TYPE_CHECKING:
    from volumehost.loader.installed import InstalledDistribution
    from volumehost.loader.modules import OwnModules

#: Label, origin, and how to get at the plugin's class, instance or module.
Candidate = tuple[str, Origin, Callable[[], object]]


class PluginSource(Protocol):
    """One or more plugins that come, change and go together."""

    @property
    def version(self) -> str:
        """The version on offer, "" where there is none."""
        ...

    def candidates(self) -> Sequence[Candidate]:
        """The plugins, in the order in which they are to be loaded."""
        ...

    def check(self) -> None:
        """Raise a PluginError when nothing of it may be imported. Runs none of its code."""
        ...

    def ahead(self, denied: Collection[str]) -> Callable[[], None]:
        """What imports all that the plugins may need when their files are gone, but nothing of the entry points denied.

        Asked for while the files are those that were loaded.
        """
        ...

    def take_out(self, keep: Collection[str] = ()) -> dict[str, ModuleType]:
        """Drop the source's modules but those named, so that the next import is afresh."""
        ...

    def put_back(self, taken: dict[str, ModuleType]) -> None:
        """Undo :meth:`take_out`."""
        ...

    def why_not_afresh(self) -> str:
        """Why it cannot be imported afresh in this process, "" when it can."""
        ...


class ObjectSource:
    """A plugin that was handed over: a class, an instance or a module. It has no modules of its own to manage."""

    version = ""

    def __init__(self, plugin: object, label: str = "") -> None:
        self.plugin = plugin
        self.label = label or str(getattr(plugin, "__name__", type(plugin).__name__))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectSource) and self.plugin is other.plugin

    def __hash__(self) -> int:
        return id(self.plugin)

    def candidates(self) -> Sequence[Candidate]:
        """The one plugin."""
        return [(self.label, Origin(), lambda: self.plugin)]

    def check(self) -> None:
        """Nothing to check."""

    def ahead(self, denied: Collection[str]) -> Callable[[], None]:  # noqa: ARG002 - the Protocol's signature
        """Nothing to import."""
        return lambda: None

    def take_out(self, keep: Collection[str] = ()) -> dict[str, ModuleType]:  # noqa: ARG002 - the Protocol's signature
        """No modules."""
        return {}

    def put_back(self, taken: dict[str, ModuleType]) -> None:
        """Nothing was taken."""

    def why_not_afresh(self) -> str:
        """It need not be imported."""
        return ""


class DistributionSource:
    """The plugins of an installed distribution; equal to another when nothing was reinstalled between the two."""

    def __init__(self, installed: InstalledDistribution, *, verify: bool) -> None:
        self.installed = installed
        self._verify = verify
        self._checked = False
        self._modules: OwnModules | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DistributionSource) and self.installed == other.installed

    def __hash__(self) -> int:
        return hash(self.installed)

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self.installed.version

    @property
    def modules(self) -> OwnModules:
        """Its modules; found out once, because its files may be others later."""
        from volumehost.loader.modules import OwnModules

        if self._modules is None:
            self._modules = OwnModules(self.installed)
        return self._modules

    def candidates(self) -> Sequence[Candidate]:
        """One plugin for each entry point, sorted by name."""
        return [
            (name, self.installed.origin(name, value), partial(self._import, name, value))
            for name, value in sorted(self.installed.entry_points)
        ]

    def check(self) -> None:
        """Compare what it requires with what is here, and its files with its RECORD where the policy says so.

        :raises PluginIncompatibleError: it needs another host or Python (BR-82).
        :raises PluginDeniedError: its files are not those that were installed.
        """
        if self._checked:
            return
        name, version = self.installed.name, self.installed.version
        action = f"loading the volume plugins of {name} {version}"
        reason = incompatibility(self.installed)
        if reason:
            hint = f"install a version that fits: pip install -U {name}"
            raise PluginIncompatibleError(reason, distribution=name, version=version, action=action, hint=hint)
        if self._verify:
            from volumehost.loader.record import first_changed_file

            reason = first_changed_file(self.installed)
            if reason:
                hint = f"install it again: pip install --force-reinstall {name}"
                raise PluginDeniedError(reason, distribution=name, version=version, action=action, hint=hint)
        self._checked = True

    def ahead(self, denied: Collection[str]) -> Callable[[], None]:
        """Imports the submodules of its packages, without the modules of entry points that are denied."""
        modules = {split_value(value)[0] for name, value in self.installed.entry_points if name in denied}
        return partial(self.modules.import_ahead, modules - sys.modules.keys())

    def take_out(self, keep: Collection[str] = ()) -> dict[str, ModuleType]:
        """Drop its modules from ``sys.modules``."""
        return self.modules.take_out(keep)

    def put_back(self, taken: dict[str, ModuleType]) -> None:
        """Restore them, in the place of any that were imported meanwhile."""
        self.modules.put_back(taken)

    def why_not_afresh(self) -> str:
        """Names a loaded extension module: one process cannot load two versions of it."""
        extension = self.modules.extension()
        return f"its extension module {extension} cannot be loaded twice in one process" if extension else ""

    def _import(self, name: str, value: str) -> object:
        """The object that an entry point names; runs the distribution's ``.pth`` code when that is needed (BR-10)."""
        module_name, attributes = split_value(value)
        top = module_name.partition(".")[0]
        try:
            return import_object(module_name, attributes)
        except ModuleNotFoundError as error:
            if error.name != top:
                raise
        from volumehost.loader.record import own_rows

        rows = [row.path for row in own_rows(self.installed)]
        for path in rows:
            if path.endswith(".pth"):
                run_pth_code(f"{self.installed.directory}/{path}")
        try:
            return import_object(module_name, attributes)
        except ModuleNotFoundError as error:
            if error.name != top:
                raise
            origin = self.installed.origin(name, value)
            raise self._not_importable(top, rows, origin) from error

    def _not_importable(self, top: str, rows: list[str], origin: Origin) -> PluginImportError:
        where = self.installed.editable_directory() or self.installed.directory
        listed = any(path.partition("/")[0].partition(".")[0] == top for path in rows)
        reason, hint = f"its entry point names the module {top!r}, which it does not bring", mending_hint(origin)
        if listed or self.installed.editable_directory():
            reason = f"it is installed at {where}, which this process cannot import"
            hint = "restart the host"
        return PluginImportError(
            reason,
            plugin=origin.entry_point,
            distribution=origin.distribution,
            version=origin.version,
            action=f"loading the volume plugin {origin.entry_point} of {origin}",
            hint=hint,
        )


def split_value(value: str) -> tuple[str, str]:
    """Module and attribute of an entry point's value ``module:attribute [extras]``.

    :raises ValueError: it has no module.
    """
    module_name, _, attributes = value.partition("[")[0].partition(":")
    if not module_name.strip():
        raise ValueError(f"the entry point's value {value!r} names no module")
    return module_name.strip(), attributes.strip()


def import_object(module_name: str, attributes: str) -> object:
    """Import a module and follow dotted attributes; the module itself where there are none."""
    importlib.import_module(module_name)
    found: Any = sys.modules[module_name]
    for attribute in filter(None, attributes.split(".")):
        found = getattr(found, attribute)
    return cast("object", found)
