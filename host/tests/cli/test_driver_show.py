"""The text of ``drivers show``."""

from __future__ import annotations

from volumehost.cli.driver_report import as_data
from volumehost.cli.driver_show import _text
from volumehost.storage_driver import DriverOrigin, DriverState, DriverStatus


def test_warnings_of_a_driver_that_works_are_shown():
    """CSI-NIM-12."""
    quiet = DriverStatus("csi.example.com", DriverOrigin.SOCKET, DriverState.READY)
    assert "Warning" not in _text(quiet)
    warned = DriverStatus("csi.example.com", DriverOrigin.SOCKET, DriverState.READY, warnings=("left labels", "slow"))
    assert "left labels; slow" in _text(warned)
    assert as_data(warned)["warnings"] == ["left labels", "slow"]
