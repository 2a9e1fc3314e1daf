"""The name under which a root directory's volumes are attached and its static pods are known: the same for good.

Machines are renamed, by DHCP as well as by people. Volumes would stay attached to a node that nobody is any more, and
static pods would be others, without their data. So the name that a root directory was first used with is kept in it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from volumehost.errors import RootDirectoryError
from volumehost.hosts.layout import Layout
from volumehost.hosts.node_info import local_node_name
from volumehost.sdk.file_replacement import replace_file

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")


def node_name_problem(name: str) -> str:
    """Why a node cannot have this name, "" when it can."""
    if _NAME.fullmatch(name):
        return ""
    return "a node's name has letters, digits, '-', '_' and '.', with a letter or digit at both ends, at most 253"


def node_name_of(root_dir: str) -> str:
    """The name that the root directory has been used with, the machine's where there is none yet."""
    return _recorded(root_dir) or local_node_name()


def keep_node_name(root_dir: str, name: str, has_volumes: Callable[[], bool]) -> None:
    """Use the root directory with this name from now on; called by the one manager that has it.

    :param has_volumes: whether there are volumes, which are those of the node that the name was before.
    :raises RootDirectoryError: there are, and that was another one; or no node can have the name.
    """
    if problem := node_name_problem(name):
        raise RootDirectoryError(
            problem,
            action=f"using the root directory {root_dir} for the node {name!r}",
            subject=root_dir,
            hint="give it another name with --node-name",
        )
    recorded = _recorded(root_dir)
    if recorded == name:
        return
    if recorded and has_volumes():
        raise RootDirectoryError(
            f"there are volumes in it that were mounted, and may be attached, for the node {recorded}",
            action=f"using the root directory {root_dir} for the node {name}",
            subject=root_dir,
            hint=f"go on with --node-name {recorded}, or none; for another name unmount everything before",
        )
    try:
        replace_file(Layout(root_dir).node_name_file(), f"{name}\n".encode())
    except OSError as error:
        logger.warning("the node's name is not recorded: %s: %s", root_dir, error.strerror)


def _recorded(root_dir: str) -> str:
    path = Layout(root_dir).node_name_file()
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(1000)
    except FileNotFoundError:
        return ""
    except OSError as error:
        logger.warning("the node's name cannot be read, it is that of the machine: %s: %s", path, error.strerror)
        return ""
    name = text.removesuffix("\n")
    if name != text and _NAME.fullmatch(name):  # without its end of line it may be half of the name
        return name
    logger.warning("the node's name cannot be read, it is that of the machine: %s is damaged", path)
    return ""
