"""The device's global mount, once per node before pods bind to it: MOUNTOP-07, -08 with the states of OPERR-02."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import is_operation_finished_error, is_uncertain_progress_error
from volumehost.node.journal.format import FAILED, MOUNTED, MOUNTING, UNCERTAIN
from volumehost.node.operations.common import OperationFailedError, Services, Steps, driver_answered, plugin_user
from volumehost.node.operations.lost_device import is_shared_as_it_is, undo_other_device
from volumehost.node.operations.own_places import check_place_of_device
from volumehost.node.state.states import DeviceState
from volumehost.volumes import DeviceMounterArgs

if TYPE_CHECKING:
    from volumehost.node.state.desired import VolumeUse

Failure = Callable[[str, BaseException], OperationFailedError]


def mount_device(services: Services, use: VolumeUse, device_path: str, steps: Steps, failure: Failure) -> str:
    """Mount the device at its global path unless that is known to be done; marks the outcome. Returns the path.

    :raises OperationFailedError: it failed; the device's state is marked by OPERR-02.
    """
    volume = services.actual.get_volume(use.volume)
    if volume is not None and volume.device_state is DeviceState.MOUNTED:
        return volume.device_mount_path
    device_mounter = use.plugin.new_device_mounter()
    try:
        mount_path = device_mounter.get_device_mount_path(use.spec)
        check_place_of_device(services.host.layout, mount_path)
    except BaseException as error:
        raise failure("GetDeviceMountPath failed", error) from error
    steps.enter("mount-device")
    begin_device(services, use, device_path, mount_path)
    arguments = DeviceMounterArgs(fs_group=use.fs_group, selinux_label=use.mount_label)
    try:
        try:
            device_mounter.mount_device(use.spec, device_path, mount_path, arguments)
        except Exception as error:
            if not driver_answered(error, "ALREADY_EXISTS"):  # it is mounted, and not as it is asked for now
                raise
            if not is_shared_as_it_is(services, use):
                if not undo_other_device(services, use, mount_path, steps):
                    raise
                steps.enter("mount-device")
                device_mounter.mount_device(use.spec, device_path, mount_path, arguments)
    except BaseException as error:
        device_failed(services, use, device_path, mount_path, error)
        raise failure("MountDevice failed", error) from error
    steps.enter("mark-device-mounted")
    device_done(services, use, device_path, mount_path)
    return mount_path


def begin_device(services: Services, use: VolumeUse, device_path: str, mount_path: str) -> None:
    """The record comes before the call: a device that may be mounted must never be forgotten."""
    use.plugin.hold(plugin_user(use.volume, ""))
    record = {"v": use.volume, "dev": MOUNTING, "dpath": device_path, "dmpath": mount_path, "plugin": use.plugin.name}
    services.journal.sync(services.journal.write(record))


def device_done(services: Services, use: VolumeUse, device_path: str, mount_path: str) -> None:
    """The device is mounted, or set up for mapping."""
    services.actual.set_device(use.volume, DeviceState.MOUNTED, device_path=device_path, device_mount_path=mount_path)
    services.note({"v": use.volume, "dev": MOUNTED, "dpath": device_path, "err": ""})


def device_failed(services: Services, use: VolumeUse, device_path: str, mount_path: str, error: BaseException) -> None:
    """OPERR-02: what a failed MountDevice makes of the device's state."""
    volume = services.actual.get_volume(use.volume)
    state = volume.device_state if volume is not None else DeviceState.NOT_MOUNTED
    owed = volume is not None and volume.device_owed
    if state is DeviceState.UNCERTAIN and is_operation_finished_error(error) and not owed:
        state = DeviceState.NOT_MOUNTED
        services.actual.set_device(use.volume, state)
    elif state is DeviceState.NOT_MOUNTED and is_uncertain_progress_error(error):
        state = DeviceState.UNCERTAIN
        services.actual.set_device(use.volume, state, device_path=device_path, device_mount_path=mount_path)
    if state is DeviceState.NOT_MOUNTED and not use.attachable:
        use.plugin.release(plugin_user(use.volume, ""))
    services.note({"v": use.volume, "dev": UNCERTAIN if state.may_be_mounted else FAILED, "err": str(error)})
