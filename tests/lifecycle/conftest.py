"""Each test runs against the loop driver, and against another driver whose socket an environment variable names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for subject.py: tests are imported without a package

from subject import Machine, Subject

#: The socket of a CSI driver that runs already: ``unix:///run/csi.sock``. What it can do it is asked.
ENDPOINT = "VOLUMEHOST_TEST_CSI_ENDPOINT"
#: Set to 1 when that driver supports inline volumes, which no driver can be asked.
INLINE = "VOLUMEHOST_TEST_CSI_INLINE"

LOOP = "loop.csi.volumehost"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "subject" in metafunc.fixturenames:
        metafunc.parametrize("subject", ["loop", *(["endpoint"] if ENDPOINT in os.environ else [])], indirect=True)


@pytest.fixture(scope="session")
def subject(request: pytest.FixtureRequest) -> Subject:
    """The driver under test."""
    if request.param == "endpoint":
        return external_subject(os.environ[ENDPOINT])
    return Subject(
        LOOP,
        plugin=frozenset({"CONTROLLER_SERVICE", "VOLUME_ACCESSIBILITY_CONSTRAINTS"}),
        controller=frozenset(
            {"CREATE_DELETE_VOLUME", "PUBLISH_UNPUBLISH_VOLUME", "CREATE_DELETE_SNAPSHOT", "CLONE_VOLUME"}
            | {"EXPAND_VOLUME", "LIST_VOLUMES"}
        ),
        node=frozenset({"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "GET_VOLUME_STATS"}),
        inline=True,
    )


def external_subject(endpoint: str) -> Subject:
    """Ask the driver its name and what it can do."""
    from volumehost_csi_kit import csi, stubs
    from volumehost_csi_kit.endpoints import dial

    def names(enum: object, values: object) -> frozenset[str]:
        return frozenset(enum.Name(value) for value in values if value)  # type: ignore[attr-defined]

    with dial(endpoint) as channel:
        identity = stubs.IdentityStub(channel)
        name = identity.GetPluginInfo(csi.GetPluginInfoRequest(), timeout=30, wait_for_ready=True).name
        services = identity.GetPluginCapabilities(csi.GetPluginCapabilitiesRequest(), timeout=30).capabilities
        plugin = names(csi.PluginCapability.Service.Type, (each.service.type for each in services))
        node = stubs.NodeStub(channel).NodeGetCapabilities(csi.NodeGetCapabilitiesRequest(), timeout=30)
        controller: frozenset[str] = frozenset()
        if "CONTROLLER_SERVICE" in plugin:
            answer = stubs.ControllerStub(channel).ControllerGetCapabilities(
                csi.ControllerGetCapabilitiesRequest(), timeout=10
            )
            controller = names(csi.ControllerServiceCapability.RPC.Type, (x.rpc.type for x in answer.capabilities))
    return Subject(
        name,
        plugin=plugin,
        controller=controller,
        node=names(csi.NodeServiceCapability.RPC.Type, (each.rpc.type for each in node.capabilities)),
        endpoint=endpoint,
        namespace=os.environ["VOLUMEHOST_TEST_OUTER_NAMESPACE"],
        inline=os.environ.get(INLINE) == "1",
    )


@pytest.fixture
def machine(subject: Subject, tmp_path: Path) -> Iterator[Machine]:
    """A root directory of its own, with the driver registered; cleaned up whatever the test did."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("VOLUMEHOST_", "_VOLUMEHOST"))}
    root, work = tmp_path / "root", tmp_path / "work"
    work.mkdir()
    made = Machine(root, work, subject, {**kept, "VOLUMEHOST_ROOT_DIR": str(root), "LC_ALL": "C.UTF-8"})
    if subject.endpoint:
        made("drivers", "register", subject.name, subject.endpoint)
    try:
        yield made
    finally:
        made.end()
        made.try_("unmount", "--all", "--timeout", "30s")
        for each in made.get("pvc"):
            made.try_("delete", "pvc", each["metadata"]["name"], "--timeout", "30s")
        left = made.left_behind()
        made.shell('for path in "$@"; do umount "$path"; done', *reversed(made.mounts()))
    assert left == []
    assert made.drivers_running() == []
