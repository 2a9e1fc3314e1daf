"""The facts about a pod's volumes from journal, store and mount table, when no manager can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from volumehost.errors import ApiError
from volumehost.mount.deadline import DeadlineRunner
from volumehost.node.explaining import sequence
from volumehost.node.explaining.attachments import attachment_words
from volumehost.node.explaining.busy_words import busy_words
from volumehost.node.explaining.claim_facts import claim_facts
from volumehost.node.explaining.facts import VolumeFacts, argument_of, driver_of, expected_of_driver, kind_of_claim
from volumehost.node.explaining.sequence import VolumeKind
from volumehost.node.journal.format import FAILED, UNMOUNTED, text_of, texts_of
from volumehost.node.populating.claims import claim_name
from volumehost.node.status.recorded import devices_left
from volumehost.node.status.records import VolumeStatus
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, Pod, Volume
    from volumehost.node.journal.format import JournalContents

Record = Mapping[str, Any]


class RecordedFacts:
    """Finds facts in what managers left behind. Touches no mount and changes nothing."""

    def __init__(self, journal: JournalContents, api: ApiClient | None, node: str) -> None:
        self._journal = journal
        self._entries = journal.entries
        self._api = api
        self._node = node
        self._runner = DeadlineRunner()

    def of_volume(self, status: VolumeStatus, pod: Pod | None, pod_uid: str) -> VolumeFacts:
        """One volume of a pod; ``pod`` is None when the store has it no more."""
        record = self._entries.get((status.unique_name, pod_uid), {}) if status.unique_name else {}
        volume = next((each for each in pod.spec.volumes if each.name == status.volume), None) if pod else None
        ended = bool(self._entries.get(("", pod_uid), {}).get("ended"))
        going = status.operation not in {"", *sequence.MOUNTING_OPERATIONS}
        facts = VolumeFacts(status, self._kind(status, record, volume, pod), unmounting=ended or going)
        facts.gone = ended and record.get("state") in {None, FAILED}
        if facts.gone:
            return facts
        if status.ready and not facts.unmounting:
            facts.error = texts_of(record, "err_lines") if status.error else []
            facts.advice = texts_of(record, "advice") if status.error else []
            return facts
        self._add_claim(facts, volume, pod)
        if status.error:
            facts.advice = texts_of(record, "advice") or self._advice(pod_uid, status.volume)
        if status.error and not (facts.claim is not None and facts.claim.told):
            facts.error = texts_of(record, "err_lines") or status.error.splitlines()
        if not record and not status.error and not facts.here:
            facts.here = sequence.mount_sequence(facts.kind)[0].name
        elif not record and not facts.here:
            facts.here = sequence.PLUGIN
        if facts.unmounting:
            words, advice = busy_words(text_of(record, "mount") or text_of(record, "path"), self._runner)
            facts.waits_for, facts.advice = [*facts.waits_for, *words], [*facts.advice, *advice]
        else:
            self._add_holders(facts, record)
            if status.operation == "volume_attach" and self._api is not None:
                words_of = attachment_words(self._api, facts.kind.persistent_volume, self._node)
                facts.waits_for += words_of.waits_for
        return facts

    def _advice(self, pod_uid: str, volume: str) -> list[str]:
        """What to do about a volume that could not even be entered."""
        advice = self._entries.get(("", pod_uid), {}).get("problem_advice")
        return texts_of(advice, volume) if isinstance(advice, Mapping) else []

    def devices_of(self, pod_uid: str) -> list[VolumeFacts]:
        """Volumes that the ended pod used, and that are not off the node yet (BR-48)."""
        return [self._of_device(*each) for each in devices_left(self._journal, pod_uid).items()]

    def _of_device(self, name: str, record: Record) -> VolumeFacts:
        staged = record.get("dev") not in (None, UNMOUNTED, FAILED)
        status = VolumeStatus(
            volume=name,
            state=f"still {'mounted on' if staged else 'attached to'} the node",
            plugin=text_of(record, "plugin"),
            unique_name=name,
            operation=text_of(record, "failed_op") if record.get("err") else "",
            failed_step=text_of(record, "failed_step") if record.get("err") else "",
            attempts=number if isinstance(number := record.get("attempts"), int) else 0,
        )
        kind = _with_device(VolumeKind(plugin=status.plugin, node=self._node), record)
        facts = VolumeFacts(status, kind, unmounting=True, here=sequence.UNMOUNT_DEVICE if staged else sequence.DETACH)
        if record.get("err"):
            facts.error = texts_of(record, "err_lines") or text_of(record, "err").splitlines()
            facts.advice = texts_of(record, "advice")
        if staged:
            words, advice = busy_words(text_of(record, "dmpath"), self._runner)
            facts.waits_for, facts.advice = words, [*facts.advice, *advice]
        return facts

    # --- the parts --------------------------------------------------------------------------------------------------

    def _kind(self, status: VolumeStatus, record: Record, volume: Volume | None, pod: Pod | None) -> VolumeKind:
        origin = f"{status.distribution} {status.version}".strip()
        kind = VolumeKind(plugin=status.plugin, origin=origin, node=self._node, path=status.path)
        kind = replace(kind, block=text_of(record, "mode") == BLOCK_MODE)
        if status.unique_name:
            kind = _with_device(kind, self._entries.get((status.unique_name, ""), {}))
            others = [
                f"{text_of(each, 'ns')}/{text_of(each, 'pod')}" if each.get("pod") else uid
                for (name, uid), each in self._entries.items()
                if name == status.unique_name and uid and uid != record.get("p") and each.get("state") != FAILED
            ]
            kind = replace(kind, shared_with=tuple(others))
        if volume is not None and volume.csi is not None:
            kind = replace(kind, by=driver_of(None, volume.csi.driver))
        context = pod.spec.security_context if pod is not None else None
        if context is not None and context.fs_group is not None:
            kind = replace(kind, group=context.fs_group, group_policy=context.fs_group_change_policy or "")
        return kind

    def _add_claim(self, facts: VolumeFacts, volume: Volume | None, pod: Pod | None) -> None:
        name = claim_name(volume, pod) if volume is not None and pod is not None else None
        if name is None or pod is None or volume is None:
            return
        made_for_pod = volume.ephemeral is not None
        claim = claim_facts(self._api, pod.metadata.namespace, name, made_for_pod=made_for_pod)
        facts.kind = kind_of_claim(replace(facts.kind, made_for_pod=made_for_pod), claim)
        driver = claim.volume.spec.csi.driver if claim.volume is not None and claim.volume.spec.csi else ""
        if driver or (claim.volume is None and claim.provisioner):
            facts.kind = expected_of_driver(facts.kind, self._api, driver or claim.provisioner)
        if claim.phase and not facts.unmounting:
            facts.claim, facts.here = claim, claim.phase

    def _add_holders(self, facts: VolumeFacts, record: Record) -> None:
        """Another pod that has a volume which is for one pod at a time."""
        volume = self._persistent_volume(facts.kind.persistent_volume)
        if volume is None or volume.spec.access_modes != ["ReadWriteOncePod"]:
            return
        for (name, uid), each in self._entries.items():
            same = (text_of(each, "plugin"), text_of(each, "inner")) == (facts.status.plugin, volume.metadata.name)
            if name and uid and uid != record.get("p") and same and each.get("state") != FAILED:
                label = f"{text_of(each, 'ns')}/{text_of(each, 'pod')}" if each.get("pod") else uid
                facts.waits_for.append(f"pod {label}, which has the volume; ReadWriteOncePod is for one pod")
                facts.advice.append(f"end pod {label}: 'volumehost unmount {argument_of(label)}'")

    def _persistent_volume(self, name: str) -> PersistentVolume | None:
        if not name or self._api is None:
            return None
        from volumehost.api.objects import PersistentVolume

        try:
            return self._api.get(PersistentVolume, name)
        except ApiError:
            return None


def _with_device(kind: VolumeKind, record: Record) -> VolumeKind:
    return replace(
        kind,
        attaches=bool(record.get("att")) or kind.attaches,
        mounts_device=bool(record.get("dmpath")) or kind.mounts_device,
        stage_path=text_of(record, "dmpath"),
    )
