"""Validation as the API server does it, as far as volumes are concerned. Called by the embedded store on every write.

Objects must have their defaults. All problems are gathered; each names its field as Kubernetes would.
"""

from __future__ import annotations

from volumehost.api.validation.registry import validate_create, validate_update

__all__ = ["validate_create", "validate_update"]
