"""Publishing a filesystem volume for a pod: the mounter (CSI-MNT).

The order of the steps is the rules'; what each failure leaves on disk is the matrix CSI-MNT-31.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import OperationError, SpecError, VolumeHostError, is_operation_finished_error
from volumehost.volumes import Attributes
from volumehost_csi import vol_data
from volumehost_csi.after_publish import apply_group, needs_relabel
from volumehost_csi.client import STAGE_UNSTAGE_VOLUME, VOLUME_MOUNT_GROUP
from volumehost_csi.context import check_attributes, publish_additions, publish_context, secret_values
from volumehost_csi.names import attachment_name, ephemeral_handle, shorten, staging_path, target_path
from volumehost_csi.removal import clean_up
from volumehost_csi.services import before_the_call
from volumehost_csi.source import EPHEMERAL, PERSISTENT, capability, sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from volumehost.api.objects import Pod
    from volumehost.spec import Spec
    from volumehost.volumes import MounterArgs, VolumeMetrics
    from volumehost_csi.client import NodeClient
    from volumehost_csi.driver_objects import DriverTreatment
    from volumehost_csi.services import Services

DIRECTORY_MODE = 0o750

#: The pod's own directory, that of its volumes, and the plugin's in it: new with the pod's first volume.
_PARENTS_IN_POD = 3


class CSIMounter:
    """Mounts one volume for one pod.

    :raises SpecError: from the constructor: the spec has no CSI source, or an impossible one.
    """

    def __init__(self, services: Services, spec: Spec, pod: Pod) -> None:
        inline, persistent = sources(spec)
        self._services, self._spec, self._pod = services, spec, pod
        if inline is not None:
            self._mode, self.driver = EPHEMERAL, inline.driver
            self.handle = ephemeral_handle(pod.metadata.uid, spec.name())
            self._read_only = bool(inline.read_only)
            self._fs_type = inline.fs_type or ""
            self._attributes: Mapping[str, str] = inline.volume_attributes
        else:
            assert persistent is not None
            self._mode, self.driver, self.handle = PERSISTENT, persistent.driver, persistent.volume_handle
            # The pod's flag, not the PersistentVolume's (CSI-PLUG-18).
            self._read_only = spec.read_only
            self._fs_type = persistent.fs_type
            self._attributes = persistent.volume_attributes
        self._staging_path = "" if inline is not None else staging_path(services.host, self.driver, self.handle)
        self._path = target_path(services.host, pod.metadata.uid, spec.name())
        self._publish_context: Mapping[str, str] | None = None
        self._needs_relabel = False

    # --- what it is ---------------------------------------------------------------------------------------

    def get_path(self) -> str:
        """Where the pod sees it (CSI-PATH-01)."""
        return self._path

    def get_attributes(self) -> Attributes:
        """CSI-MNT-22."""
        return Attributes(read_only=self._read_only, managed=not self._read_only, selinux_relabel=self._needs_relabel)

    @property
    def metric_source(self) -> str:
        """Who measures it."""
        return self.driver

    def get_metrics(self) -> VolumeMetrics:
        """Usage and health, as the driver tells (CSI-MET-06)."""
        from volumehost_csi.stats import measure

        return measure(
            self._services, driver=self.driver, handle=self.handle, path=self._path, staging_path=self._staging_path
        )

    # --- setting up ---------------------------------------------------------------------------------------

    def set_up(self, args: MounterArgs) -> None:
        """Publish at the plugin's own path."""
        self.set_up_at(self._path, args)

    def set_up_at(self, directory: str, args: MounterArgs) -> None:
        """Publish at ``directory``, which the driver creates; also again, to refresh what is there (CSI-MNT-30).

        :raises TransientOperationError: the driver, or something else that it needs, is missing; nothing was started.
        :raises UncertainProgressError: the driver may be at it, or the mount is there and could not be finished.
        :raises VolumeHostError: it is certainly not mounted, unless this was a refresh.
        """
        with before_the_call():
            client = self._services.client(self.driver)
            treatment = self._services.driver_objects.treatment(self.driver)
            treatment.check_lifecycle(self._mode, self.driver)
            request = self._prepare(client, treatment, args)
            self._write_record(directory, request)
        try:
            client.publish_volume(
                self.handle,
                directory,
                capability(
                    self._spec, client.capabilities(), mount_flags=request.mount_flags, group=request.delegated_group
                ),
                read_only=self._read_only,
                staging_path=request.staging_path,
                publish_context=request.publish_context,
                volume_context=request.volume_context,
                secrets=request.secrets,
                migrated=self._spec.migrated,
            )
        except VolumeHostError as error:
            # A pod may still use what an earlier call mounted (CSI-MNT-18, -19, BR-38).
            if is_operation_finished_error(error) and not (args.is_remount or args.reconstructed_volume):
                clean_up(directory)
            raise
        self._needs_relabel = needs_relabel(self._services, directory, request.selinux_label)
        if args.fs_group is not None and request.host_applies_group:
            self._apply_group(directory, args)

    def _prepare(self, client: NodeClient, treatment: DriverTreatment, args: MounterArgs) -> _Request:
        """All that the call needs; changes nothing on disk (CSI-MNT-10, improved)."""
        host, spec, pod = self._services.host, self._spec, self._pod
        inline, persistent = sources(spec)
        mount_flags: list[str] = []
        if inline is not None:
            from volumehost.api.objects import SecretReference

            check_attributes(self._attributes, spec.name())
            local = inline.node_publish_secret_ref
            reference = SecretReference(name=local.name, namespace=pod.metadata.namespace) if local else None
        else:
            assert persistent is not None
            assert spec.persistent_volume is not None
            reference = persistent.node_publish_secret_ref
            mount_flags.extend(spec.persistent_volume.spec.mount_options)
        stages = inline is None and client.has(STAGE_UNSTAGE_VOLUME)
        attached_as = {} if inline is not None else self._context_of_publish(treatment)
        secrets = secret_values(host, reference)
        context, more_secrets = publish_additions(host, treatment, pod, ephemeral=inline is not None)
        delegates = client.has(VOLUME_MOUNT_GROUP)
        label = args.selinux_label if treatment.selinux_mount else ""
        if label:
            mount_flags.append(selinux_option(label))
        return _Request(
            staging_path=self._staging_path if stages else "",
            publish_context=attached_as,
            volume_context={**self._attributes, **context},
            secrets={**secrets, **more_secrets},
            mount_flags=mount_flags,
            delegated_group=args.fs_group if delegates else None,
            host_applies_group=not delegates
            and treatment.host_applies_group(spec, self._fs_type, read_only=self._read_only),
            selinux_label=label,
        )

    def _context_of_publish(self, treatment: DriverTreatment) -> Mapping[str, str]:
        """Read once for this object and always sent (CSI-MNT-06, -07 improved)."""
        if self._publish_context is None:
            self._publish_context = publish_context(self._services, treatment, self.driver, self.handle)
        return self._publish_context

    def _write_record(self, target: str, request: _Request) -> None:
        """What a teardown needs, before the call that it may have to undo (CSI-MNT-15, -16)."""
        node_name = self._services.node_name
        record = {
            vol_data.SPEC_NAME: self._spec.name(),
            vol_data.HANDLE: self.handle,
            vol_data.DRIVER: self.driver,
            vol_data.NODE_NAME: node_name,
            vol_data.LIFECYCLE_MODE: self._mode,
            vol_data.ATTACHMENT: attachment_name(self.handle, self.driver, node_name),
        }
        if request.selinux_label:
            record[vol_data.SELINUX_CONTEXT] = request.selinux_label
        directory = os.path.dirname(target)
        try:
            vol_data.write(directory, record, is_new=_make_directory(directory))
        except OSError as error:
            if not os.path.exists(f"{directory}/{vol_data.FILE_NAME}"):
                clean_up(target)
            raise record_not_written(directory, error) from error

    def _apply_group(self, directory: str, args: MounterArgs) -> None:
        started = time.perf_counter()

        def count(error: Exception | None) -> None:
            self._services.metrics.observe_operation(
                self.driver, "volume_apply_access_control", time.perf_counter() - started,
                failed=error is not None, migrated=self._spec.migrated,
            )  # fmt: skip

        apply_group(self, directory, self._pod, args, count)


@dataclass(frozen=True, slots=True, repr=False)
class _Request:
    """What a publish sends, and what the host does itself afterwards. Has secrets, so it is never shown."""

    staging_path: str
    publish_context: Mapping[str, str]
    volume_context: Mapping[str, str]
    secrets: Mapping[str, str]
    mount_flags: list[str]
    delegated_group: int | None
    host_applies_group: bool
    selinux_label: str


def _make_directory(path: str) -> bool:
    """Make the volume's directory in the pod's; whether it was not there."""
    from volumehost.sdk import make_directories

    try:  # the pod's first volume has made its parents
        os.mkdir(path, DIRECTORY_MODE)
    except FileNotFoundError:
        return make_directories(path, DIRECTORY_MODE, new_parents=_PARENTS_IN_POD)
    except FileExistsError:
        return make_directories(path, DIRECTORY_MODE)
    return True


def selinux_option(label: str) -> str:
    """The mount option; quoted, since labels hold commas (CSI-SEL-02).

    :raises SpecError: the label would end the quotes.
    """
    if '"' in label:
        raise SpecError(f"the SELinux label {shorten(label)!r} holds a quote", action="mounting with an SELinux label")
    return f'context="{label}"'


def record_not_written(directory: str, error: OSError) -> OperationError:
    """The error for a record that could not be written."""
    return OperationError(
        error.strerror or str(error),
        action=f"writing the record {directory}/{vol_data.FILE_NAME}",
        subject=directory,
        hint="nothing was mounted; it is tried again",
    )
