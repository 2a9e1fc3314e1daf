"""The pod that scrubs a released volume: its default template, the check of a template, its deadline (RECYCLE rules).

Used by plugins that are recyclable. The template is a manifest in wire form; a host that has read one from a file
hands out the pod in ``VolumeConfig.recycler_pod_template``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from volumehost.errors import SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.spec import VolumeConfig

GIB = 1 << 30

# Succeeds only when nothing is left, hidden files included, and never removes the directory itself (RECYCLE-02).
_SCRUB = (
    'test -d /scrub || exit 1; find /scrub -mindepth 1 -xdev -delete; test -z "$(find /scrub -mindepth 1 -print -quit)"'
    " || exit 1"
)


def recycler_pod_manifest() -> dict[str, Any]:
    """A fresh copy of the default template (RECYCLE-01): the plugin fills in the source of its only volume."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pv-recycler-", "namespace": "default"},
        "spec": {
            "activeDeadlineSeconds": 60,
            "restartPolicy": "Never",
            "volumes": [{"name": "vol"}],
            "containers": [
                {
                    "name": "pv-recycler",
                    "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
                    "command": ["/bin/sh"],
                    "args": ["-c", _SCRUB],
                    "volumeMounts": [{"name": "vol", "mountPath": "/scrub"}],
                }
            ],
        },
    }


def validate_recycler_pod_template(pod: Pod) -> None:
    """Check that a template has a volume to put the source in (RECYCLE-03).

    :raises SpecError: it has none.
    """
    if not pod.spec.volumes:
        raise SpecError("does not contain any volume(s)", action="checking the recycler pod template")


def recycler_timeout(config: VolumeConfig, size: int) -> int:
    """Seconds that scrubbing a volume of ``size`` bytes may take (UTIL-25).

    The larger of the minimum and the increment per full gibibyte; never their sum.
    """
    return max(config.recycler_minimum_timeout, size // GIB * config.recycler_timeout_increment)
