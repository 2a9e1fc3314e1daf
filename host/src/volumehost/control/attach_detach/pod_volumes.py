"""Which volumes of a pod have to be attached, and through which plugin (ADC-10)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from volumehost.control.writes import get_or_none
from volumehost.errors import PluginCallError, PluginLookupError, SpecError, VolumeHostError
from volumehost.loader.guard import describe
from volumehost.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod, Volume
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.manager import VolumePluginManager

logger = logging.getLogger(__name__)

#: Sources of a pod's own volumes that nobody ever attaches: most volumes are of these.
_NEVER_ATTACHED = frozenset(
    {"empty_dir", "config_map", "secret", "projected", "downward_api", "host_path", "image", "git_repo", "nfs", ""}
)


class Wanted(NamedTuple):
    """A volume that is to be attached: its spec, translated where its kind was taken over, and its plugin."""

    spec: Spec
    plugin: LoadedPlugin


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What one pod wants attached, by unique volume name; ``problem`` is why that may not be all, None when it is.

    A claim that is not bound yet is no problem: its volume is attached when it is.
    """

    wanted: Mapping[str, Wanted]
    problem: VolumeHostError | None = None


def may_attach(pod: Pod) -> bool:
    """Whether the pod could have a volume that is attached; quick."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or Spec.from_volume(volume).source() not in _NEVER_ATTACHED
        for volume in pod.spec.volumes
    )


def volumes_to_attach(api: ApiClient, plugins: VolumePluginManager, pod: Pod) -> PodVolumes:
    """The pod's attachable volumes. What cannot be told of one volume does not keep the others."""
    wanted: dict[str, Wanted] = {}
    problem: VolumeHostError | None = None
    for volume in pod.spec.volumes:
        try:
            found = _wanted(api, plugins, pod, volume)
        except (SpecError, PluginLookupError) as error:
            logger.debug("volume %s of pod %s is not attached: %s", volume.name, pod.metadata.name, error)
        except VolumeHostError as error:
            problem = error
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything, which is no other volume's trouble
            problem = PluginCallError(describe(error), action=f"looking whether volume {volume.name} is attached")
        else:
            if found is not None:
                wanted[found[0]] = found[1]
    return PodVolumes(wanted, problem)


def _wanted(api: ApiClient, plugins: VolumePluginManager, pod: Pod, volume: Volume) -> tuple[str, Wanted] | None:
    spec = _spec(api, pod, volume)
    if spec is None:
        return None
    translate = plugins.find_translator(spec)
    if translate is not None:
        spec = translate(spec, pod.metadata.namespace)
    plugin = plugins.find_attachable_plugin_by_spec(spec)
    if plugin is None:
        return None
    return f"{plugin.name}/{plugin.get_volume_name(spec)}", Wanted(spec, plugin)


def _spec(api: ApiClient, pod: Pod, volume: Volume) -> Spec | None:
    """The spec of one volume; None while its claim does not lead to a volume."""
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

    source = volume.persistent_volume_claim
    if source is None and volume.ephemeral is None:
        spec = Spec.from_volume(volume)
        return spec if spec.source() not in _NEVER_ATTACHED else None
    name = source.claim_name if source is not None else f"{pod.metadata.name}-{volume.name}"
    claim = get_or_none(api, PersistentVolumeClaim, name, pod.metadata.namespace)
    if claim is None or claim.status.phase != "Bound" or not claim.spec.volume_name:
        return None
    if volume.ephemeral is not None and not _is_made_for(claim, pod):
        return None
    persistent = get_or_none(api, PersistentVolume, claim.spec.volume_name)
    if persistent is None or persistent.spec.claim_ref is None:
        return None
    if persistent.spec.claim_ref.uid != claim.metadata.uid:
        return None
    return Spec.from_persistent_volume(persistent, read_only=source is not None and source.read_only)


def _is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    owners = claim.metadata.owner_references
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in owners)
