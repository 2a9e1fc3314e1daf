"""What containers of the tests are made of: this machine's own programs, and a shell that runs a script."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any


def host_system() -> tuple[list[tuple[str, str]], list[str]]:
    """What a container takes over from this machine to run a shell: (link, where it leads), and directories."""
    links, directories = [], []
    for name in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink(f"/{name}"):
            links.append((name, os.readlink(f"/{name}")))
        elif os.path.isdir(f"/{name}"):
            directories.append(f"/{name}")
    return links, [*directories, "/usr"]


def shell(script: str) -> list[str]:
    return ["/bin/bash", "-c", script]


def base_config(arguments: Sequence[str]) -> dict[str, Any]:
    """A container that is no more than a shell, like one that ``crun spec`` writes."""
    _, directories = host_system()
    return {
        "ociVersion": "1.0.0",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(arguments),
            "env": ["PATH=/usr/bin:/bin:/usr/sbin:/sbin"],
            "cwd": "/",
            "capabilities": {
                kind: ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SYS_ADMIN"]
                for kind in ("bounding", "effective", "permitted")
            },
        },
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            *(
                {"destination": each, "type": "bind", "source": each, "options": ["rbind", "ro"]}
                for each in directories
            ),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }
