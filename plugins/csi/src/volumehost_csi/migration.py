"""In-tree volume types that CSI drivers have taken over: which driver, and where a translator goes (CSI-MIG).

This project ships no translator. Whoever has volumes of a built-in type gives the plugin one; the host calls it before
it looks up a plugin. The specs that it returns are ordinary persistent CSI specs with ``migrated`` set, which the
metrics then show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from volumehost.errors import SpecError
from volumehost_csi.source import persistent_source

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.volumes import SpecTranslator

#: Name of the built-in plugin to name of the CSI driver (CSI-MIG-02).
DRIVERS_OF_IN_TREE_PLUGINS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
        "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
        "kubernetes.io/cinder": "cinder.csi.openstack.org",
        "kubernetes.io/azure-disk": "disk.csi.azure.com",
        "kubernetes.io/azure-file": "file.csi.azure.com",
        "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
        "kubernetes.io/portworx-volume": "pxd.portworx.com",
    }
)

#: Kind of source to name of the built-in plugin.
_IN_TREE_PLUGINS: Final = {
    "aws_elastic_block_store": "kubernetes.io/aws-ebs",
    "gce_persistent_disk": "kubernetes.io/gce-pd",
    "cinder": "kubernetes.io/cinder",
    "azure_disk": "kubernetes.io/azure-disk",
    "azure_file": "kubernetes.io/azure-file",
    "vsphere_volume": "kubernetes.io/vsphere-volume",
    "portworx_volume": "kubernetes.io/portworx-volume",
}


class Translator(Protocol):
    """Turns specs of one built-in volume type into CSI specs."""

    def translate(self, spec: Spec, namespace: str) -> Spec:
        """A spec with a PersistentVolume that has a CSI source.

        :param spec: of the built-in type, inline or of a PersistentVolume; borrowed.
        :param namespace: the pod's, for secrets that an inline volume names.
        """
        ...


class Migration:
    """Which in-tree volume types are migrated here: those for which there is a translator.

    :param translators: name of the built-in plugin to its translator.
    :raises SpecError: one of the names is not in ``DRIVERS_OF_IN_TREE_PLUGINS``.
    """

    def __init__(self, translators: Mapping[str, Translator] = MappingProxyType({})) -> None:
        unknown = sorted(set(translators) - set(DRIVERS_OF_IN_TREE_PLUGINS))
        if unknown:
            raise SpecError(
                f"no CSI driver has taken over {', '.join(unknown)}",
                action="registering translators of in-tree volumes",
                hint=f"known are {', '.join(sorted(DRIVERS_OF_IN_TREE_PLUGINS))}",
            )
        self._translators = dict(translators)

    def migrated_plugins(self) -> tuple[str, ...]:
        """Names of the migrated plugins, sorted, as the CSINode annotation has them (CSI-NIM-25)."""
        return tuple(sorted(self._translators))

    def translators_by_source(self) -> Mapping[str, SpecTranslator]:
        """Kind of source to what translates it, as the host wants them."""
        return {source: self.translate for source, plugin in _IN_TREE_PLUGINS.items() if plugin in self._translators}

    def translate(self, spec: Spec, namespace: str = "") -> Spec:
        """The spec to go on with: the same one unless its type is migrated (CSI-MIG-01, -04).

        :raises SpecError: the translator returned something else than a persistent CSI spec.
        """
        translator = self._translators.get(_IN_TREE_PLUGINS.get(spec.source(), ""))
        if translator is None:
            return spec
        translated = translator.translate(spec, namespace)
        persistent_source(translated)
        return replace(
            translated,
            read_only=spec.read_only or translated.read_only,
            migrated=True,
            inline_volume_spec_for_csi_migration=spec.volume is not None,
        )
