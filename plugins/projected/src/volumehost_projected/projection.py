"""Merges the sources of a projected volume into one set of files (PAYLOAD-40 to -42)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import NotAvailableOnHostError, SpecError, TransientOperationError, VolumeHostError
from volumehost_projected import credentials
from volumehost_projected.downward import downward_api_files
from volumehost_projected.keyed import Files, config_map_files, secret_files

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, ProjectedVolumeSource, VolumeProjection
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import MounterArgs


class Projection:
    """The sources of one volume of one pod."""

    def __init__(self, host: VolumeHost, volume_name: str, source: ProjectedVolumeSource, pod: Pod) -> None:
        self._host = host
        self._volume_name = volume_name
        self._source = source
        self._pod = pod

    def files(self, args: MounterArgs) -> Files:
        """The files of all sources; of two with one path the later source's counts.

        :raises NotAvailableOnHostError: the host has no API.
        :raises SpecError: sources failed; each of them is named.
        :raises TransientOperationError: the same, and all that is to be done is to wait.
        """
        if self._host.get_kube_client() is None:
            raise NotAvailableOnHostError(
                f"cannot setup projected volume {self._volume_name} because kube client is not configured",
                subject=self._volume_name,
            )
        files: Files = {}
        failures: list[VolumeHostError] = []
        for index, projection in enumerate(self._source.sources):
            try:
                files.update(self._files_of(index, projection, args))
            except VolumeHostError as error:
                failures.append(error)
        if failures:
            raise self._failed(failures)
        return files

    def _files_of(self, index: int, projection: VolumeProjection, args: MounterArgs) -> Files:
        """A source of no known kind has no files."""
        host, pod, mode = self._host, self._pod, self._source.default_mode
        namespace = pod.metadata.namespace
        if mode is None:
            raise SpecError("no defaultMode used, not even the default value for it", subject=self._volume_name)
        if projection.secret is not None:
            return secret_files(host, namespace, projection.secret.name, projection.secret, mode)
        if projection.config_map is not None:
            return config_map_files(host, namespace, projection.config_map, mode)
        if projection.downward_api is not None:
            return downward_api_files(host, pod, projection.downward_api.items, mode)
        private = credentials.FileMaker.of(mode, args)
        if projection.service_account_token is not None:
            return credentials.token_files(host, pod, projection.service_account_token, private)
        if projection.cluster_trust_bundle is not None:
            return credentials.trust_anchor_files(host, projection.cluster_trust_bundle, private)
        if projection.pod_certificate is not None:
            wanted = (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, self._volume_name, index)
            return credentials.certificate_files(host, projection.pod_certificate, wanted, private)
        return {}

    def _failed(self, failures: list[VolumeHostError]) -> VolumeHostError:
        if len(failures) == 1:
            return failures[0]
        only_waits = all(isinstance(error, TransientOperationError) for error in failures)
        kind: type[VolumeHostError] = TransientOperationError if only_waits else SpecError
        return kind("; ".join(map(str, failures)), subject=self._volume_name)
