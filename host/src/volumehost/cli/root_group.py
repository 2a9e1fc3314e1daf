"""The program's group: its table of commands, its options, its help. ``volumehost.cli.main`` runs it.

Nothing but click is imported here: each command's module loads when that command runs.
"""

from __future__ import annotations

from volumehost.cli.command import LazyGroup
from volumehost.cli.options import group_options

PROGRAM = "volumehost"

#: Every command: where it is, and its line in ``--help`` (a test holds it against the command's own).
COMMANDS = {
    "mount": ("volumehost.cli.mount:mount", "Mount every volume of a pod and print where."),
    "unmount": ("volumehost.cli.unmount:unmount", "Unmount the volumes of a pod, to the last directory."),
    "status": ("volumehost.cli.status:status", "Show pods, their volumes, and what is being done about them."),
    "explain": ("volumehost.cli.explain:explain", "Explain why the volumes of a pod are not mounted, or not gone."),
    "plan": ("volumehost.cli.plan:plan", "Show what would be done to mount the volumes of a pod, without doing it."),
    "export": ("volumehost.cli.export:export", "Print what containers get of a mounted pod's volumes, for a runtime."),
    "inspect": (
        "volumehost.cli.inspect:inspect",
        "Show what lies under a root directory, a kubelet's too: mounts, their pods, and what is wrong.",
    ),
    "repair": (
        "volumehost.cli.repair:repair",
        "Clean up what 'volumehost inspect' finds: a dry run, unless --apply is given.",
    ),
    "apply": ("volumehost.cli.apply:apply", "Create or update objects from manifests."),
    "get": ("volumehost.cli.get:get", "List objects of a kind, or one of them."),
    "describe": ("volumehost.cli.describe:describe", "Show one object in full, with its events."),
    "delete": ("volumehost.cli.delete:delete", "Delete objects by name or by manifest."),
    "agent": ("volumehost.cli.agent:agent", "Keep the volumes of all pods of this node mounted, until SIGTERM."),
    "controller": (
        "volumehost.cli.controller:controller",
        "Attach, bind, provision, expand and reclaim the volumes of a cluster, until SIGTERM.",
    ),
    "rbac": ("volumehost.cli.rbac:rbac", "Print what a daemon may do in a cluster, as RBAC manifests."),
    "expand": ("volumehost.cli.expand:expand", "Give a claim's volume a larger size."),
    "snapshot": ("volumehost.cli.snapshot:snapshot", "Take snapshots of volumes, and make volumes of them."),
    "plugins": ("volumehost.cli.plugins:plugins", "Show and check the installed volume plugins."),
    "drivers": ("volumehost.cli.drivers:drivers", "Show and register storage drivers (CSI)."),
    "demo": ("volumehost.cli.demo:demo", "Mount a pod's volumes for real, use them, and clean up."),
    "completion": ("volumehost.cli.completion:completion", "Print the completion script of a shell."),
    "version": ("volumehost.cli.version:version", "Print the version."),
}

program = LazyGroup(
    PROGRAM,
    table=COMMANDS,
    params=group_options(),
    help="""Kubernetes volumes on this machine, with or without a cluster.

Volume plugins come from PyPI; a pod manifest's volumes become real mounts.

Exit codes: 0 done, 1 the operation failed, 2 usage, 3 not found, 4 timed out, 130 interrupted.""",
    examples=(
        ("Mount the volumes of a pod, see them, take them away", "volumehost mount -f pod.yaml"),
        ("", "volumehost status"),
        ("", "volumehost unmount web"),
    ),
)


def complete(instruction: str) -> int:
    """Answer the completion script of a shell, which asks for ``instruction``; returns the exit code."""
    from click.shell_completion import shell_complete

    from volumehost.cli import COMPLETE_VARIABLE

    return shell_complete(program, {}, PROGRAM, COMPLETE_VARIABLE, instruction)
