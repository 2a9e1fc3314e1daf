"""What a controller daemon is made with; ``volumehost controller`` fills it in from its options."""

from __future__ import annotations

import difflib
import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from volumehost.control.attach_detach.world import MAX_WAIT_FOR_UNMOUNT
from volumehost.control.cluster import CONTROLLERS, SIDECARS
from volumehost.controller.leader_election import LeaseSettings

LEASE_NAMESPACE: Final = "kube-system"
LEASE_NAME: Final = "volumehost-controller"
#: How long the end waits for what is under way, in seconds.
GRACE_SECONDS: Final = 20.0

#: What runs unless something else is asked for: all but those that do a sidecar's work.
DEFAULT_CONTROLLERS: Final = frozenset(CONTROLLERS) - SIDECARS


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What the daemon does. Times in seconds.

    :param controllers: names of :data:`volumehost.control.cluster.CONTROLLERS`.
    :param drivers: CSI drivers for which the sidecars' controllers run, to their endpoints (``unix:///csi/csi.sock``).
    :param lease: by which the leader is elected; None for none: then no second one may run. Without a namespace it is
        in that of the own pod, or in kube-system outside of a cluster.
    :param http: ``ADDRESS:PORT`` where health and metrics are served, None for nowhere.
    :param root_dir: where the plugins' configuration is.
    :param max_wait_for_unmount: after which a volume is taken from an unhealthy node that still uses it; None: never.
    """

    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool = False
    controllers: frozenset[str] = DEFAULT_CONTROLLERS
    drivers: tuple[tuple[str, str], ...] = ()
    lease: LeaseSettings | None = field(default_factory=lambda: LeaseSettings("", LEASE_NAME, identity()))
    http: str | None = None
    grace: float = GRACE_SECONDS
    root_dir: str = "/var/lib/volumehost"
    max_wait_for_unmount: float | None = MAX_WAIT_FOR_UNMOUNT


def identity() -> str:
    """A name that no other process has, and by which people know this one."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


def chosen_controllers(words: Iterable[str], *, sidecars: bool = False) -> frozenset[str]:
    """What ``--controllers`` asks for: names turn on, ``-name`` turns off, ``*`` is what is on by default.

    With nothing but words that turn off, the others are those that are on by default.

    :param sidecars: those that do a sidecar's work are on by default too.
    :raises ValueError: a name is not known; suggests the nearest.
    """
    words = [word.strip() for word in words if word.strip()]
    for word in words:
        name = word.removeprefix("-")
        if name != "*" and name not in CONTROLLERS:
            near = difflib.get_close_matches(name, CONTROLLERS, n=1)
            suggestion = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"unknown controller {name!r}; {suggestion}known are {', '.join(CONTROLLERS)}")
    chosen: set[str] = set()
    if "*" in words or all(word.startswith("-") for word in words):
        chosen |= frozenset(CONTROLLERS) if sidecars else DEFAULT_CONTROLLERS
    chosen |= {word for word in words if word in CONTROLLERS}
    return frozenset(chosen - {word.removeprefix("-") for word in words if word.startswith("-")})
