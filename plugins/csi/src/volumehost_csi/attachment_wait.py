"""Waiting until a VolumeAttachment is attached, or gone: by the API's watch, with a deadline (CSI-ATT-05 to -15)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from volumehost.errors import GoneError, ObjectNotFoundError, StorageDriverUncertainError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import VolumeAttachment, VolumeError

#: How often, in seconds, a wait looks whether it is still wanted.
_LOOK_SECONDS: Final = 1.0

_CODES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip


def wait_until_attached(
    api: ApiClient, attachment: VolumeAttachment, *, driver: str, timeout: float, unneeded: Callable[[], bool]
) -> bool:
    """Wait until its status says attached; False when it turns out that nothing needs to be attached.

    :param attachment: the object as it was last seen.
    :param timeout: seconds.
    :param unneeded: asked about once a second.
    :raises StorageDriverUncertainError: attaching failed, the object is being deleted or gone, or time is over.
    """
    wait = _Wait(attachment, "attaching", driver, "ControllerPublishVolume")
    for change, state in _changes(api, attachment, timeout):
        if change == "DELETED":
            raise wait.failed("the VolumeAttachment was deleted")
        if state is None:
            if unneeded():
                return False
            continue
        if state.metadata.deletion_timestamp is not None:
            raise wait.failed("the VolumeAttachment is being deleted")
        if state.status.attached:
            return True
        wait.check(state.status.attach_error)
    raise wait.failed(f"it did not come about within {timeout:g} seconds{wait.ignored}")


def wait_until_gone(api: ApiClient, attachment: VolumeAttachment, *, driver: str, timeout: float) -> None:
    """Wait until the object, whose deletion was asked for, does not exist any more.

    :raises StorageDriverUncertainError: detaching failed, or time is over.
    """
    wait = _Wait(attachment, "detaching", driver, "ControllerUnpublishVolume")
    if not attachment.metadata.finalizers and _find(api, attachment) is None:
        return
    for change, state in _changes(api, attachment, timeout):
        if change == "DELETED":
            return
        if state is not None:
            wait.check(state.status.detach_error)
    raise wait.failed(f"it did not end within {timeout:g} seconds{wait.ignored}")


class _Wait:
    """One wait: what it says when it fails, and which errors are not of its own time (CSI-ATT-08, improved)."""

    def __init__(self, attachment: VolumeAttachment, doing: str, driver: str, call: str) -> None:
        self._name, self._driver, self._call = attachment.metadata.name, driver, call
        self._action = f"{doing} with the VolumeAttachment {self._name}"
        self._began = math.floor(time.time())  # the API's times have whole seconds
        self.ignored = ""

    def check(self, error: VolumeError | None) -> None:
        """Fail with the attacher's error, unless it is older than this wait."""
        if error is None:
            return
        told = _seconds(error.time)
        if told is not None and told < self._began:
            self.ignored = f"; before, its attacher had failed with: {error.message}"
            return
        raise attachment_failed(error, self._driver, self._call, self._action, self._name)

    def failed(self, reason: str) -> StorageDriverUncertainError:
        return StorageDriverUncertainError(
            reason,
            driver=self._driver,
            call=self._call,
            action=self._action,
            subject=self._name,
            hint=f"its attacher keeps trying; see: volumehost describe volumeattachment {self._name}",
        )


def attachment_failed(
    error: VolumeError, driver: str, call: str, action: str, name: str
) -> StorageDriverUncertainError:
    """The attacher's error; uncertain, since the object stays and the attacher goes on by itself (CSI-ATT-09)."""
    number = error.error_code
    code = _CODES[number] if number is not None and 0 <= number < len(_CODES) else ""
    return StorageDriverUncertainError(
        error.message or "its attacher reported an error without a message",
        driver=driver,
        call=call,
        code=code,
        driver_message=error.message,
        action=action,
        subject=name,
        hint="its attacher keeps trying",
    )


def _changes(
    api: ApiClient, attachment: VolumeAttachment, timeout: float
) -> Iterator[tuple[str, VolumeAttachment | None]]:
    """The object as it is, then each change of it, until time is over; ("", None) about every second."""
    from volumehost.api.objects import VolumeAttachment

    deadline = time.monotonic() + timeout
    name, version = attachment.metadata.name, attachment.metadata.resource_version
    yield "ADDED", attachment
    while (left := deadline - time.monotonic()) > 0:
        try:
            for event in api.watch(VolumeAttachment, resource_version=version, timeout=min(left, _LOOK_SECONDS)):
                version = event.object.metadata.resource_version
                if event.type != "BOOKMARK" and event.object.metadata.name == name:
                    yield event.type, event.object
        except GoneError:
            listed = api.list(VolumeAttachment)
            version = listed.resource_version
            found = next((each for each in listed.items if each.metadata.name == name), None)
            yield ("MODIFIED", found) if found is not None else ("DELETED", None)
        yield "", None


def _find(api: ApiClient, attachment: VolumeAttachment) -> VolumeAttachment | None:
    """The object as it is now; None when it, and not merely one of its name, is gone."""
    try:
        found = api.get(type(attachment), attachment.metadata.name)
    except ObjectNotFoundError:
        return None
    return found if found.metadata.uid == attachment.metadata.uid else None


def _seconds(text: str | None) -> float | None:
    """Seconds since the epoch of an RFC 3339 time, None when it is none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
