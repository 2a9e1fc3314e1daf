"""The systemd unit of the agent, with the paths of this installation; ``volumehost agent --print-unit`` prints it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from volumehost.agent.settings import AgentSettings

#: How much longer systemd waits for the end than the agent takes at most, in seconds.
_SPARE_SECONDS: Final = 15

_WATCHDOG_SECONDS: Final = 120

_TEMPLATE: Final = """\
[Unit]
Description=Volumes of this node's pods (volumehost)
Documentation=man:systemd.service(5)
# Started before what runs containers and ended after it, so that what they use is there for as long as they are.
After=local-fs.target remote-fs-pre.target network-online.target iscsid.service multipathd.service
Before=crio.service containerd.service docker.service podman.service machines.target
RequiresMountsFor={root_dir}

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
# Only the agent itself is ended: storage drivers and FUSE helpers go on serving what is mounted.
KillMode=process
TimeoutStartSec=180
TimeoutStopSec={stop_seconds}
WatchdogSec={watchdog_seconds}
# It mounts for everybody. PrivateTmp=, ProtectSystem= and their like would give it a mount namespace of its own.
PrivateMounts=no
OOMScoreAdjust=-900
LimitNOFILE=65536
TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""


def unit_text(settings: AgentSettings, verbosity: int = 0) -> str:
    """The unit for an agent with these settings."""
    return _TEMPLATE.format(
        root_dir=_quoted(settings.root_dir),
        command=" ".join(map(_quoted, _command(settings, verbosity))),
        stop_seconds=int(settings.longest_end) + _SPARE_SECONDS,
        watchdog_seconds=_WATCHDOG_SECONDS,
    )


def _command(settings: AgentSettings, verbosity: int) -> list[str]:
    command = [*_program(), "agent", "--root-dir", settings.root_dir, f"--grace={settings.grace:g}s"]
    if settings.node_name is not None:
        command.append(f"--node-name={settings.node_name}")
    if settings.kubeconfig is not None:
        command.append(f"--kubeconfig={settings.kubeconfig}")
    if settings.context is not None:
        command.append(f"--context={settings.context}")
    if settings.in_cluster:
        command.append("--in-cluster")
    if settings.static_pods is not None:
        command.append(f"--static-pods={settings.static_pods}")
    if settings.http is not None:
        command.append(f"--http={settings.http}")
    if settings.drain:
        command += ["--drain", f"--drain-timeout={settings.drain_timeout:g}s"]
    return [*command, "-" + "v" * max(1, verbosity)]


def _program() -> list[str]:
    """How this installation is started."""
    beside = os.path.join(os.path.dirname(sys.executable), "volumehost")
    found = beside if os.access(beside, os.X_OK) else shutil.which("volumehost")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "volumehost"]


def _quoted(text: str) -> str:
    """The text as one word of a unit file: its specifiers and variables are not to be expanded."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if not text or any(letter in text for letter in " \t'\"\\;") else text
