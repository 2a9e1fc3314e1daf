"""Mount options of a PersistentVolume, for plugins that pass them on (UTIL-04, UTIL-05)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from volumehost.mount.mountinfo import split_options

if TYPE_CHECKING:
    from volumehost.spec import Spec

#: Annotation of a PersistentVolume that wins over ``spec.mountOptions``.
MOUNT_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"


def mount_options_from_spec(spec: Spec, *own_options: str) -> list[str]:
    """The options to mount a spec with: the user's, then the plugin's own.

    A pod's own volume has no user options. The annotation, when present, replaces ``spec.mountOptions``.
    """
    persistent_volume = spec.persistent_volume
    if persistent_volume is None:
        return list(own_options)
    annotations = persistent_volume.metadata.annotations or {}
    if MOUNT_OPTIONS_ANNOTATION in annotations:
        return join_mount_options(split_options(annotations[MOUNT_OPTIONS_ANNOTATION], escaped=False), own_options)
    if persistent_volume.spec.mount_options:
        return join_mount_options(persistent_volume.spec.mount_options, own_options)
    return list(own_options)


def join_mount_options(user_options: Iterable[str], own_options: Iterable[str]) -> list[str]:
    """Both lists in order, without empty user options and without duplicates.

    ``mount(8)`` lets the last of contradicting options win, so of duplicates the last is kept, and a plugin's ``ro``
    beats a user's ``rw``. (UTIL-05, improved: the order is kept instead of sorted.)
    """
    wanted = [option for option in user_options if option]
    wanted.extend(own_options)
    last_first = dict.fromkeys(reversed(wanted))
    return list(reversed(last_first))
