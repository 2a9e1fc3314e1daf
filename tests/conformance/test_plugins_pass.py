"""The conformance run over the plugins of this repository, and over the third-party plugin of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

# Imported here, once: what a run inside of this process imports is forgotten after it.
import volumehost.api.manifests
import volumehost.api.store
import volumehost.testing.conformance.run  # noqa: F401
from volumehost.testing.conformance.suite import all_checks

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKS = {check.name: check for check in all_checks()}

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: web}}
spec:
  securityContext: {{fsGroup: 3000}}
  containers: [{{name: main, image: web}}]
  volumes:
{volumes}
"""

#: Checks that say nothing about the plugin, and what of their reason must be said.
NO_DEVICE = {
    name: "it is no AttachableVolumePlugin"
    for name, check in CHECKS.items()
    if check.interface == "AttachableVolumePlugin"
} | {
    name: "it is no DeviceMountableVolumePlugin"
    for name, check in CHECKS.items()
    if check.interface == "DeviceMountableVolumePlugin"
}
NO_BLOCK = {
    name: "it is no BlockVolumePlugin" for name, check in CHECKS.items() if check.interface == "BlockVolumePlugin"
}
NO_EXPANSION = {
    "requires_fs_resize_is_answered_with_yes_or_no": "it is neither an ExpandableVolumePlugin nor",
    "expanding_gives_at_least_what_was_asked_for": "it is no ExpandableVolumePlugin",
    "growing_on_the_node_keeps_the_content": "it is no NodeExpandableVolumePlugin",
}
NO_STORAGE = {
    name: f"it is no {check.interface}"
    for name, check in CHECKS.items()
    if check.interface
    in {
        "PersistentVolumePlugin",
        "ProvisionableVolumePlugin",
        "DeletableVolumePlugin",
        "RecyclableVolumePlugin",
    }
}
NO_RESIZING = {
    name: "it is no ResizableEphemeralVolumePlugin"
    for name, check in CHECKS.items()
    if check.interface == "ResizableEphemeralVolumePlugin"
}
NO_REFRESH = {"a_refresh_that_fails_keeps_the_volume": "a refresh cannot be made to fail"}
NO_SECRET = {"secrets_are_shown_nowhere": "the volume has no options or attributes"}
INCOMPLETE = {"a_complete_rebuilt_spec_names_the_same_storage": "the rebuilt spec is marked as incomplete"}
NO_MOUNT = {"a_mount_that_fails_raises_from_the_tree_and_leaves_nothing": "set_up mounts nothing"}


@pytest.fixture
def assert_conforms(pytester):
    """Runs the kit; every check must pass, or be skipped for the reason given."""

    def run(plugin, name, volumes, skipped, but=""):
        """:param but: checks with that word in their names are left out."""
        (pytester.path / "volumes.yaml").write_text(volumes)
        options = ["-p", "no:cacheprovider", "--volume-plugin", plugin, "--volume-spec", "volumes.yaml", "-rs", "-v"]
        recorded = pytester.inline_run(*options, *(["-k", f"not {but}"] * bool(but)), name)
        reports = [each for each in recorded.getreports("pytest_runtest_logreport") if each.when == "call"]
        assert {each.nodeid.partition("::")[2] for each in reports} == {
            each for each in CHECKS if not but or but not in each
        }
        assert not [each.nodeid for each in reports if each.failed]
        reasons = {each.nodeid.partition("::")[2]: each.longrepr[2] for each in reports if each.skipped}
        assert reasons.keys() == skipped.keys()
        assert [name for name, reason in reasons.items() if skipped[name] not in reason] == []

    return run


@pytest.mark.parametrize(
    ("volume", "more"),
    [
        ("{name: data, emptyDir: {}}", NO_MOUNT),
        ("{name: memory, emptyDir: {medium: Memory, sizeLimit: 8Mi}}", {}),
    ],
    ids=["default", "memory"],
)
def test_empty_dir(assert_conforms, volume, more):
    skipped = {**NO_DEVICE, **NO_BLOCK, **NO_EXPANSION, **NO_STORAGE, **NO_REFRESH, **NO_SECRET, **INCOMPLETE, **more}
    name = "kubernetes.io/empty-dir"
    assert_conforms(name, name, POD.format(volumes=f"  - {volume}"), skipped)


def test_host_path(assert_conforms, pytester):
    base, path = pytester.mkdir("base"), pytester.mkdir("path")
    pytester.makeconftest(
        f"""
        import pytest
        from volumehost import VolumeConfig

        @pytest.fixture
        def volumehost_volume_config():
            return VolumeConfig(provisioning_enabled=True, other_attributes={{"base_dir": {str(base)!r}}})
        """
    )
    skipped = {
        **NO_DEVICE,
        **NO_BLOCK,
        **NO_EXPANSION,
        **NO_RESIZING,
        **NO_REFRESH,
        **NO_SECRET,
        **NO_MOUNT,
        **INCOMPLETE,
        "it_can_be_set_up_at_another_directory": "SetUpAt() does not make sense for host paths",
        "metrics_are_sensible_or_not_supported": "not supported",
        "the_group_of_the_pod_owns_a_managed_volume": "its attributes do not say managed",
    }
    name = "kubernetes.io/host-path"
    volume = f"  - {{name: host, hostPath: {{path: {path}, type: Directory}}}}"
    assert_conforms(name, name, POD.format(volumes=volume), skipped)
    assert list(path.iterdir()) == []
    assert [each for each in base.rglob("*") if each.is_file()] == []
    assert len(list((base / "hostpath_pv").iterdir())) == 0


OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, app.conf: "x = 1"}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: MARKER-of-a-secret}
---
"""
PROJECTED = "{name: files, projected: {sources: [{secret: {name: login}}, {configMap: {name: settings}}]}}"


def test_projected(assert_conforms):
    """The four plugins of files from the API are one but for what their files are made of.

    Kills have tests of their own, at every change and not between steps alone.
    """
    read_only = {"its_content_can_be_written": "the volume files is read-only"}
    skipped = {**NO_DEVICE, **NO_BLOCK, **NO_EXPANSION, **NO_STORAGE, **NO_RESIZING, **INCOMPLETE, **read_only}
    name = "kubernetes.io/projected"
    assert_conforms(name, name, OBJECTS + POD.format(volumes=f"  - {PROJECTED}"), skipped, but="killed")


def test_the_plugin_of_a_third_party(assert_conforms, pytester):
    pytester.syspathinsert(REPOSITORY / "tests" / "packages" / "acme-volumes" / "src")
    volume = "  - {name: work, flexVolume: {driver: example.com/scratch, options: {size: 4Mi}}}"
    skipped = {**NO_DEVICE, **NO_BLOCK, **NO_EXPANSION, **NO_STORAGE, **NO_RESIZING, **NO_REFRESH, **INCOMPLETE}
    assert_conforms("acme_volumes.plugin:ScratchPlugin", "example.com/scratch", POD.format(volumes=volume), skipped)
