"""Which plugins may be loaded, and who may use the reserved namespace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from volumehost.loader.names import RESERVED_PREFIX, is_reserved
from volumehost.loader.scan import normalize

if TYPE_CHECKING:
    from volumehost.loader.origin import Origin

#: Loads only what it names (comma separated): distributions, entry points, plugins; ``none`` loads nothing.
ENV_ONLY = "VOLUMEHOST_PLUGINS"
#: Excludes what it names (comma separated).
ENV_DISABLE = "VOLUMEHOST_PLUGINS_DISABLE"
#: What to do about plugins that answer for the same volumes.
KEEP_ONE = f"exclude or uninstall all but one of them: {ENV_DISABLE} names what is not to be loaded"

#: The distributions of this project, which carry the plugins that Kubernetes itself brings.
OWN_DISTRIBUTIONS = ("volumehost-csi", "volumehost-emptydir", "volumehost-hostpath", "volumehost-projected")


class TrustPolicy(NamedTuple):
    """Allow and deny lists for installed plugins. Objects that the embedding program hands over are always trusted.

    ``allow`` None means everything. Entries are globs and match a distribution's name, an entry point's name or a
    plugin's name. What is excluded is not imported; a *plugin's* name is known only after the import unless it is
    also the entry point's, so name the distribution to be certain.

    ``reserved_distributions`` may use plugin names in ``kubernetes.io/``. ``verify_records`` compares the installed
    files with the hashes in the distribution's RECORD before anything of it is imported.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    reserved_distributions: tuple[str, ...] = OWN_DISTRIBUTIONS
    verify_records: bool = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> TrustPolicy:
        """The default policy with the two environment switches applied."""
        values = os.environ if environ is None else environ
        only = values.get(ENV_ONLY)
        allow = None if only is None or not only.strip() else _split(only)
        if allow == ("none",):
            allow = ()
        return cls(allow=allow, deny=_split(values.get(ENV_DISABLE, "")))

    def unmatched(self, installed: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        """The entries of both lists that name nothing of what is installed: perhaps they are misspelled.

        :param installed: of each plugin and driver its distribution, entry point and, where it is known, name.
        """
        known = list(installed)
        items = dict.fromkeys((*(self.allow or ()), *self.deny))
        return tuple(item for item in items if not any(_matches_before_import(item, names) for names in known))

    def reason_not_to_import(self, distribution: str, entry_point: str) -> str:
        """Why a plugin must not be imported, "" when it may."""
        names = (distribution, entry_point)
        if self.allow is not None and not any(_matches_before_import(item, names) for item in self.allow):
            return f"only {', '.join(self.allow) or 'none'} may be loaded"
        for item in self.deny:
            if _matches(item, names):
                return f"it is excluded by {item!r}"
        return ""

    def reason_not_to_use(self, name: str, origin: Origin) -> str:
        """Why a plugin that has told its name must not be used, "" when it may."""
        if not origin.distribution:
            return ""
        names = (origin.distribution, origin.entry_point, name)
        if self.allow is not None and not any(_matches(item, names) for item in self.allow):
            return f"only {', '.join(self.allow) or 'none'} may be loaded"
        for item in self.deny:
            if _matches(item, names):
                return f"it is excluded by {item!r}"
        return ""

    def name_faults(self, name: str, origin: Origin) -> list[str]:
        """A fault when the name lies in the reserved namespace and its distribution may not use that."""
        if not origin.distribution or not is_reserved(name) or origin.distribution in self.reserved_distributions:
            return []
        return [f"the namespace {RESERVED_PREFIX}/ is reserved for {', '.join(self.reserved_distributions)}"]


def _split(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _matches(item: str, names: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, item) for name in names) or fnmatchcase(names[0], normalize(item))


def _matches_before_import(item: str, names: tuple[str, ...]) -> bool:
    """Also what might turn out to be wanted: a plugin's name whose last part is the entry point's name."""
    return _matches(item, names) or ("/" in item and _matches(item.rpartition("/")[2], names[1:]))
