"""The pytest plugin that ``volumehost`` installs: fixtures for authors of volume plugins, and the conformance run.

It is imported in every pytest run of an environment that has volumehost, so nothing but pytest is imported here until
a fixture is used or a plugin is named with ``--volume-plugin``.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.spec import VolumeConfig
    from volumehost.testing.leaks import LeakGuard
    from volumehost.testing.plugin_host import PluginTestHost


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the conformance run."""
    group = parser.getgroup("volumehost", "volume plugins (volumehost)")
    group.addoption(
        "--volume-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="test this volume plugin for conformance: its qualified name (example.com/nfs) when it is installed, "
        "or module:Object. Can be given several times.",
    )
    group.addoption(
        "--volume-spec",
        action="append",
        default=[],
        metavar="FILE",
        help="manifests of pods with volumes of the plugin, or of PersistentVolumes, which the conformance run mounts; "
        "with the claims, secrets and so on that they need. Can be given several times.",
    )
    group.addoption(
        "--volume-timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="seconds that one conformance check may take; 60 unless it is given.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the conformance run when a plugin was named."""
    config.addinivalue_line("markers", "volume_conformance: a check of the volume plugin conformance run")
    if config.getoption("volume_plugin"):
        from volumehost.testing.conformance.run import ConformanceRun

        config.pluginmanager.register(ConformanceRun(config), "volumehost-conformance")


@pytest.fixture(scope="session")
def volumehost_namespace() -> None:
    """The test process has a mount namespace of its own: mounts made in tests stay in it and die with it.

    Tests that mount ask for it. They are skipped, with the reason, where that cannot be had.
    """
    from volumehost.testing.namespaces import enter_private_mount_namespace, why_not_private

    reason = why_not_private()
    if not reason:
        try:
            enter_private_mount_namespace()
        except OSError as error:
            reason = f"{error.strerror}: the privilege CAP_SYS_ADMIN is missing"
    if reason:
        pytest.skip(f"tests that mount: {reason}")


@pytest.fixture
def volumehost_volume_config() -> VolumeConfig:
    """What ``volumehost_host`` tells plugins about how to behave. Override it to set something."""
    from volumehost.spec import VolumeConfig

    return VolumeConfig()


@pytest.fixture
def volumehost_api(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[ApiClient | None]:
    """The API of ``volumehost_host``: None unless it is overridden.

    A check of the conformance run gets a store with the secrets, claims and so on of the ``--volume-spec`` files.
    """
    objects = getattr(request.node, "volume_objects", ())
    if not objects:
        yield None
        return
    from volumehost.api.store import EmbeddedStore

    with EmbeddedStore(f"{tmp_path}/api/store.sqlite3") as store:
        for obj in objects:
            store.create(obj)
        yield store


@pytest.fixture
def volumehost_host(
    tmp_path: object, volumehost_volume_config: VolumeConfig, volumehost_api: ApiClient | None
) -> Iterator[PluginTestHost]:
    """A real host of a node over the test's temporary directory: what a plugin's ``init`` gets.

    Its events are in ``recorder.events``. Plugins that wrap others find the installed ones.
    """
    from volumehost.testing.plugin_host import PluginTestHost

    host = PluginTestHost(str(tmp_path), volume_config=volumehost_volume_config, api=volumehost_api)
    yield host
    host.close()


@pytest.fixture
def volumehost_plugins(pytestconfig: pytest.Config) -> Sequence[object]:
    """What ``volumehost_plugin_manager`` loads: the plugins named with ``--volume-plugin``, as classes or objects.

    Empty without that option; the manager then finds what is installed. Override it to name your plugin.
    """
    asked = pytestconfig.getoption("volume_plugin")
    if not asked:
        return ()
    from volumehost.testing.conformance.subject import find_plugin

    return [find_plugin(name).thing for name in asked]


@pytest.fixture
def volumehost_plugin_manager(
    volumehost_host: PluginTestHost, volumehost_plugins: Sequence[object]
) -> Iterator[VolumePluginManager]:
    """A loaded plugin manager on ``volumehost_host``: ``find_plugin_by_name`` and ``find_plugin_by_spec`` give plugins
    as the host sees them, checked and with typed hooks. Plugins that do not load, or not shut down, fail the test.
    """
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.loader.prober import EntryPointProber

    manager = VolumePluginManager()
    volumehost_host.plugin_manager = manager
    prober = None if volumehost_plugins else EntryPointProber()
    errors = manager.init_plugins(volumehost_plugins, prober, volumehost_host)
    if errors:
        pytest.fail("\n".join(map(str, errors)), pytrace=False)
    yield manager
    errors = manager.close()
    if errors:
        pytest.fail("\n".join(map(str, errors)), pytrace=False)


@pytest.fixture
def volumehost_pod() -> Callable[..., Pod]:
    """Makes pods: ``volumehost_pod("data=emptyDir:Memory,sizeLimit=64Mi", fs_group=2000)``.

    See ``volumehost.testing.pods``; ``pod_from`` there takes whole manifests.
    """
    from volumehost.testing.pods import make_pod

    return make_pod


@pytest.fixture
def volumehost_leaks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeakGuard]:
    """Fails a test that leaves something behind, and names it: mounts, loop devices over files of the test, threads
    that are no daemons, processes, open descriptors. What can be taken away is taken away then.

    Ask for it before other fixtures: ``pytestmark = pytest.mark.usefixtures("volumehost_leaks")``.
    """
    from volumehost.testing.leaks import LeakGuard

    with LeakGuard(str(tmp_path_factory.getbasetemp())) as guard:
        yield guard
        left = guard.leaks()
        if left:
            guard.take_away()
    if left:
        pytest.fail("the test left behind:\n" + "\n".join(f"  {leak}" for leak in left), pytrace=False)
