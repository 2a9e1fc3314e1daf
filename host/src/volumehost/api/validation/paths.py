"""Paths in manifests: what a path of the host, of a container and within a volume may look like."""

from __future__ import annotations

from volumehost.api.validation.problems import Problems

#: The kernel takes no longer path.
_MAX_PATH_BYTES = 4095


def no_backsteps(path: str, field: str, problems: Problems) -> bool:
    """Refuse a component ``..``; ``..data`` is fine (UTIL-23). Whether the path is good."""
    if ".." in path.split("/"):
        problems.invalid(field, path, "must not contain '..'")
        return False
    return usable(path, field, problems)


def usable(path: str, field: str, problems: Problems) -> bool:
    """Refuse what the kernel would: NUL bytes and paths without end."""
    if "\0" in path:
        problems.invalid(field, path, "must not contain a NUL character")
        return False
    if len(path.encode()) > _MAX_PATH_BYTES:
        problems.too_long(field, _MAX_PATH_BYTES)
        return False
    return True


def host_path(path: str, field: str, problems: Problems) -> None:
    """A path of the host: given, absolute, without ``..``."""
    if not path:
        problems.required(field)
    elif not path.startswith("/"):
        problems.invalid(field, path, "must be an absolute path")
    else:
        no_backsteps(path, field, problems)


def descending(path: str, field: str, problems: Problems) -> None:
    """A path within something: relative, without ``..``."""
    if path.startswith("/"):
        problems.invalid(field, path, "must be a relative path")
    no_backsteps(path, field, problems)


def file_in_volume(path: str, field: str, problems: Problems) -> None:
    """A file that is written into a volume: given, relative, not one of the names that the writer itself uses."""
    if not path:
        problems.required(field)
        return
    descending(path, field, problems)
    if path.startswith("..") and not path.startswith("../") and path != "..":
        problems.invalid(field, path, "must not start with '..'")


def file_mode(mode: int | None, field: str, problems: Problems) -> None:
    """Permission bits."""
    if mode is not None and not 0 <= mode <= 0o777:
        problems.invalid(field, mode, "must be between 0 and 0777 (octal), both inclusive")
