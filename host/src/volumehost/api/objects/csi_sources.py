"""Volume sources that a driver outside of Kubernetes serves: CSI and FlexVolume."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import ClassVar

from volumehost.api.objects.base import ApiStruct
from volumehost.api.objects.meta import LocalObjectReference, SecretReference


class CSIVolumeSource(ApiStruct):
    """An ephemeral volume of a CSI driver, described in the pod."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"volume_attributes"})

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}
    node_publish_secret_ref: LocalObjectReference | None = None


class CSIPersistentVolumeSource(ApiStruct):
    """A volume of a CSI driver, by its handle."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"volume_attributes"})

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}
    controller_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    controller_expand_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class FlexVolumeSource(ApiStruct):
    """A volume of a FlexVolume driver, described in the pod."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"options"})

    driver: str = ""
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}


class FlexPersistentVolumeSource(ApiStruct):
    """A persistent volume of a FlexVolume driver."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"options"})

    driver: str = ""
    fs_type: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}
