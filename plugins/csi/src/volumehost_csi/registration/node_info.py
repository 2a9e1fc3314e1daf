"""NodeInfoManager: tells the API which CSI drivers this node has, in its Node and CSINode objects (CSI-NIM).

Nothing is written when nothing changes. Without an API what the drivers say is kept here alone (CSI-SOLO-05).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from volumehost.errors import ObjectNotFoundError, StorageDriverError
from volumehost_csi.registration import csi_node_object, node_object
from volumehost_csi.registration.api_writes import repeated

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import CSINode, Node
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.client import NodeInfo

logger = logging.getLogger(__name__)


class NodeInfoManager:
    """One node's drivers in the API. Safe for threads: one read and write at a time (CSI-NIM-04).

    :param host: asked for the API at each use, for the node's name and its labels.
    :param migrated: names of the in-tree plugins whose volumes go through CSI here; None leaves that untold.
    :param register_node: create the Node object when there is none, as a kubelet does. Off in a cluster: a kubelet is
        there for it, and a misnamed host must not invent nodes.
    """

    def __init__(
        self, host: VolumeHost, *, migrated: Collection[str] | None = None, register_node: bool = False
    ) -> None:
        self._host = host
        self._name = host.get_node_name()
        self._migrated = migrated
        self._register_node = register_node
        self._lock = threading.Lock()
        self._local: dict[str, NodeInfo] = {}
        self._stale: dict[str, tuple[str, ...]] = {}

    @property
    def local(self) -> Mapping[str, NodeInfo]:
        """What drivers said, by name, as it was published last."""
        return dict(self._local)

    @property
    def stale_labels(self) -> Mapping[str, tuple[str, ...]]:
        """Driver to labels of the node that its former topology left behind; they are never removed (CSI-NIM-12)."""
        return dict(self._stale)

    def initialize(self) -> None:
        """Have a CSINode that is this node's, with the annotation of migrated plugins (CSI-NIM-05).

        :raises ApiError: the API does not answer or refuses it.
        """
        api = self._host.get_kube_client()
        if api is not None:
            self._repeat(lambda: self._initialize_once(api))

    def install(self, driver: str, info: NodeInfo) -> None:
        """Publish the driver: Node first, CSINode second (CSI-NIM-09).

        :raises StorageDriverError: its node id is empty.
        :raises TopologyCollisionError: its topology contradicts a label; nothing was changed.
        :raises ApiError: the API does not answer or refuses it.
        """
        if not info.node_id:
            raise StorageDriverError(
                "its node id is empty", driver=driver, action=f"publishing the CSI driver {driver} on the node"
            )
        api = self._host.get_kube_client()
        if api is not None:
            self._repeat(lambda: self._patch_node(api, lambda node: node_object.install_patch(node, driver, info)))
            self._repeat(lambda: self._install_once(api, driver, info))
        self._local[driver] = info

    def update(self, driver: str, info: NodeInfo) -> None:
        """Publish what the driver says now in CSINode alone (CSI-NIM-22).

        :raises ApiError: the API does not answer or refuses it.
        """
        api = self._host.get_kube_client()
        if api is not None:
            self._repeat(lambda: self._install_once(api, driver, info))
        self._local[driver] = info

    def repair(self) -> None:
        """Put right what others did to the Node and the CSINode, a new Node of the name included (BR-78).

        Where nothing was done this reads and writes nothing.

        :raises TopologyCollisionError: the topology of a driver contradicts a label now; the other drivers are right.
        :raises ApiError: the API does not answer or refuses it.
        """
        api = self._host.get_kube_client()
        if api is None:
            return
        if not self._is_right(api):
            self.initialize()
        failure: Exception | None = None
        for driver, info in self.local.items():
            try:
                if self._is_told(api, driver, info):
                    continue
                logger.warning("what the cluster knows of the CSI driver %s on this node is put right", driver)
                self._repeat(lambda info=info, driver=driver: self._repair_once(api, driver, info))  # type: ignore[misc]
            except StorageDriverError as error:
                failure = error
        if failure is not None:
            raise failure

    def uninstall(self, driver: str) -> None:
        """Take the driver out: CSINode first, Node second; fine when it is not there (CSI-NIM-23, -24).

        :raises ApiError: the API does not answer or refuses it.
        """
        self._local.pop(driver, None)
        self._stale.pop(driver, None)
        api = self._host.get_kube_client()
        if api is not None:
            self._repeat(lambda: self._uninstall_once(api, driver))
            self._repeat(
                lambda: self._patch_node(api, lambda node: node_object.uninstall_patch(node, driver), create=False)
            )

    # --- one attempt each -----------------------------------------------------------------------------------

    def _repeat(self, attempt: Callable[[], None]) -> None:
        def locked() -> None:
            with self._lock:
                attempt()

        repeated(locked)

    def _initialize_once(self, api: ApiClient) -> None:
        csi_node = self._csi_node(api, self._node(api))
        if csi_node_object.put_migrated(csi_node, self._migrated):
            api.replace(csi_node)

    def _install_once(self, api: ApiClient, driver: str, info: NodeInfo) -> None:
        node = self._node(api)
        csi_node = self._csi_node(api, node)
        old, new = csi_node_object.find_entry(csi_node, driver), csi_node_object.driver_entry(driver, info)
        annotated = csi_node_object.put_migrated(csi_node, self._migrated)
        if old is not None and csi_node_object.same_entry(old, new):
            if annotated:
                api.replace(csi_node)
            return
        if old is not None and csi_node_object.must_leave_first(old, new):
            csi_node_object.drop_entry(csi_node, driver)
            csi_node = api.replace(csi_node)
        csi_node_object.put_entry(csi_node, new)
        csi_node = api.replace(csi_node)
        self._tell_stale(driver, node, csi_node_object.stale_labels(old, new, node.metadata.labels, csi_node))

    def _is_right(self, api: ApiClient) -> bool:
        """Whether there is a CSINode that is this node's, whatever drivers it has."""
        with self._lock:
            csi_node = self._find_csi_node(api)
            return (
                csi_node is not None
                and csi_node_object.belongs_to(csi_node, self._node(api))
                and not csi_node_object.put_migrated(csi_node, self._migrated)
            )

    def _is_told(self, api: ApiClient, driver: str, info: NodeInfo) -> bool:
        """Whether both objects say of the driver what they should.

        :raises TopologyCollisionError: they never will.
        """
        with self._lock:
            csi_node = self._find_csi_node(api)
            entry = csi_node_object.find_entry(csi_node, driver) if csi_node is not None else None
            return (
                not node_object.install_patch(self._node(api), driver, info)
                and entry is not None
                and csi_node_object.same_entry(entry, csi_node_object.driver_entry(driver, info))
            )

    def _repair_once(self, api: ApiClient, driver: str, info: NodeInfo) -> None:
        if self._local.get(driver) != info:
            return  # it has left, or says something else now
        node = self._node(api)
        patch = node_object.install_patch(node, driver, info)
        if patch:
            patch["metadata"]["resourceVersion"] = node.metadata.resource_version
            api.patch(type(node), self._name, patch)
        self._install_once(api, driver, info)

    def _uninstall_once(self, api: ApiClient, driver: str) -> None:
        csi_node = self._find_csi_node(api)
        if csi_node is not None and csi_node_object.find_entry(csi_node, driver) is not None:
            csi_node_object.drop_entry(csi_node, driver)
            api.replace(csi_node)

    def _patch_node(
        self, api: ApiClient, make_patch: Callable[[Node], dict[str, dict[str, object]]], *, create: bool = True
    ) -> None:
        from volumehost.api.objects import Node

        try:
            node = self._node(api) if create else api.get(Node, self._name)
        except ObjectNotFoundError:
            if create:
                raise
            return
        patch = make_patch(node)
        if patch:
            patch["metadata"]["resourceVersion"] = node.metadata.resource_version
            api.patch(Node, self._name, patch)

    # --- the objects ----------------------------------------------------------------------------------------

    def _node(self, api: ApiClient) -> Node:
        """The Node as it is now: its UID decides whose CSINode is (CSI-NIM-08 improved)."""
        from volumehost.api.objects import Node, ObjectMeta

        try:
            return api.get(Node, self._name)
        except ObjectNotFoundError:
            if not self._register_node:
                raise
        labels = dict(self._host.get_node_labels())
        return api.create(Node(metadata=ObjectMeta(name=self._name, labels=labels)))

    def _find_csi_node(self, api: ApiClient) -> CSINode | None:
        """The CSINode of the node's name, None when there is none."""
        from volumehost.api.objects import CSINode

        try:
            return api.get(CSINode, self._name)
        except ObjectNotFoundError:
            return None

    def _csi_node(self, api: ApiClient, node: Node) -> CSINode:
        """The node's CSINode, made when it is missing, and made anew when it is another's (CSI-NIM-07, -20)."""
        from volumehost.api.objects import CSINode

        csi_node = self._find_csi_node(api)
        if csi_node is None:
            return api.create(csi_node_object.new_csi_node(node))
        if csi_node_object.belongs_to(csi_node, node):
            return csi_node
        logger.warning("the CSINode %s belongs to an earlier node of that name: it is made anew", self._name)
        api.delete(CSINode, self._name, uid=csi_node.metadata.uid)
        return api.create(csi_node_object.new_csi_node(node))

    def _tell_stale(self, driver: str, node: Node, labels: list[str]) -> None:
        if not labels:
            self._stale.pop(driver, None)
            return
        self._stale[driver] = tuple(labels)
        message = (
            f"the CSI driver {driver} no longer tells the topology {', '.join(labels)}; the labels stay on the node "
            f"{self._name}, remove them by hand if nothing else needs them"
        )
        recorder = self._host.get_event_recorder()
        if recorder is not None:
            recorder.event(node, "Warning", "StaleTopologyLabels", message)  # logs it too
        else:
            logger.warning("%s", message)
