"""What a registration says, checked before anything is done with it (CSI-REG-01 improved, CSI-NAME-12, -14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from volumehost.errors import SpecError, StorageDriverError, StorageDriverUnavailableError
from volumehost_csi.names import check_driver_name, shorten
from volumehost_csi.registration.protocol import describe, why_no_socket
from volumehost_csi.registration.versions import Version, highest_supported


class DriverNameTakenError(StorageDriverError):
    """Another driver is registered under the name (CSI-REG-06); once it has left, the name is free."""


def check_name(name: str) -> None:
    """Refuse a name that no CSIDriver, CSINode or path could carry.

    :raises StorageDriverError: it breaks the rules of CSI or of the Kubernetes API.
    """
    try:
        check_driver_name(name)
    except SpecError as error:
        _refuse(name, error.reason, hint=error.hint)
    if not all(label and label[0].isalnum() and label[-1].isalnum() for label in name.split(".")):
        _refuse(
            name,
            f"{name!r} is not the name of a CSI driver: a part of it between dots is empty or begins or ends with '-'",
            hint="name the driver like a domain, for example csi.example.com",
        )


def check_endpoint(name: str, endpoint: str) -> str:
    """The absolute path of the driver's socket, which lies there and can be connected to (CSI-RGR-08).

    :raises StorageDriverError: the endpoint can never be used.
    :raises StorageDriverUnavailableError: there is no socket at the moment.
    """
    from volumehost_csi_kit import endpoints

    try:
        path = endpoints.socket_path(endpoint)
        with endpoints.reachable(path):
            pass
    except endpoints.EndpointError as error:
        _refuse(name, describe(error))
    why = why_no_socket(path)
    if why:
        raise StorageDriverUnavailableError(
            f"nothing serves at its endpoint {path}: {why}",
            driver=name,
            action=_action(name),
            hint="start the driver, or register it with the path that its socket has on this host",
        )
    return path


def check_versions(name: str, versions: Sequence[str]) -> Version:
    """The version to use (CSI-REG-02 to -04).

    :raises StorageDriverError: there is none.
    """
    try:
        return highest_supported(versions)
    except ValueError as error:
        _refuse(name, str(error))


def _refuse(name: str, reason: str, hint: str = "") -> NoReturn:
    raise StorageDriverError(reason, driver=shorten(name), action=_action(name), hint=hint)


def _action(name: str) -> str:
    return f"registering the CSI driver {shorten(name)}"
