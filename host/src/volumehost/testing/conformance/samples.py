"""The volumes to test with, from the files of ``--volume-spec``: nobody can guess what a plugin's volumes look like."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from volumehost.errors import ManifestError
from volumehost.spec import Spec
from volumehost.testing.pods import another_pod, pod_from

if TYPE_CHECKING:
    from volumehost.api.manifests import Manifest
    from volumehost.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume


@dataclass(frozen=True, slots=True)
class Sample:
    """One volume and the pod that uses it. ``label`` is its name in reports. Never handed to a plugin, only copies."""

    label: str
    spec: Spec
    pod: Pod

    def new_spec(self) -> Spec:
        """The spec, for a plugin to borrow."""
        return copy.deepcopy(self.spec)

    def new_pod(self) -> Pod:
        """A pod like the sample's, with a uid of its own."""
        return another_pod(self.pod)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the files hold: volumes, the first claim and class for provisioners, and objects that plugins may read."""

    volumes: tuple[Sample, ...] = ()
    claim: PersistentVolumeClaim | None = None
    storage_class: StorageClass | None = None
    objects: tuple[KubeObject, ...] = ()
    files: tuple[str, ...] = field(default=())

    @property
    def where(self) -> str:
        """The files, for messages."""
        return ", ".join(self.files)


def read_samples(files: Sequence[str]) -> Samples:
    """Read the files.

    :raises ManifestError: something cannot be read, is invalid, has an unknown field, or a claim leads nowhere.
    """
    if not files:
        return Samples()
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

    objects = _load(files)
    pods = [each for each in objects if isinstance(each, Pod)]
    claims = [each for each in objects if isinstance(each, PersistentVolumeClaim)]
    volumes = [each for each in objects if isinstance(each, PersistentVolume)]
    classes = [each for each in objects if isinstance(each, StorageClass)]
    found, claimed = _of_pods(pods, claims, volumes, ", ".join(files))
    found += [_of_persistent_volume(each) for each in volumes if each.metadata.name not in claimed]
    return Samples(
        tuple(_distinct(found)),
        claims[0] if claims else None,
        classes[0] if classes else None,
        tuple(each for each in objects if not isinstance(each, Pod)),
        tuple(files),
    )


def _load(files: Sequence[str]) -> list[Any]:
    """The objects of the files, checked as an API server would check them."""
    from volumehost.api.manifest_checks import check_manifests
    from volumehost.api.manifests import load_manifests

    manifests = load_manifests(files)
    for manifest in manifests:
        _refuse_unknown_fields(manifest)
    try:
        return [manifest.obj for manifest in check_manifests(manifests)]
    except ExceptionGroup as group:
        text = "\n  ".join(map(str, group.exceptions))
        raise ManifestError(text, action="reading the volumes to test with") from None


def _refuse_unknown_fields(manifest: Manifest) -> None:
    if manifest.unknown_fields:
        texts = [f"{path}: unknown field" + (f", {hint}" if hint else "") for path, hint in manifest.unknown_fields]
        raise ManifestError("; ".join(texts), source=manifest.source, action=f"reading {manifest.place}")


def _of_pods(
    pods: Iterable[Pod], claims: Sequence[PersistentVolumeClaim], volumes: Sequence[PersistentVolume], where: str
) -> tuple[list[Sample], set[str]]:
    """The volumes of pods, and the names of the PersistentVolumes among them."""
    samples: list[Sample] = []
    claimed: set[str] = set()
    for found in pods:
        pod = pod_from_object(found)
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                samples.append(Sample(volume.name, Spec.from_volume(volume), pod))
                continue
            persistent_volume = _bound_volume(volume, pod, claims, volumes, where)
            claimed.add(persistent_volume.metadata.name)
            read_only = volume.persistent_volume_claim.read_only
            samples.append(Sample(volume.name, Spec.from_persistent_volume(persistent_volume, read_only), pod))
    return samples, claimed


def pod_from_object(pod: Pod) -> Pod:
    """The pod, with the uid and namespace that every running pod has."""
    from volumehost.api.convert import to_wire

    return pod_from(to_wire(pod))


def _bound_volume(
    volume: Volume,
    pod: Pod,
    claims: Sequence[PersistentVolumeClaim],
    volumes: Sequence[PersistentVolume],
    where: str,
) -> PersistentVolume:
    source = volume.persistent_volume_claim
    name = source.claim_name if source is not None else ""
    bound = {claim.spec.volume_name for claim in claims if claim.metadata.name == name}
    for each in volumes:
        reference = each.spec.claim_ref
        if each.metadata.name in bound or (reference is not None and reference.name == name):
            return each
    raise ManifestError(
        f"volume {volume.name} of pod {pod.metadata.name} uses the claim {name}, which no PersistentVolume is for",
        source=where,
        action="reading the volumes to test with",
        hint="add the PersistentVolume with a spec.claimRef, or with it the claim with spec.volumeName",
    )


def _of_persistent_volume(volume: PersistentVolume) -> Sample:
    """A PersistentVolume that no pod of the files uses: a pod that does is made."""
    pod = pod_from({"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main", "image": "none"}]}})
    return Sample(volume.metadata.name, Spec.from_persistent_volume(volume, read_only=False), pod)


def _distinct(samples: Iterable[Sample]) -> Iterable[Sample]:
    """Labels that occur more than once get a number."""
    seen: dict[str, int] = {}
    for sample in samples:
        count = seen[sample.label] = seen.get(sample.label, 0) + 1
        yield sample if count == 1 else Sample(f"{sample.label}-{count}", sample.spec, sample.pod)
