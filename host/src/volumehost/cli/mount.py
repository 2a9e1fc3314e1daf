"""``volumehost mount``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from volumehost.cli.api_choice import refuse_cluster
from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.managing import at_work, timeout_option, volume_manager
from volumehost.cli.objects import NameType, read_manifests, reference
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_names import choose_pod, looking_for
from volumehost.cli.pod_report import pod_data, pod_label, volume_table
from volumehost.cli.progress import progress
from volumehost.errors import (
    FailedPreconditionError,
    InvalidObjectError,
    VolumeHostError,
    VolumesFailedError,
    WaitTimeoutError,
)

if TYPE_CHECKING:
    from volumehost.api.manifests import Manifest
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.node.pod_manager import PodManager
    from volumehost.node.status.records import PodStatus

#: How often a volume is tried before the command gives up on it: what fails once may be busy, what fails thrice is not.
ATTEMPTS = 3


@click.command(
    cls=Command,
    examples=(
        ("Mount what a manifest asks for", "volumehost mount -f pod.yaml"),
        ("From standard input, with a limit", "cat pod.yaml | volumehost mount -f - --timeout 30s"),
        ("A pod that was applied, or mounted before", "volumehost mount web"),
        ("For a program", "volumehost mount -f pod.yaml -o json"),
    ),
)
@click.argument("pod", metavar="[POD]", required=False, type=NameType(), shell_complete=pod_names)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Manifest to apply first: a file, a directory, or -; may be given more than once.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until every volume is mounted.  [default: wait]")
@timeout_option("How long to wait.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def mount(settings: Settings, pod: str | None, filenames: tuple[str, ...], *, wait: bool, timeout: float) -> None:
    """Mount every volume of a pod and print where.

    Applies the manifests and mounts the volumes of their pods, or of POD alone. A pod that is mounted already is left
    as it is, so the command can be repeated. When a volume fails the others are mounted all the same, and the exit
    code is 1. Mounts stay when the command ends; "volumehost unmount" takes them away.
    """
    refuse_cluster(settings, "mounting", "apply the pod, with spec.nodeName or a scheduler: its node's agent mounts it")
    if pod is None and not filenames:
        raise click.UsageError("name a POD, or give manifests with -f")
    name = choose_pod(settings, pod) if pod is not None else None
    manifests = _read(settings, filenames, name)
    deadline = time.monotonic() + timeout
    with looking_for(settings, name), volume_manager(settings, timeout) as entered:
        manager = at_work(entered)
        pods, errors = _store(manager, manifests, name, settings.namespace)
        for each in pods:
            manager.sync_pod(each)
        if wait:
            errors += _wait(manager, pods, deadline, settings.verbosity)
        statuses = [manager.pod_status(each) for each in pods]
    if pods or not errors:
        _print(settings, statuses)
    if errors:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("pods could not be mounted", errors)


def _read(settings: Settings, filenames: Sequence[str], name: str | None) -> list[Manifest]:
    try:
        manifests = read_manifests(filenames, settings)
    except Exception as error:
        error.add_note("nothing was applied or mounted")
        raise
    if name is None and not any(manifest.kind.kind == "Pod" for manifest in manifests):
        raise click.UsageError("the manifests hold no pod; 'volumehost apply' takes other objects")
    return manifests


def _store(
    manager: PodManager, manifests: Sequence[Manifest], name: str | None, namespace: str
) -> tuple[list[Pod], list[Exception]]:
    """Put what the manifests hold into the API, pods last: the pods to be mounted, and the errors of what failed."""
    from volumehost.api.apply import apply_object
    from volumehost.api.objects import Pod
    from volumehost.hosts.node_name import node_name_of
    from volumehost.node.populating.pod_objects import apply_pod, keep_pod

    node = node_name_of(manager.root_dir)
    pods: list[Pod] = []
    errors: list[Exception] = []
    for manifest in sorted(manifests, key=lambda each: each.kind.kind == "Pod"):
        metadata = manifest.obj.metadata
        try:
            if manifest.kind.kind != "Pod":
                outcome = apply_object(manager.api, manifest.kind.struct, manifest.document).outcome
                click.echo(f"{reference(manifest.kind, metadata.name)} {outcome}", err=True)
            elif name is None or (metadata.name, metadata.namespace) == (name, namespace):
                _refuse_elsewhere(manifest.obj, node)
                pods.append(apply_pod(manager.api, manifest.document))
        except InvalidObjectError as error:
            errors.append(manifest.explain(error))
        except VolumeHostError as error:
            errors.append(error)
    if name is not None and not pods and not errors:
        _refuse_elsewhere(manager.api.get(Pod, name, namespace), node)
        pods.append(keep_pod(manager.api, name, namespace))
    return pods, errors


def _refuse_elsewhere(pod: KubeObject, node: str) -> None:
    """An agent would not mount such a pod again after a reboot, and ``plan`` says so too."""
    from volumehost.api.objects import Pod

    if isinstance(pod, Pod) and pod.spec.node_name not in {"", node}:
        raise FailedPreconditionError(
            f"it is for node {pod.spec.node_name}, and this is {node}",
            action=f"mounting pod {pod.metadata.namespace}/{pod.metadata.name}",
            subject=pod.metadata.name,
            hint="mount it there, or leave spec.nodeName out of the manifest",
        )


def _wait(manager: PodManager, pods: Sequence[Pod], deadline: float, verbosity: int) -> list[Exception]:
    """Wait for each pod; the errors of those whose volumes are not all mounted."""
    errors: list[Exception] = []

    def lines() -> list[str]:
        statuses = [manager.pod_status(pod) for pod in pods]
        waiting = [
            f"  {pod_label(status)} {volume.volume}: {volume.state} {volume.step or volume.error}".rstrip()
            for status in statuses
            for volume in status.volumes
            if not volume.ready and volume.state != "unused"
        ]
        return [f"mounting {', '.join(map(pod_label, statuses))}", *waiting]

    with progress(lines, verbosity=verbosity):
        for pod in pods:
            try:
                manager.wait_for_pod(pod, timeout=max(0.0, deadline - time.monotonic()), attempts=ATTEMPTS)
            except VolumeHostError as error:
                if isinstance(error, VolumesFailedError | WaitTimeoutError):
                    error.hint = _hint(manager, pod)
                errors.append(error)
    return errors


def _hint(manager: PodManager, pod: Pod) -> str:
    """What to do about a pod of which some volumes are not mounted."""
    from volumehost.api.mirrors import is_mirror
    from volumehost.node.explaining.facts import argument_of

    of_pod = argument_of(f"{pod.metadata.namespace}/{pod.metadata.name}")
    ready = any(volume.ready for volume in manager.pod_status(pod).volumes)
    words = ["the other volumes are mounted"] * ready
    if manager.stays_at_work:
        words.append("the agent goes on trying")
        then = f"'volumehost explain {of_pod}' tells more"
    else:
        then = f"'volumehost mount {of_pod}' tries again"
    told = f"{', and '.join(words)}; " if words else ""
    if is_mirror(pod) and manager.stays_at_work:  # its manifest alone ends it
        return f"{told}{then}"
    return f"{told}{then}, 'volumehost unmount {of_pod}' takes all away"


def _print(settings: Settings, statuses: Sequence[PodStatus]) -> None:
    if settings.output == "table":
        click.echo(volume_table(statuses, with_pod=len(statuses) > 1), nl=False)
    elif settings.output == "name":
        for status in statuses:
            click.echo(f"pod/{status.name}")
    else:
        from volumehost.cli.output import echo_data

        echo_data({"pods": [pod_data(status) for status in statuses]}, settings.output)
