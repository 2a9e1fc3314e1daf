"""An error in full, line by line, and what to do about it; when it happens for the journal, later for ``explain``."""

from __future__ import annotations

from collections.abc import Iterator

from volumehost.errors import (
    CorruptedMountError,
    FormatError,
    MountTimeoutError,
    PluginCallError,
    PluginError,
    PluginLookupError,
    StillMountedError,
    StorageDriverError,
    StorageDriverUnavailableError,
    UnmountError,
    UnmountTimeoutError,
    VolumeHostError,
    error_chain,
)

#: What can be done about what a storage driver answered, by the code of its answer.
_BY_CODE = {
    "PERMISSION_DENIED": "{driver} refuses: look at the credentials that it is given (the secrets that the storage "
    "class or the persistent volume names), and at what they allow",
    "UNAUTHENTICATED": "{driver} does not accept the credentials: look at the secrets that the storage class or the "
    "persistent volume names",
    "NOT_FOUND": "{driver} does not know the volume: look at the volumeHandle of the persistent volume, and at the "
    "storage itself",
    "INVALID_ARGUMENT": "{driver} does not accept what it is asked: look at the parameters of the storage class, the "
    "volumeAttributes and the mount options",
    "FAILED_PRECONDITION": "the volume is in another state than {driver} expects: it may be in use elsewhere",
    "ALREADY_EXISTS": "{driver} has another volume of that name: look at the storage itself",
    "OUT_OF_RANGE": "{driver} cannot do that size: ask for another",
    "RESOURCE_EXHAUSTED": "the storage of {driver} is at a limit: make room, or ask for less",
    "UNAVAILABLE": "{driver} or its storage does not answer: see 'volumehost drivers show {driver}'",
    "DEADLINE_EXCEEDED": "{driver} takes too long: see 'volumehost drivers logs {driver}'",
    "UNIMPLEMENTED": "{driver} does not do that: see what it can do with 'volumehost drivers show {driver}'",
}
_LOGS = "see what the driver says: 'volumehost drivers logs {driver}', or the log of whoever else starts it"

#: What nobody raised on purpose.
_DEFECT = "this is a defect of volumehost or of a plugin; its log, with -vv, has where it happened"

#: Links of the chain that are told, at most: a plugin may have built an endless one.
_LINKS = 12


def error_lines(error: BaseException | None) -> list[str]:
    """What failed and what each error came from, a line each; nothing twice."""
    lines: list[str] = []
    for number, link in enumerate(error_chain(error)):
        if number == _LINKS:
            lines.append("and more")
            break
        text = _text(link)
        if any(text in line for line in lines):
            continue
        kind = type(link).__name__
        shown = text if isinstance(link, VolumeHostError) or text == kind else f"{kind}: {text}"
        first, *rest = shown.splitlines() or [type(link).__name__]
        lines.append(first if not number else f"caused by: {first}")
        lines += [f"  {line.strip()}" for line in rest if line.strip()]
    return lines


def advice_for(error: BaseException | None) -> list[str]:
    """What to do about it: the hints of the errors in the chain, else what follows from their kinds."""
    found: dict[str, None] = {}
    for link in error_chain(error):
        if isinstance(link, VolumeHostError) and link.hint:
            found[link.hint] = None
    if not found:
        found.update(dict.fromkeys(_by_kind(error)))
    if error is not None and not isinstance(error, VolumeHostError):
        found[_DEFECT] = None
    return list(found)


def _text(error: BaseException) -> str:
    try:
        return str(error).strip() or type(error).__name__
    except Exception:  # noqa: BLE001 - a plugin's error may not even have words
        return type(error).__name__


def _by_kind(error: BaseException | None) -> Iterator[str]:
    """The deepest error that says something decides."""
    for link in reversed(list(error_chain(error))):
        words = _words_for(link)
        if words:
            yield from words
            return


def _words_for(error: BaseException) -> list[str]:
    match error:
        case StorageDriverUnavailableError():
            return [
                f"see whether driver {error.driver} is there: 'volumehost drivers list'",
                "pip installs drivers; 'volumehost drivers register' takes one that runs elsewhere",
            ]
        case StorageDriverError():
            words = [_BY_CODE[error.code].format(driver=error.driver)] if error.code in _BY_CODE else []
            return [*words, _LOGS.format(driver=error.driver)] if error.driver else words
        case PluginCallError() | PluginError():
            origin = f" of {error.distribution} {error.version}".rstrip() if error.distribution else ""
            return [f"this is a defect of plugin {error.plugin}{origin}; 'volumehost plugins check' looks closer"]
        case PluginLookupError():
            return ["'volumehost plugins list' shows which plugins there are; pip installs more"]
        case FormatError():
            return ["look at the device with fsck and blkid before anything is written to it"]
        case MountTimeoutError() | UnmountTimeoutError():
            return ["whatever serves the filesystem does not answer: see to that first"]
        case StillMountedError() | UnmountError():
            return ["end what still uses the mount; then it is unmounted by itself"]
        case CorruptedMountError():
            return ["what served the mount is gone: see whether its server or daemon runs"]
        case MemoryError():
            return ["the process has no memory left"]
    return []
