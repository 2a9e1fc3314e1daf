"""Validation of the sources that a node serves by itself."""

from __future__ import annotations

from collections.abc import Sequence

from volumehost.api.objects import (
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    GitRepoVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    KeyToPath,
    LocalVolumeSource,
    PersistentVolumeClaimVolumeSource,
)
from volumehost.api.validation.claim_specs import claim_template
from volumehost.api.validation.paths import descending, file_in_volume, file_mode, host_path
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.quantities import quantity
from volumehost.errors import QuantityError
from volumehost.sdk.quantity import parse_quantity

#: HOSTPATH-20 on; "" means that nothing is checked.
HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MEDIA = ("", "Memory", "HugePages")
_HUGE_PAGES_PREFIX = "HugePages-"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def host_path_source(source: HostPathVolumeSource, field: str, problems: Problems) -> None:
    """An absolute path without ``..`` and one of the known types."""
    host_path(source.path, f"{field}.path", problems)
    if source.type not in HOST_PATH_TYPES:
        problems.not_supported(f"{field}.type", source.type, HOST_PATH_TYPES)


def local_source(source: LocalVolumeSource, field: str, problems: Problems) -> None:
    """An absolute path without ``..``."""
    host_path(source.path, f"{field}.path", problems)


def empty_dir_source(source: EmptyDirVolumeSource, field: str, problems: Problems) -> None:
    """A known medium (EMPTYDIR-07) and a limit that is not negative."""
    if source.medium.startswith(_HUGE_PAGES_PREFIX):
        page_size = source.medium.removeprefix(_HUGE_PAGES_PREFIX)
        try:
            if parse_quantity(page_size).nanos <= 0:
                problems.invalid(f"{field}.medium", source.medium, "its page size must be greater than zero")
        except QuantityError as error:
            problems.invalid(f"{field}.medium", source.medium, error.reason)
    elif source.medium not in _MEDIA:
        problems.not_supported(f"{field}.medium", source.medium, (*_MEDIA, "HugePages-<size>"))
    if source.size_limit is not None:
        amount = quantity(source.size_limit, f"{field}.sizeLimit", problems)
        if amount is not None and amount.nanos < 0:
            problems.invalid(f"{field}.sizeLimit", source.size_limit, "must be greater than or equal to 0")


def git_repo_source(source: GitRepoVolumeSource, field: str, problems: Problems) -> None:
    """A repository, and a directory within the volume."""
    if not source.repository:
        problems.required(f"{field}.repository")
    descending(source.directory, f"{field}.directory", problems)


def claim_source(source: PersistentVolumeClaimVolumeSource, field: str, problems: Problems) -> None:
    """The name of a claim."""
    if not source.claim_name:
        problems.required(f"{field}.claimName")


def ephemeral_source(source: EphemeralVolumeSource, field: str, problems: Problems) -> None:
    """A template for the claim that is made."""
    if source.volume_claim_template is None:
        problems.required(f"{field}.volumeClaimTemplate")
    else:
        claim_template(source.volume_claim_template, f"{field}.volumeClaimTemplate", problems)


def image_source(source: ImageVolumeSource, field: str, problems: Problems) -> None:
    """A reference to an image."""
    if not source.reference:
        problems.required(f"{field}.reference")
    if source.pull_policy and source.pull_policy not in PULL_POLICIES:
        problems.not_supported(f"{field}.pullPolicy", source.pull_policy, PULL_POLICIES)


def key_paths(items: Sequence[KeyToPath], field: str, problems: Problems) -> None:
    """Keys of a config map or secret and the files that they become."""
    for index, item in enumerate(items):
        path = f"{field}[{index}]"
        if not item.key:
            problems.required(f"{path}.key")
        file_in_volume(item.path, f"{path}.path", problems)
        file_mode(item.mode, f"{path}.mode", problems)
