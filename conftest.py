"""Every test process gets a mount namespace of its own; tests marked ``root`` are skipped where that cannot be."""

from __future__ import annotations

import pytest

from volumehost.testing.namespaces import enter_private_mount_namespace, why_not_private

_reason = why_not_private()


def pytest_configure(config: pytest.Config) -> None:
    """Enter the namespace before any test, fixture or subprocess."""
    if not _reason:
        enter_private_mount_namespace()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root, with the reason."""
    if _reason:
        skip = pytest.mark.skip(reason=f"tests with real mounts: {_reason}")
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(skip)
