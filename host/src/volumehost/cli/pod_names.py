"""How people name a pod: ``web``, ``pod/web`` as commands print it, ``team/web`` as ``status`` shows it.

Used by the commands that take a POD; also tells where a pod is that is not where it was looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from volumehost.errors import ObjectNotFoundError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.cli.options import Settings


def choose_pod(settings: Settings, text: str) -> str:
    """The name of the pod, or its uid; a namespace before it becomes that of the command.

    :raises click.UsageError: it contradicts the ``-n`` that is given.
    """
    namespace, name = split_pod(settings, text)
    if namespace != settings.namespace:
        settings.namespace, settings.namespace_given = namespace, True
    return name


def split_pod(settings: Settings, text: str) -> tuple[str, str]:
    """Namespace and name of the pod; see :func:`choose_pod`."""
    namespace, _, name = text.removeprefix("pod/").rpartition("/")
    if not namespace or not name:
        return settings.namespace, text.removeprefix("pod/")
    if settings.namespace_given and namespace != settings.namespace:
        raise click.UsageError(f"{text} is in namespace {namespace}, and -n says {settings.namespace}")
    return namespace, name


@contextmanager
def looking_for(settings: Settings, name: str | None) -> Iterator[None]:
    """Whoever does not find the pod in the block tells where one of that name is, or how to find out."""
    try:
        yield
    except ObjectNotFoundError as error:
        tell_where(error, settings, settings.namespace, name)
        raise


def tell_where(error: VolumeHostError, settings: Settings, namespace: str, name: str | None) -> None:
    """Give an error about a pod that was not found its hint."""
    label = f"{namespace}/{name}"
    if isinstance(error, ObjectNotFoundError) and error.subject in {name, label, f"pod {label}"}:
        others = _namespaces_with(settings, name)
        error.hint = (
            f"namespace {' and '.join(others)} has one: -n {others[0]}"
            if others
            else "'volumehost status' lists what there is; -n names another namespace"
        )


def _namespaces_with(settings: Settings, name: str | None) -> list[str]:
    from volumehost.api.objects import Pod
    from volumehost.cli.api_choice import open_for_reading

    try:
        with open_for_reading(settings) as store:
            return sorted(pod.metadata.namespace for pod in store.list(Pod).items if pod.metadata.name == name)
    except VolumeHostError:
        return []
