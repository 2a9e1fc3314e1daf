"""The four plugins: what the entry points name and the host loads (PAYLOAD rules).

They differ in what their files are made of; how the files get to the pod is the same for all. Importing this module
loads nothing but the contract: the rest comes when a hook needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from volumehost import hookimpl
from volumehost.errors import NotAvailableOnHostError, SpecError

if TYPE_CHECKING:
    from collections.abc import Collection

    from volumehost.api.objects import Pod
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import Mounter, ReconstructedVolume, Unmounter
    from volumehost_projected.mounter import Collect


class _FilesPlugin:
    """What the four have in common."""

    #: The plugin's name, its source in the API's words and in a Spec's.
    NAME: ClassVar[str]
    KIND: ClassVar[str]
    SOURCE: ClassVar[str]
    #: Whether the files lie in memory alone, never on the disk.
    IN_MEMORY: ClassVar[bool] = True
    #: Whether tokens and keys are kept for the pod, to be dropped when its volume is gone (PAYLOAD-06).
    HAS_CREDENTIALS: ClassVar[bool] = False

    def __init__(self) -> None:
        self._host: VolumeHost | None = None

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        """Keep the host."""
        self._host = host

    @hookimpl
    def get_plugin_name(self) -> str:
        """Such as ``kubernetes.io/configmap``."""
        return self.NAME

    @hookimpl
    def get_volume_sources(self) -> Collection[str]:
        """The one kind of source, which only pods have."""
        return (self.SOURCE,)

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        """Whether the pod's volume is of the kind; never a PersistentVolume (PAYLOAD-01)."""
        return spec.volume is not None and getattr(spec.volume, self.SOURCE) is not None

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The volume's name in the pod."""
        self._source(spec)
        return spec.name()

    @hookimpl
    def requires_remount(self, spec: Spec) -> bool:  # noqa: ARG002 - whatever the spec
        """True: the files follow what they are made of (PLUG-05)."""
        return True

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        """Reads nothing yet.

        :raises SpecError: the volume is of another kind, or has no defaultMode (PAYLOAD-07).
        """
        from volumehost_projected.mounter import FilesMounter
        from volumehost_projected.volume_place import VolumePlace

        source = self._source(spec)
        if source.default_mode is None:
            raise SpecError(
                "no defaultMode used, not even the default value for it",
                action=f"preparing the {self.KIND} volume {spec.name()}",
                subject=spec.name(),
            )
        place = VolumePlace(self._any_host(), self.NAME, self.KIND, spec.name(), in_memory=self.IN_MEMORY)
        return FilesMounter(place, pod, self._collect(source, spec.name(), pod))

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        """Needs neither spec nor pod."""
        from volumehost_projected.unmounter import FilesUnmounter
        from volumehost_projected.volume_place import VolumePlace

        host = self._any_host()
        place = VolumePlace(host, self.NAME, self.KIND, volume_name, in_memory=self.IN_MEMORY)
        forget = host.delete_service_account_token_func() if self.HAS_CREDENTIALS else None
        return FilesUnmounter(place, pod_uid, forget)

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:  # noqa: ARG002
        """A volume of that name and kind; what it is made of is not on the disk."""
        from volumehost import ReconstructedVolume, Spec
        from volumehost.api.objects import Volume

        volume = Volume(name=volume_name)
        setattr(volume, self.SOURCE, self._reconstructed(volume_name))
        return ReconstructedVolume(Spec.from_volume(volume), complete=False)

    def _source(self, spec: Spec) -> Any:
        source = getattr(spec.volume, self.SOURCE, None)
        if source is None:
            raise SpecError(
                f"spec does not reference a {self.KIND} volume type", action="reading a volume", subject=spec.name()
            )
        return source

    def _any_host(self) -> VolumeHost:
        if self._host is None:
            raise NotAvailableOnHostError("the plugin was not initialised with a host", subject=self.NAME)
        return self._host

    def _collect(self, source: Any, name: str, pod: Pod) -> Collect:
        """What makes the volume's files, once the volume is set up."""
        raise NotImplementedError

    def _reconstructed(self, volume_name: str) -> object:
        """A source that names as much as is known after a restart."""
        raise NotImplementedError


class ConfigMapPlugin(_FilesPlugin):
    """Files from the keys of a ConfigMap, on the node's disk."""

    NAME = "kubernetes.io/configmap"
    KIND = "configMap"
    SOURCE = "config_map"
    IN_MEMORY = False

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The volume's name and the ConfigMap's."""
        return f"{spec.name()}/{self._source(spec).name}"

    def _collect(self, source: Any, name: str, pod: Pod) -> Collect:  # noqa: ARG002
        from volumehost_projected.keyed import config_map_files

        host, namespace = self._any_host(), pod.metadata.namespace
        return lambda _args: config_map_files(host, namespace, source, source.default_mode)

    def _reconstructed(self, volume_name: str) -> object:
        from volumehost.api.objects import ConfigMapVolumeSource

        return ConfigMapVolumeSource(name=volume_name)


class SecretPlugin(_FilesPlugin):
    """Files from the keys of a Secret, in memory."""

    NAME = "kubernetes.io/secret"
    KIND = "secret"
    SOURCE = "secret"

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The Secret's name."""
        name: str = self._source(spec).secret_name
        return name

    def _collect(self, source: Any, name: str, pod: Pod) -> Collect:  # noqa: ARG002
        from volumehost_projected.keyed import secret_files

        host, namespace = self._any_host(), pod.metadata.namespace
        return lambda _args: secret_files(host, namespace, source.secret_name, source, source.default_mode)

    def _reconstructed(self, volume_name: str) -> object:
        from volumehost.api.objects import SecretVolumeSource

        return SecretVolumeSource(secret_name=volume_name)


class DownwardAPIPlugin(_FilesPlugin):
    """Files about the pod itself and its containers, in memory."""

    NAME = "kubernetes.io/downward-api"
    KIND = "downwardAPI"
    SOURCE = "downward_api"

    def _collect(self, source: Any, name: str, pod: Pod) -> Collect:  # noqa: ARG002
        from volumehost_projected.downward import downward_api_files

        host = self._any_host()
        return lambda _args: downward_api_files(host, pod, source.items, source.default_mode)

    def _reconstructed(self, volume_name: str) -> object:  # noqa: ARG002
        from volumehost.api.objects import DownwardAPIVolumeSource

        return DownwardAPIVolumeSource()


class ProjectedPlugin(_FilesPlugin):
    """Several sources in one directory, tokens and certificates of the pod among them, in memory."""

    NAME = "kubernetes.io/projected"
    KIND = "projected"
    SOURCE = "projected"
    HAS_CREDENTIALS = True

    def _collect(self, source: Any, name: str, pod: Pod) -> Collect:
        from volumehost_projected.projection import Projection

        return Projection(self._any_host(), name, source, pod).files

    def _reconstructed(self, volume_name: str) -> object:  # noqa: ARG002
        from volumehost.api.objects import ProjectedVolumeSource

        return ProjectedVolumeSource()
