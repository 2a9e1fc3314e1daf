"""The CSIDriver objects: how the host is to treat each driver (CSI-DRV).

One look-up serves a whole operation, so that its steps agree; the next one sees what has changed since (CSI-DRV-06).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from volumehost.errors import (
    NotAvailableOnHostError,
    ObjectNotFoundError,
    TransientOperationError,
    VolumeHostError,
)
from volumehost_csi.source import EPHEMERAL, PERSISTENT, READ_WRITE_ONCE, READ_WRITE_ONCE_POD

if TYPE_CHECKING:
    from volumehost.api.objects import CSIDriver, CSITokenRequest
    from volumehost.host_services import Lister
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost

#: fsGroupPolicy where none is set (CSI-DRV-04, improved: an empty one too).
DEFAULT_FS_GROUP_POLICY: Final = "ReadWriteOnceWithFSType"


@dataclass(frozen=True, slots=True)
class DriverTreatment:
    """What a CSIDriver object says; the defaults are those of a driver without one (CSI-DRV-01).

    ``allocatable_period`` is ``nodeAllocatableUpdatePeriodSeconds``, None when unset.
    """

    attach_required: bool = True
    pod_info: bool = False
    lifecycle_modes: frozenset[str] = frozenset({PERSISTENT})
    fs_group_policy: str = DEFAULT_FS_GROUP_POLICY
    token_requests: tuple[CSITokenRequest, ...] = ()
    tokens_in_secrets: bool = False
    requires_republish: bool = False
    selinux_mount: bool = False
    allocatable_period: int | None = None

    @classmethod
    def of(cls, csi_driver: CSIDriver) -> DriverTreatment:
        """That of one object; unset fields are the API's defaults, but no modes are no modes (CSI-DRV-05)."""
        spec = csi_driver.spec
        return cls(
            attach_required=spec.attach_required is not False,
            pod_info=bool(spec.pod_info_on_mount),
            lifecycle_modes=frozenset(spec.volume_lifecycle_modes),
            fs_group_policy=spec.fs_group_policy or DEFAULT_FS_GROUP_POLICY,
            token_requests=tuple(spec.token_requests),
            tokens_in_secrets=bool(spec.service_account_token_in_secrets),
            requires_republish=bool(spec.requires_republish),
            selinux_mount=bool(spec.se_linux_mount),
            allocatable_period=spec.node_allocatable_update_period_seconds,
        )

    def check_lifecycle(self, mode: str, driver: str) -> None:
        """Refuse a mode that the driver is not declared for (CSI-MNT-02).

        :raises TransientOperationError: it is not; the object may still come or change.
        """
        if mode not in self.lifecycle_modes:
            listed = ", ".join(sorted(self.lifecycle_modes)) or "none"
            how = "inline volumes" if mode == EPHEMERAL else "PersistentVolumes"
            raise TransientOperationError(
                f"its CSIDriver object allows these lifecycle modes: {listed}",
                action=f"using the CSI driver {driver} for {how}",
                subject=driver,
                hint=f"a CSIDriver object named {driver} must list {mode} in volumeLifecycleModes",
            )

    def host_applies_group(self, spec: Spec, fs_type: str, *, read_only: bool) -> bool:
        """Whether the host is to give the volume to the pod's group (CSI-FSG-02 to -06)."""
        if read_only or self.fs_group_policy == "None":
            return False
        if self.fs_group_policy == "File":
            return True
        if not fs_type:
            return False
        if spec.volume is not None:
            return True
        persistent = spec.persistent_volume
        return persistent is not None and bool(
            {READ_WRITE_ONCE, READ_WRITE_ONCE_POD}.intersection(persistent.spec.access_modes)
        )


class DriverObjects:
    """Looks CSIDriver objects up.

    :param fixed: objects to go by where the host has no API (CSI-SOLO-05); a driver that is not among them has
        the defaults. Nothing is attached there, since nobody could.
    """

    def __init__(self, host: VolumeHost, fixed: Iterable[CSIDriver] = ()) -> None:
        self._host = host
        self._fixed = {each.metadata.name: each for each in fixed}
        self._lister: Lister[CSIDriver] | None = None
        #: Of each driver the state of the object that was seen last, and what that says.
        self._seen: dict[str, tuple[tuple[str, str], DriverTreatment]] = {}

    def treatment(self, driver: str) -> DriverTreatment:
        """What holds for the driver now.

        :raises TransientOperationError: its object cannot be looked up (CSI-PLUG-16, improved).
        """
        if self._host.get_kube_client() is None:
            fixed = self._fixed.get(driver)
            return replace(DriverTreatment.of(fixed) if fixed is not None else _DEFAULTS, attach_required=False)
        found = self._find(driver)
        if found is None:
            return _DEFAULTS
        state = found.metadata.uid, found.metadata.resource_version
        seen, treatment = self._seen.get(driver, (None, _DEFAULTS))
        if seen != state or not all(state):
            treatment = DriverTreatment.of(found)
            self._seen[driver] = state, treatment
        return treatment

    def _find(self, driver: str) -> CSIDriver | None:
        """The object, None when there is none: certainly none, not merely not seen yet (BR-49)."""
        try:
            return self._synced_lister().get(driver)
        except ObjectNotFoundError:
            return None
        except VolumeHostError as error:
            raise TransientOperationError(
                error.reason, action=f"looking up the CSIDriver object {driver}", subject=driver, hint=error.hint
            ) from error

    def _synced_lister(self) -> Lister[CSIDriver]:
        if self._lister is None:
            from volumehost.volume_host import CSIDriverVolumeHost, KubeletVolumeHost

            host = self._host
            if not isinstance(host, CSIDriverVolumeHost):
                raise NotAvailableOnHostError("this host does not list CSIDriver objects")
            if isinstance(host, KubeletVolumeHost):
                host.wait_for_cache_sync()
            self._lister = host.csi_driver_lister()
        return self._lister


_DEFAULTS: Final = DriverTreatment()
