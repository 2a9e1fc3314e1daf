"""What this machine offers, read from the kernel; for the node host where no Node object tells (HOST-05)."""

from __future__ import annotations

import os
from collections.abc import Mapping

_CGROUP_ROOT = "/sys/fs/cgroup"
_HUGEPAGES = "/sys/kernel/mm/hugepages"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


def local_node_name() -> str:
    """The machine's name in the form that node names have: lower case."""
    return os.uname().nodename.lower()


def local_labels(node_name: str) -> dict[str, str]:
    """The labels that every node has."""
    kernel = os.uname()
    return {
        "kubernetes.io/hostname": node_name,
        "kubernetes.io/os": kernel.sysname.lower(),
        "kubernetes.io/arch": _ARCHITECTURES.get(kernel.machine, kernel.machine),
    }


def local_allocatable(root_dir: str) -> dict[str, int]:
    """Resource name to amount: bytes, and thousandths for ``cpu``.

    Memory is the smaller of the machine's and of the limit of the control group that this process runs in.

    :raises OSError: the kernel does not tell the machine's memory.
    """
    allocatable = {"cpu": len(os.sched_getaffinity(0)) * 1000, "memory": local_memory(), **_huge_pages()}
    try:
        filesystem = os.statvfs(root_dir)
    except OSError:
        return allocatable
    allocatable["ephemeral-storage"] = filesystem.f_blocks * filesystem.f_frsize
    return allocatable


def local_memory(meminfo: str = "/proc/meminfo") -> int:
    """Bytes of memory that this process may count on.

    :raises OSError: ``/proc/meminfo`` cannot be read or says nothing.
    """
    with open(meminfo, encoding="ascii") as file:
        for line in file:
            if line.startswith("MemTotal:"):
                total = int(line.split()[1]) * 1024
                break
        else:
            raise OSError(f"{meminfo} has no MemTotal")
    limits = [limit for limit in _cgroup_memory_limits() if 0 < limit < total]
    return min([total, *limits])


def _cgroup_memory_limits() -> list[int]:
    """Limits of the process's control group and of those above it (version 2 only; none elsewhere)."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next((line[4:].strip() for line in file if line.startswith("0::/")), None)
    except OSError:
        return []
    limits: list[int] = []
    while path is not None:
        try:
            with open(f"{_CGROUP_ROOT}/{path}/memory.max", encoding="ascii") as file:
                text = file.read().strip()
            if text.isdigit():
                limits.append(int(text))
        except OSError:
            pass
        path = os.path.dirname(path) if path.strip("/") else None
    return limits


def _huge_pages() -> Mapping[str, int]:
    """``hugepages-2Mi`` and so on: bytes reserved in huge pages of each size."""
    found: dict[str, int] = {}
    try:
        sizes = os.listdir(_HUGEPAGES)
    except OSError:
        return found
    for name in sizes:  # hugepages-2048kB
        kibibytes = name.removeprefix("hugepages-").removesuffix("kB")
        try:
            with open(f"{_HUGEPAGES}/{name}/nr_hugepages", encoding="ascii") as file:
                count = int(file.read())
            size = int(kibibytes) * 1024
        except (OSError, ValueError):
            continue
        from volumehost.sdk.quantity import Quantity

        found[f"hugepages-{Quantity.of(size)}"] = count * size
    return found
