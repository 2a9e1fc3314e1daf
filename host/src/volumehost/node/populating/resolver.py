"""From the volumes of a pod to their uses: claims followed, plugins asked, names made; the populator calls it.

What is asked here is third-party code and a possibly remote API: it has a deadline, and what hangs for one volume
concerns no other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import PluginCallError, SpecError, VolumeHostError
from volumehost.hookspecs import AttachableVolumePlugin, DeviceMountableVolumePlugin, NodeExpandableVolumePlugin
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner, StillStuckError
from volumehost.node.populating.claims import Source, group_of, source_of
from volumehost.node.populating.pods import UsedVolumes, local_ephemeral_size_limit
from volumehost.node.state.desired import VolumeUse
from volumehost.node.state.identity import unique_volume_name, unique_volume_name_of_pod

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, Volume
    from volumehost.hosts.node_host import NodeHost
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.node.operations.selinux import SELinuxJudge
    from volumehost.node.state.desired import SELinuxLabels
    from volumehost.spec import Spec

logger = logging.getLogger(__name__)

#: Seconds for all volumes of a pod together, which take well under a millisecond when nothing is wrong.
TOGETHER_SECONDS = 2.0
#: When that is not enough: seconds for each volume alone, its plugins asked under guard.
ALONE_SECONDS = 10.0


class _Question(NamedTuple):
    """Who was asked, since when, for which volume of which pod."""

    whom: str
    since: float
    pod_uid: str
    volume: str


class Resolver:
    """Resolves volumes. Safe for threads."""

    def __init__(
        self,
        plugins: VolumePluginManager,
        host: NodeHost,
        clock: Callable[[], float],
        *,
        together: float = TOGETHER_SECONDS,
        alone: float = ALONE_SECONDS,
    ) -> None:
        self._plugins = plugins
        self._host = host
        self._clock = clock
        self._together = together
        self._alone = alone
        self._runner = DeadlineRunner()
        self._unanswered: dict[object, _Question] = {}
        self._lock = threading.Lock()
        #: Judges SELinux labels, once there was one to judge.
        self.selinux: SELinuxJudge | None = None

    def resolve(self, pod: Pod, used: UsedVolumes) -> dict[str, VolumeUse | Exception]:
        """For each used volume its use, or why there is none."""
        return _distinct(self._resolve(pod, used))

    def _resolve(self, pod: Pod, used: UsedVolumes) -> dict[str, VolumeUse | Exception]:
        volumes = [volume for volume in pod.spec.volumes if volume.name in used]
        at_once = self._at_once(pod, volumes, used)
        if at_once is not None:
            return at_once
        try:
            what = f"resolving the volumes of pod {pod.metadata.uid}"
            return self._runner.run(self._all, pod, volumes, used, timeout=self._together, what=what)
        except StillStuckError:
            pass  # that was told
        except DeadlineExceededError:
            logger.warning("resolving the volumes of pod %s hangs, now one by one", pod.metadata.name)
        found: dict[str, VolumeUse | Exception] = {}
        for volume in volumes:
            try:
                what = f"resolving volume {volume.name} of pod {pod.metadata.uid}"
                found[volume.name] = self._runner.run(
                    self._one, volume, pod, used, True, timeout=self._alone, what=what
                )
            except DeadlineExceededError as error:
                found[volume.name] = self._did_not_answer(volume, pod, error)
        return found

    def _at_once(self, pod: Pod, volumes: list[Volume], used: UsedVolumes) -> dict[str, VolumeUse | Exception] | None:
        """All of them in this thread, which takes half as long; None when somebody might be asked who never answers.

        The store of this host answers, and so do the project's own plugins, which ask nobody else.
        """
        api = self._host.get_kube_client()
        if not getattr(api, "answers_at_once", False):
            return None
        found: dict[str, VolumeUse | Exception] = {}
        answered = set[str]()
        for volume in volumes:
            try:
                source = source_of(volume, pod, used, api)
                kind = source.spec.source()
                if kind not in answered:
                    if not self._plugins.answers_at_once(source.spec):
                        return None
                    answered.add(kind)
                found[volume.name] = self._describe(volume, pod, source, self._find(source, guarded=False), used)
            except Exception as error:
                logger.debug("volume %s of pod %s", volume.name, pod.metadata.name, exc_info=True)
                found[volume.name] = error
        return found

    def _all(self, pod: Pod, volumes: list[Volume], used: UsedVolumes) -> dict[str, VolumeUse | Exception]:
        return {volume.name: self._one(volume, pod, used, False) for volume in volumes}

    def _one(self, volume: Volume, pod: Pod, used: UsedVolumes, guarded: bool) -> VolumeUse | Exception:
        try:
            return self._use_of(volume, pod, used, guarded)
        except Exception as error:
            logger.debug("volume %s of pod %s", volume.name, pod.metadata.name, exc_info=True)
            return error
        except BaseException as error:  # noqa: BLE001 - on a thread of its own every one is a plugin's (BR-03)
            return PluginCallError(f"a plugin tried to end the process ({error!r})", action=_action(volume))

    def _use_of(self, volume: Volume, pod: Pod, used: UsedVolumes, guarded: bool) -> VolumeUse:
        has_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
        with self._asking("the API", volume, pod) if has_claim else nullcontext():
            source = source_of(volume, pod, used, self._host.get_kube_client())
        translate = self._plugins.find_translator(source.spec)
        if translate is not None:
            with self._asking(f"the translator of {source.spec.source()} volumes", volume, pod):
                source = source._replace(spec=translate(source.spec, pod.metadata.namespace))
        plugin = self._find(source, guarded=guarded)
        with self._asking(f"the volume plugin {plugin.name}", volume, pod):
            return self._describe(volume, pod, source, plugin, used)

    def _find(self, source: Source, *, guarded: bool) -> LoadedPlugin:
        try:
            return self._plugins.find_plugin_by_spec(source.spec, guarded=guarded)
        except VolumeHostError as error:
            error.action = error.action or f'failed to get Plugin from volumeSpec for volume "{source.spec.name()}"'
            raise

    @contextmanager
    def _asking(self, whom: str, volume: Volume, pod: Pod) -> Iterator[None]:
        """Ask somebody who may never answer; who has not answered for long is not asked again.

        Each question without an answer holds a thread, and there is a limit to those, for all volumes together.

        :raises SpecError: somebody asked it before, and still waits.
        """
        now = self._clock()
        asked = [question for question in list(self._unanswered.values()) if question.whom == whom]
        waiting = max((now - question.since for question in asked), default=0.0)
        if waiting > self._together + self._alone:
            raise SpecError(f"{whom} has not answered for {waiting:.0f} s", action=_action(volume), subject=volume.name)
        token = object()
        self._unanswered[token] = _Question(whom, now, pod.metadata.uid, volume.name)
        try:
            yield
        finally:
            del self._unanswered[token]

    def _did_not_answer(self, volume: Volume, pod: Pod, error: DeadlineExceededError) -> SpecError:
        reason, now = f"its plugin or its claim gives {error}", self._clock()
        for question in list(self._unanswered.values()):
            if (question.pod_uid, question.volume) == (pod.metadata.uid, volume.name):
                reason = f"{question.whom} has not answered for {now - question.since:.0f} s"
        failure = SpecError(reason, action=_action(volume), subject=volume.name)
        failure.__cause__ = error
        return failure

    def _describe(self, volume: Volume, pod: Pod, source: Source, plugin: LoadedPlugin, used: UsedVolumes) -> VolumeUse:
        spec = source.spec
        attachable = plugin.supports(AttachableVolumePlugin) and plugin.can_attach(spec)
        device = plugin.supports(DeviceMountableVolumePlugin) and plugin.can_device_mount(spec)
        if attachable or device:
            name = unique_volume_name(plugin.name, plugin.get_volume_name(spec))
        else:
            name = unique_volume_name_of_pod(plugin.name, pod.metadata.uid, spec.name())
        context = pod.spec.security_context
        fs_group = context.fs_group if context is not None else None
        size, claim_size = _sizes(source, plugin)
        return VolumeUse(
            volume=name,
            pod=pod,
            spec=spec,
            outer_names=(volume.name,),
            plugin=plugin,
            attachable=attachable,
            device_mountable=device,
            remounts=plugin.requires_remount(spec),
            size_limit=local_ephemeral_size_limit(volume, pod),
            fs_group=fs_group if fs_group is not None else group_of(spec),
            size=size,
            claim_size=claim_size,
            requested_at=self._clock(),
            selinux=self._selinux_labels(volume, pod, spec, plugin, used) if self._host.has_selinux() else None,
        )

    def _selinux_labels(
        self, volume: Volume, pod: Pod, spec: Spec, plugin: LoadedPlugin, used: UsedVolumes
    ) -> SELinuxLabels:
        from volumehost.node.operations.selinux import SELinuxJudge

        with self._lock:
            judge = self.selinux = self.selinux or SELinuxJudge()
        return judge.labels(pod, spec, plugin, used.selinux.get(volume.name, ()), self._host.get_host_util())


def _sizes(source: Source, plugin: LoadedPlugin) -> tuple[int, int]:
    """What the PersistentVolume has and what its claim has got, in bytes; both 0 where no node has to grow it."""
    volume = source.spec.persistent_volume
    if source.claim is None or volume is None:
        return 0, 0
    if not plugin.supports(NodeExpandableVolumePlugin) or not plugin.requires_fs_resize():
        return 0, 0
    from volumehost.sdk.quantity import parse_quantity

    size, claim_size = volume.spec.capacity.get("storage"), source.claim.status.capacity.get("storage")
    return (parse_quantity(size).value(), parse_quantity(claim_size).value()) if size and claim_size else (0, 0)


def _action(volume: Volume) -> str:
    return f"preparing volume {volume.name}"


def _distinct(found: dict[str, VolumeUse | Exception]) -> dict[str, VolumeUse | Exception]:
    """Refuse the second of two volumes that would share a name, and so a directory, and are not the same volume.

    It takes one of the pod's own volumes that is called like the PersistentVolume of another, and the same plugin.
    """
    first: dict[str, VolumeUse] = {}
    for name, use in found.items():
        if isinstance(use, Exception):
            continue
        other = first.setdefault(use.volume, use)
        if (other.spec.persistent_volume is None) != (use.spec.persistent_volume is None):
            reason = f"volume {other.outer_names[0]} of the pod leads to the same directory, {use.inner_name}"
            hint = "give the pod's own volume another name than that of the PersistentVolume"
            found[name] = SpecError(reason, action=f"preparing volume {name}", subject=name, hint=hint)
    return found
