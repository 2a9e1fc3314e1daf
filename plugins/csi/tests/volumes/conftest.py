"""A host over a temporary directory, an embedded store, and a node service on a real socket that obeys tests."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import pytest

from volumehost import MounterArgs, Spec
from volumehost.api.objects import (
    CSIDriver,
    CSIDriverSpec,
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Secret,
    Volume,
)
from volumehost.api.store import EmbeddedStore
from volumehost.errors import StorageDriverUnavailableError
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_csi.client import NodeClient
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit import _services, csi
from volumehost_csi_kit.endpoints import dial

NAME = "fake.csi.example.com"
UID = "11111111-2222-3333-4444-555555555555"
ALL_CAPABILITIES = ("STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME")


class FakeNode:
    """The node service of a driver: keeps every call, answers as told, and mounts what it is asked to.

    ``scripts`` maps a call to functions ``(request, context) -> reply or None``; each is used once.
    """

    def __init__(self, directory: str) -> None:
        self.endpoint = f"{directory}/csi.sock"
        self.calls: list[tuple[str, object]] = []
        self.capabilities = list(ALL_CAPABILITIES)
        self.scripts: dict[str, list[Callable]] = {}
        self.mounts = True
        self.mounter = LinuxMounter()
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((_Handlers(self),))
        self._server.add_insecure_port(f"unix:{self.endpoint}")
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()

    # --- for tests ----------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def last(self, name: str):
        return [request for each, request in self.calls if each == name][-1]

    def script(self, name: str, *functions: Callable) -> None:
        self.scripts.setdefault(name, []).extend(functions)

    def fail(self, name: str, code: str, message: str = "it went wrong", times: int = 1) -> None:
        def refuse(request, context):
            context.abort(grpc.StatusCode[code], message)

        self.script(name, *[refuse] * times)

    # --- calls --------------------------------------------------------------------------------------------

    def handle(self, method, request, context):
        self.calls.append((method.name, request))
        scripted = self.scripts.get(method.name)
        reply = scripted.pop(0)(request, context) if scripted else None
        if reply is not None:
            return reply
        return getattr(self, method.name, lambda request: method.reply_class())(request)

    def NodeGetInfo(self, request):
        return csi.NodeGetInfoResponse(node_id="node-1")

    def NodeGetCapabilities(self, request):
        kind = csi.NodeServiceCapability
        return csi.NodeGetCapabilitiesResponse(
            capabilities=[kind(rpc=kind.RPC(type=kind.RPC.Type.Value(name))) for name in self.capabilities]
        )

    def NodePublishVolume(self, request):
        if self.mounts:
            target = request.target_path
            source = request.staging_target_path or os.path.dirname(self.endpoint)
            if request.volume_capability.HasField("block"):
                open(target, "a").close()
                source = self.endpoint
            else:
                os.makedirs(target, exist_ok=True)
            if not self.mounter.is_mount_point(target):
                self.mounter.mount(source, target, "", ["bind"], systemd=False)
        return csi.NodePublishVolumeResponse()

    def NodeUnpublishVolume(self, request):
        if self.mounts:
            self.mounter.unmount(request.target_path)
            if os.path.isdir(request.target_path):
                os.rmdir(request.target_path)
            elif os.path.exists(request.target_path):
                os.unlink(request.target_path)
        return csi.NodeUnpublishVolumeResponse()

    def NodeGetVolumeStats(self, request):
        usage = csi.VolumeUsage(unit=csi.VolumeUsage.BYTES, total=100, used=40, available=60)
        return csi.NodeGetVolumeStatsResponse(usage=[usage])

    def NodeExpandVolume(self, request):
        return csi.NodeExpandVolumeResponse(capacity_bytes=request.capacity_range.required_bytes)


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, node: FakeNode) -> None:
        self._node = node

    def service(self, details):
        service, _, name = details.method.rpartition("/")
        if service != "/csi.v1.Node":
            return None
        method = _services.SERVICES["Node"].methods[name]
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._node.handle(method, request, context),
            request_deserializer=method.request_class.FromString,
            response_serializer=method.reply_class.SerializeToString,
        )


class FakeDrivers:
    """What the plugin asks for node clients: one driver that is there until it is taken away."""

    def __init__(self) -> None:
        self.clients: dict[str, NodeClient] = {}
        self.refreshed: list[str] = []
        self.registry = SimpleNamespace(handler=SimpleNamespace(refresh=self.refreshed.append))
        self.closed = False

    def node_client(self, name: str, timeout: float = 0) -> NodeClient:
        if name not in self.clients:
            raise StorageDriverUnavailableError(f"the CSI driver {name} is not registered", driver=name)
        return self.clients[name]

    def close(self) -> None:
        self.closed = True


def mounts_below(path: str) -> list:
    return [mount for mount in LinuxMounter().list_mounts() if mount.path == path or mount.path.startswith(path + "/")]


@pytest.fixture
def directory(tmp_path) -> Iterator[str]:
    """A directory; whatever is still mounted below it at the end is unmounted."""
    path = os.path.realpath(tmp_path)
    yield path
    for mount in reversed(mounts_below(path)):
        LinuxMounter().unmount(mount.path)


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with tempfile.TemporaryDirectory(prefix="csi") as short:
        fake = FakeNode(short)
        yield fake
        fake.stop()


@pytest.fixture
def channel(node) -> Iterator[grpc.Channel]:
    with dial(node.endpoint) as channel:
        yield channel


@pytest.fixture
def client(channel) -> NodeClient:
    return NodeClient(NAME, channel)


@pytest.fixture
def api(directory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(f"{directory}/store.sqlite3") as store:
        yield store


@pytest.fixture
def host(directory, api) -> PluginTestHost:
    return PluginTestHost(directory, api=api)


@pytest.fixture
def standalone(directory, api) -> StandaloneHost:
    root = f"{directory}/root"
    os.makedirs(root, exist_ok=True)
    return StandaloneHost(root, node_name="test-node", api=api)


@pytest.fixture
def make_plugin(client) -> Callable[..., CSIPlugin]:
    """A plugin on the given host, with the fake driver registered."""

    def make(host, **options) -> CSIPlugin:
        plugin = CSIPlugin(**options)
        plugin.init(host)
        plugin._services._drivers = FakeDrivers()
        plugin._services.drivers.clients[NAME] = client
        return plugin

    return make


@pytest.fixture
def plugin(make_plugin, host) -> CSIPlugin:
    return make_plugin(host)


@pytest.fixture
def drivers(plugin) -> FakeDrivers:
    return plugin._services.drivers


@pytest.fixture
def csi_driver(api) -> Callable[..., CSIDriver]:
    """Creates the CSIDriver object; attaching is off unless it is asked for."""

    def create(name=NAME, attach_required=False, **spec) -> CSIDriver:
        spec.setdefault("volume_lifecycle_modes", ["Persistent", "Ephemeral"])
        body = CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(attach_required=attach_required, **spec))
        return api.create(body)

    return create


@pytest.fixture
def secret(api) -> Callable[..., Secret]:
    def create(name, namespace="default", **data) -> Secret:
        content = {key: value.encode() if isinstance(value, str) else value for key, value in data.items()}
        return api.create(Secret(metadata=ObjectMeta(name=name, namespace=namespace), data=content))

    return create


@pytest.fixture
def pod() -> Pod:
    return Pod(
        metadata=ObjectMeta(name="web", namespace="default", uid=UID), spec=PodSpec(service_account_name="robot")
    )


@pytest.fixture
def make_pv() -> Callable[..., Spec]:
    """A spec of a PersistentVolume; keyword arguments beyond the named ones go into its CSI source."""

    def make(name="pv-1", *, handle="vol-1", driver=NAME, read_only=False, migrated=False, spec=None, **source) -> Spec:
        volume = PersistentVolume(
            metadata=ObjectMeta(name=name),
            spec=PersistentVolumeSpec(
                csi=CSIPersistentVolumeSource(driver=driver, volume_handle=handle, **source),
                **{"access_modes": ["ReadWriteOnce"], **(spec or {})},
            ),
        )
        return Spec(persistent_volume=volume, read_only=read_only, migrated=migrated)

    return make


@pytest.fixture
def make_inline() -> Callable[..., Spec]:
    def make(name="scratch", *, driver=NAME, **source) -> Spec:
        return Spec.from_volume(Volume(name=name, csi=CSIVolumeSource(driver=driver, **source)))

    return make


@pytest.fixture
def staged(plugin, make_pv) -> Callable[..., Spec]:
    """A volume that has been staged."""

    def stage(spec=None) -> Spec:
        from volumehost import DeviceMounterArgs

        spec = spec or make_pv()
        mounter = plugin.new_device_mounter()
        mounter.mount_device(spec, "", mounter.get_device_mount_path(spec), DeviceMounterArgs())
        return spec

    return stage


@pytest.fixture
def mounted(plugin, staged, pod) -> Callable[..., SimpleNamespace]:
    """A volume that has been staged and published for the pod."""

    def mount(spec=None, args=None) -> SimpleNamespace:
        spec = staged(spec)
        mounter = plugin.new_mounter(spec, pod)
        mounter.set_up(args or MounterArgs())
        return SimpleNamespace(spec=spec, mounter=mounter, target=mounter.get_path())

    return mount


@pytest.fixture
def tree(host) -> Callable[[], list[str]]:
    """What is below the root directory, without the mounts' content."""

    def listed() -> list[str]:
        found = []
        for directory, below, names in os.walk(host.root_dir):
            found.extend(os.path.relpath(os.path.join(directory, name), host.root_dir) for name in [*below, *names])
        return sorted(found)

    return listed


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """An event that scripted calls can wait for; set when the test ends."""
    event = threading.Event()
    yield event
    event.set()
