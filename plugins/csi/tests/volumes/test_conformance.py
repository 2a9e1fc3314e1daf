"""The house's conformance run for plugins, on volumes of a fake driver in a process of its own."""

from __future__ import annotations

import pytest

# Imported here, once: what a run inside of this process imports is forgotten after it.
import volumehost.api.manifests
import volumehost.api.store
import volumehost.testing.conformance.run  # noqa: F401 - imported for its effect
import volumehost_csi_kit.stubs  # noqa: F401 - the same
from volumehost_csi_kit.fake import FakeDriverProcess

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(300)]

#: The plugin, with a driver that is registered whatever root directory a check uses.
CONNECTED = """
import os

from volumehost_csi.client import NodeClient
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.endpoints import dial


class OneDriver:
    channel = client = None

    def node_client(self, name, timeout=0):
        if self.channel is None:
            self.channel = dial({endpoint!r})
            self.client = NodeClient(name, self.channel)
        return self.client

    def close(self):
        if self.channel is not None:
            self.channel.close()


class Connected(CSIPlugin):
    @property
    def _services(self):
        services = super()._services
        if services._drivers is None:
            services._drivers = OneDriver()
        return services
"""

CSI_DRIVER = """
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: fake.csi.example.com}
spec:
  attachRequired: false
  podInfoOnMount: true
  fsGroupPolicy: File
  volumeLifecycleModes: [Persistent, Ephemeral]
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: credentials, namespace: default}
stringData: {key: hunter2-hunter2}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-NAME}
spec:
  capacity: {storage: 64Mi}
  accessModes: [ReadWriteMany]
  claimRef: {name: NAME, namespace: default}
  volumeMode: MODE
  csi:
    driver: fake.csi.example.com
    volumeHandle: handle-of-NAME
    volumeAttributes: {pool: fast}
    nodeStageSecretRef: {name: credentials, namespace: default}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, namespace: default}
spec:
  accessModes: [ReadWriteMany]
  volumeName: pv-NAME
  volumeMode: MODE
  storageClassName: ""
  resources: {requests: {storage: 64Mi}}
"""
FILES = VOLUME.replace("NAME", "files").replace("MODE", "Filesystem")
DEVICE = VOLUME.replace("NAME", "device").replace("MODE", "Block")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  securityContext: {fsGroup: 3000}
  containers: [{name: main, image: web}]
  volumes:
"""

#: Checks that do not hold for a plugin that fronts every driver, and why.
NOT_FOR_A_FRONT = {
    "its_name_is_not_reserved": "the plugin in a file of its own comes from no distribution",
    "it_supports_no_volume_of_others": "any driver may register, so every CSI source is its own (CSI-PLUG-06)",
    "the_volume_name_of_other_kinds_is_refused": "the same",
}
#: What inline volumes have no answer to (CSI-EPH-06).
NOT_FOR_INLINE = dict.fromkeys(
    ("asking_has_no_effect", "the_volume_name_is_stable", "the_volume_name_is_the_same_in_another_process"),
    "an inline volume has no name of its own",
)


@pytest.fixture
def failures(pytester, tmp_path_factory):
    """Runs the kit on the volumes; what failed, by name, with the reason."""

    def run(objects, volumes, *options, **driver):
        directory = str(tmp_path_factory.mktemp("d"))
        endpoint = f"unix://{directory}/csi.sock"
        pytester.makepyfile(connected=CONNECTED.format(endpoint=endpoint))
        pytester.syspathinsert()
        pod = POD + "".join(f"  - {volume}\n" for volume in volumes)
        (pytester.path / "volumes.yaml").write_text("---".join([CSI_DRIVER, *objects, pod]))
        asked = ["--volume-plugin", "connected:Connected", "--volume-spec", "volumes.yaml", "kubernetes.io/csi"]
        with FakeDriverProcess(endpoint, f"{directory}/files", mounts="bind", **driver):
            recorded = pytester.inline_run("-p", "no:cacheprovider", *asked, *options)
        reports = [each for each in recorded.getreports("pytest_runtest_logreport") if each.when == "call"]
        assert len([each for each in reports if each.passed]) > 20
        return {each.nodeid.partition("::")[2]: str(each.longrepr) for each in reports if each.failed}

    return run


def unexpected(found, *known):
    expected = {name for each in known for name in each}
    return {name: reason for name, reason in found.items() if name.partition("[")[0] not in expected}


def test_persistent_volumes(failures):
    volumes = [f"{{name: {name}, persistentVolumeClaim: {{claimName: {name}}}}}" for name in ("files", "device")]
    node = ["STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME"]
    found = failures([SECRET, FILES, DEVICE], volumes, node=node, block="loop")
    assert unexpected(found, NOT_FOR_A_FRONT) == {}


def test_an_inline_volume(failures):
    volume = "{name: scratch, csi: {driver: fake.csi.example.com, volumeAttributes: {size: small}}}"
    # What is killed in between are the steps of the other run.
    found = failures([], [volume], "-k", "not killed", node=["GET_VOLUME_STATS"])
    assert unexpected(found, NOT_FOR_A_FRONT, NOT_FOR_INLINE) == {}
