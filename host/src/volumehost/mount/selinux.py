"""Whether the kernel has SELinux on, and from a container's SELinux options to the label of its files (SEL-01)."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Final

from volumehost.errors import SELinuxLabelError

if TYPE_CHECKING:
    from volumehost.api.objects import SELinuxOptions

_PART: Final = re.compile(r"[A-Za-z0-9_.-]+")
_LEVEL: Final = re.compile(r"s[0-9]+(-s[0-9]+)?(:c[0-9]+([.,]c[0-9]+)*)?(-s[0-9]+(:c[0-9]+([.,]c[0-9]+)*)?)?")


class SELinux:
    """SELinux of the machine.

    :param filesystem: where the kernel shows that it is on.
    :param configuration: where the system's policy is configured.
    """

    def __init__(self, filesystem: str = "/sys/fs/selinux", configuration: str = "/etc/selinux") -> None:
        self._filesystem = filesystem
        self._configuration = configuration

    def enabled(self) -> bool:
        """Whether the kernel has it on; an empty directory is only the place for its filesystem."""
        try:
            with os.scandir(self._filesystem) as entries:
                return next(entries, None) is not None
        except OSError:
            return False

    def file_label(self, options: SELinuxOptions) -> str:
        """The label of files that a container with these options may use, "" where there is none to be had.

        User and level are the container's; role and type of files are the policy's, whatever those of the process are.
        Without a level there is no label: the runtime then chooses one that nobody else knows.

        :raises SELinuxLabelError: an option is no part of a label, or the kernel's policy does not know the label.
        """
        if not options.level or not self.enabled():
            return ""
        _check(options)
        known = self._default_file_label()
        if not known:
            return ""
        user, role, kind, *_ = known.split(":", 3)
        label = f"{options.user or user}:{role}:{kind}:{options.level}"
        self._ask_kernel(label)
        return label

    def _default_file_label(self) -> str:
        """What the policy gives files of containers, "" when it says nothing about containers."""
        policy = _setting(f"{self._configuration}/config", "SELINUXTYPE") or "targeted"
        label = _setting(f"{self._configuration}/{os.path.basename(policy)}/contexts/lxc_contexts", "file")
        if label and label.count(":") < 2:
            raise SELinuxLabelError(f"the policy {policy} gives files of containers the label {label!r}, which is none")
        return label

    def _ask_kernel(self, label: str) -> None:
        try:
            descriptor = os.open(f"{self._filesystem}/context", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return  # this kernel cannot be asked; the mount will tell
        try:
            os.write(descriptor, label.encode())
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise SELinuxLabelError(
                    f"the system's policy does not know the SELinux label {label}", action="making a label for files",
                    subject=label, hint="mend seLinuxOptions of the pod",
                ) from error  # fmt: skip
        finally:
            os.close(descriptor)


def _check(options: SELinuxOptions) -> None:
    for name, value, pattern in (("user", options.user, _PART), ("role", options.role, _PART),
                                 ("type", options.type, _PART), ("level", options.level, _LEVEL)):  # fmt: skip
        if value and not pattern.fullmatch(value):
            raise SELinuxLabelError(
                f"{value!r} is no SELinux {name}", action="making a label for files", subject=value,
                hint="mend seLinuxOptions of the pod",
            )  # fmt: skip


def _setting(path: str, name: str) -> str:
    """The value of ``name = value`` in a file of such lines, quotes stripped; "" when it does not say."""
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition("=")
                if key.strip() == name:
                    return value.strip().strip('"')
    except OSError:
        return ""
    return ""
