"""The facts about a pod's volumes as the manager at work has them: operations, retries, controllers, other pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError, MultiplePluginsMatchedError, PluginLookupError
from volumehost.mount.deadline import DeadlineRunner
from volumehost.node.execution.backoff import absent_driver
from volumehost.node.execution.hanging import LONG_SECONDS
from volumehost.node.execution.pending import OperationKey
from volumehost.node.explaining import sequence
from volumehost.node.explaining.attachments import attachment_words
from volumehost.node.explaining.busy_words import busy_words
from volumehost.node.explaining.claim_facts import ClaimFacts, claim_facts
from volumehost.node.explaining.error_words import advice_for, error_lines
from volumehost.node.explaining.facts import (
    VolumeFacts,
    add_missing_plugin,
    argument_of,
    expected_of_driver,
    kind_of_claim,
    missing_plugin_advice,
)
from volumehost.node.explaining.live_kinds import LiveKinds
from volumehost.node.populating.claims import ClaimPendingError, claim_name

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, Volume
    from volumehost.node.assembly import NodeParts
    from volumehost.node.execution.pending import PendingOperation
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import AttachedVolume, MountedVolume
    from volumehost.node.status.records import VolumeStatus


class LiveFacts:
    """Finds facts in the parts of a manager. Touches no mount and waits for nobody."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._services = parts.services
        self._actual = parts.services.actual
        self._api = parts.host.get_kube_client()
        self._runner = DeadlineRunner()
        self._kinds = LiveKinds(parts)

    def of_volume(self, status: VolumeStatus, pod: Pod | None, pod_uid: str) -> VolumeFacts:
        """One volume of a pod; ``pod`` is None when the API has it no more."""
        ending = self._parts.populator.has_ended(pod_uid)
        mount = self._actual.get_mount(status.unique_name, pod_uid) if status.unique_name else None
        use = self._services.desired.get(status.unique_name, pod_uid) if status.unique_name else None
        volume = next((each for each in pod.spec.volumes if each.name == status.volume), None) if pod else None
        unwanted = mount is not None and self._parts.populator.is_unwanted(mount.volume, pod_uid)
        facts = VolumeFacts(
            status, self._kinds.of_volume(status, use, mount, volume, pod), unmounting=ending or unwanted
        )
        entry = self._parts.pending.find(OperationKey(status.unique_name, pod_uid)) if status.unique_name else None
        facts.gone = ending and mount is None and (entry is None or not entry.running)
        if facts.gone:
            return facts
        if status.ready and not facts.unmounting:
            error = entry.backoff.error if entry is not None else None
            facts.error, facts.advice = error_lines(error), advice_for(error)
            return facts
        self._add_claim(facts, volume, pod)
        facts.error = status.error.splitlines()
        if entry is not None:
            self._add_operation(facts, entry, use)
            facts.advice += missing_plugin_advice(status, entry.backoff.error)
            if mount is not None and facts.unmounting:
                self._add_users(facts, entry, mount.mount_point or mount.path)
        elif status.state == "waiting":
            add_missing_plugin(facts)
        elif use is not None or mount is not None:
            self._add_waiting(facts, status.unique_name, pod_uid)
        else:
            self._add_unresolved(facts, pod, pod_uid)
        return facts

    def devices_of(self, pod_uid: str) -> list[VolumeFacts]:
        """Volumes that the ended pod used, and that are not off the node yet (BR-48)."""
        left = map(self._actual.get_volume, self._parts.status.devices_left(pod_uid))
        return [self._of_device(known) for known in left if known is not None]

    def _of_device(self, known: AttachedVolume) -> VolumeFacts:
        entry = self._parts.pending.find(OperationKey(known.name))
        status = self._parts.status.of_device(known)
        kind = self._kinds.of_device(known)
        staged = known.device_state.may_be_mounted
        facts = VolumeFacts(status, kind, unmounting=True, here=sequence.UNMOUNT_DEVICE if staged else sequence.DETACH)
        if entry is not None:
            self._add_operation(facts, entry, None)
            self._add_users(facts, entry, known.device_mount_path)
        return facts

    # --- what it waits for ------------------------------------------------------------------------------------------

    def _add_claim(self, facts: VolumeFacts, volume: Volume | None, pod: Pod | None) -> None:
        name = claim_name(volume, pod) if volume is not None and pod is not None else None
        if name is None or pod is None or volume is None:
            return
        claim = self._claim(pod.metadata.namespace, name, made_for_pod=volume.ephemeral is not None)
        facts.kind = kind_of_claim(replace(facts.kind, made_for_pod=volume.ephemeral is not None), claim)
        if not facts.status.unique_name and claim.provisioner:
            facts.kind = expected_of_driver(facts.kind, self._api, claim.provisioner)
        if claim.phase and not facts.unmounting:
            facts.claim, facts.here = claim, claim.phase

    def _claim(self, namespace: str, name: str, *, made_for_pod: bool) -> ClaimFacts:
        plane = self._services.control.plane if self._services.control.enabled else None
        running = plane if plane is not None and plane.started else None
        return claim_facts(self._api, namespace, name, plane=running, made_for_pod=made_for_pod)

    def _add_unresolved(self, facts: VolumeFacts, pod: Pod | None, pod_uid: str) -> None:
        """Nothing is entered for it: why not is what the populator met."""
        record = self._parts.populator.record(pod_uid)
        if facts.unmounting:
            return
        if record is None:
            facts.here = facts.here or sequence.mount_sequence(facts.kind)[0].name
            if pod is not None and pod.spec.node_name in {"", self._parts.host.get_node_name()}:
                label = f"{pod.metadata.namespace}/{pod.metadata.name}"
                facts.waits_for.append("somebody who asks for it: this manager was not told to mount the pod")
                facts.advice.append(f"'volumehost mount {argument_of(label)}' mounts it")
            return
        error = record.errors.get(facts.status.volume)
        if facts.claim is not None:
            facts.error = [] if isinstance(error, ClaimPendingError) else error_lines(error)
            return
        if error is None:
            return
        of_claim = bool(facts.kind.claim) and isinstance(error, FailedPreconditionError)
        facts.here = sequence.BIND if of_claim else sequence.PLUGIN
        facts.error, facts.advice = error_lines(error), advice_for(error)
        if isinstance(error, MultiplePluginsMatchedError):
            facts.waits_for.append("that one plugin alone is for it")
        elif isinstance(error, PluginLookupError):
            facts.waits_for.append("a volume plugin for it; one that is installed is found by itself")

    def _add_operation(self, facts: VolumeFacts, entry: PendingOperation, use: VolumeUse | None) -> None:
        error = entry.backoff.error
        facts.error, facts.advice = error_lines(error) or facts.error, advice_for(error)
        driver = absent_driver(error)
        if driver:
            facts.waits_for.append(f"driver {driver}, which is not registered; it is heard when it comes")
        if use is not None and use.attachable and entry.name == "volume_attach":
            self._add_attachment(facts, use)
        if error is not None and use is not None:
            self._add_holders(facts, use, error)
        if entry.running and entry.pod_uid and use is not None and entry.pod_uid != use.pod_uid:
            facts.waits_for.append(self._running_words(entry))

    def _add_attachment(self, facts: VolumeFacts, use: VolumeUse) -> None:
        volume = use.spec.persistent_volume
        if volume is None or self._api is None:
            return
        plane = self._services.control.plane if self._services.control.enabled else None
        words = attachment_words(self._api, volume.metadata.name, self._kinds.node, plane)
        facts.waits_for += words.waits_for
        facts.error += [line for line in words.error if not any(line in told for told in facts.error)]
        facts.advice += words.advice

    def _add_holders(self, facts: VolumeFacts, use: VolumeUse, error: BaseException) -> None:
        from volumehost.node.operations.set_up_operation import is_in_use_by_another

        if not is_in_use_by_another(error):
            return
        holders = [
            f"{mount.pod_namespace}/{mount.pod_name}" if mount.pod_name else mount.pod_uid
            for uid in self._actual.pods()
            for mount in self._actual.mounts_of_pod(uid)
            if uid != use.pod_uid and (mount.plugin_name, mount.inner_name) == (use.plugin.name, use.inner_name)
        ]
        facts.waits_for += [f"pod {name}, which has the volume; ReadWriteOncePod is for one pod" for name in holders]
        facts.advice += [f"end pod {name}: 'volumehost unmount {argument_of(name)}'" for name in holders]

    def _add_users(self, facts: VolumeFacts, entry: PendingOperation, path: str) -> None:
        """What keeps it from being unmounted, once that has failed or takes long."""
        if entry.backoff.error is None and self._services.clock() - entry.started_at < LONG_SECONDS:
            return
        words, advice = busy_words(path, self._runner)
        facts.waits_for += words
        facts.advice += advice

    def _add_waiting(self, facts: VolumeFacts, volume: str, pod_uid: str) -> None:
        """No operation of its own runs or has failed: another one may run on the volume."""
        mount = self._actual.get_mount(volume, pod_uid)
        if mount is not None and self._services.desired.get(volume, pod_uid) is None and not facts.unmounting:
            facts.waits_for.append(self._why_left_alone(mount))
        use = self._services.desired.get(volume, pod_uid)
        if use is not None and (waits := self._parts.status.waits_for_controller(use)):
            facts.here, facts.error = sequence.ATTACH, []
            facts.waits_for.append(waits)
            self._add_attachment(facts, use)
        others = [entry for entry in self._parts.pending.running() if entry.key.volume == volume]
        facts.waits_for += [self._running_words(entry) for entry in others if entry.key.pod != pod_uid]

    def _why_left_alone(self, mount: MountedVolume) -> str:
        """Why something that this manager was not told to mount is not unmounted either."""
        if not self._parts.populator.complete:
            return "the list of all pods: before that is known, nothing is unmounted"
        if mount.from_directory:
            return "somebody who says what it is: only a directory tells of it, and 'volumehost inspect' looks closer"
        return "somebody who asks for it, or says that its workload has ended: until then it is left as it is"

    def _running_words(self, entry: PendingOperation) -> str:
        whose = f" of pod {self._kinds.label(entry.key.volume, entry.pod_uid)}" if entry.pod_uid else ""
        age = self._services.clock() - entry.started_at
        step = f" at step {entry.step}" if entry.step else ""
        return f"operation {entry.name}{whose} on the same volume, which has been running for {age:.1f} s{step}"
