"""A container's volumes in an OCI runtime configuration, alone and merged into one that somebody else wrote."""

import copy
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.errors import ContainerRuntimeError, ManifestError
from volumehost.node.workloads.containers import ContainerDevice
from volumehost.runtimes.oci import merge_into, oci_fragment


@pytest.fixture
def device(tmp_path):
    node = tmp_path / "node"
    os.mknod(node, stat.S_IFBLK | 0o640, os.makedev(7, 3))
    os.chmod(node, 0o640)
    os.chown(node, 0, 6)
    return ContainerDevice("d", str(node), "/dev/xvda")


def options_of(fragment):
    return {mount["destination"]: mount["options"] for mount in fragment["mounts"]}


def test_mounts(container, mount):
    fragment = oci_fragment(
        container(
            mount("/a/b"), mount("/a", read_only=True), mount("/c", read_only=True, recursive_read_only="Enabled")
        )
    )
    assert fragment == {
        "mounts": [
            {"destination": "/a", "type": "bind", "source": "/host/v", "options": ["rbind", "rprivate", "ro"]},
            {"destination": "/c", "type": "bind", "source": "/host/v", "options": ["rbind", "rprivate", "rro"]},
            {"destination": "/a/b", "type": "bind", "source": "/host/v", "options": ["rbind", "rprivate", "rw"]},
        ]
    }


def test_a_volume_in_place_of_the_root_is_refused(container, mount):
    with pytest.raises(ContainerRuntimeError, match="an OCI runtime on this kernel cannot mount a volume"):
        oci_fragment(container(mount("/")))


OLD = """
from volumehost.node.workloads.containers import ContainerMount, ContainerMounts
from volumehost.runtimes.oci import oci_fragment
for mode in ("IfPossible", "Enabled"):
    mount = ContainerMount("v", "/host/v", "/v", read_only=True, recursive_read_only=mode)
    try:
        print(oci_fragment(ContainerMounts("app", "regular", (mount,)))["mounts"][0]["options"][-1])
    except Exception as error:
        print(error.reason)
"""


@pytest.mark.root
def test_on_a_kernel_that_cannot_do_it_recursively():
    old_kernel = Path(__file__).parents[1] / "mount" / "old_kernel.py"
    command = [sys.executable, str(old_kernel), sys.executable, "-c", OLD]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == [
        "ro",
        "an OCI runtime on this kernel cannot make a mount read-only with all that is mounted below it",
    ]


@pytest.mark.parametrize(
    ("kinds", "root"),
    [
        (["None"], None),
        (["HostToContainer", "None"], "rslave"),
        (["Bidirectional", "HostToContainer"], "rshared"),
    ],
)
def test_the_root_lets_through_what_the_mounts_need(container, mount, kinds, root):
    mounts = [mount(f"/{kind}", propagation=kind, host_propagation="shared") for kind in kinds]
    fragment = oci_fragment(container(*mounts))
    assert fragment.get("linux", {}).get("rootfsPropagation") == root
    assert options_of(fragment).get("/HostToContainer", ["rslave"])[-2:][0] == "rslave"


@pytest.mark.root
def test_devices_with_the_rules_that_let_them_be_used(container, device):
    assert oci_fragment(container(device))["linux"] == {
        "devices": [
            {"path": "/dev/xvda", "type": "b", "major": 7, "minor": 3, "fileMode": 0o640, "uid": 0, "gid": 6},
        ],
        "resources": {"devices": [{"allow": True, "type": "b", "major": 7, "minor": 3, "access": "rwm"}]},
    }
    read_only = ContainerDevice("d", device.host_path, "/dev/xvda", read_only=True)
    (rule,) = oci_fragment(container(read_only))["linux"]["resources"]["devices"]
    assert rule["access"] == "r"


def test_groups(container):
    assert oci_fragment(container(groups=(5,))) == {"mounts": [], "process": {"user": {"additionalGids": [5]}}}
    assert oci_fragment(container()) == {"mounts": []}


# --- merged ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def config():
    return {
        "ociVersion": "1.0.0",
        "process": {"user": {"uid": 0, "additionalGids": [5, 6]}, "args": ["sh"]},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/dev/shm/", "type": "tmpfs", "source": "shm"},
        ],
        "linux": {
            "devices": [{"path": "/dev/xvda", "type": "c"}, {"path": "/dev/own", "type": "c"}],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }


@pytest.mark.root
def test_everything_comes_to_what_is_there(config, container, mount, device):
    before = copy.deepcopy(config)
    merged = merge_into(config, container(mount("/dev/shm"), mount("/a/b/c"), mount("/a"), device, groups=(6, 7)))
    assert config == before
    assert [(each["destination"], each["type"]) for each in merged["mounts"]] == [
        ("/proc", "proc"),
        ("/dev", "tmpfs"),
        ("/a", "bind"),
        ("/dev/shm", "bind"),
        ("/a/b/c", "bind"),
    ]
    assert [(each["path"], each["type"]) for each in merged["linux"]["devices"]] == [
        ("/dev/own", "c"),
        ("/dev/xvda", "b"),
    ]
    assert [rule["allow"] for rule in merged["linux"]["resources"]["devices"]] == [False, True]
    assert merged["process"] == {"user": {"uid": 0, "additionalGids": [5, 6, 7]}, "args": ["sh"]}
    again = merge_into(merged, container(mount("/dev/shm"), mount("/a/b/c"), mount("/a"), device, groups=(6, 7)))
    assert again["mounts"] == merged["mounts"]


def test_a_volume_that_holds_another_mount_does_not_hide_it(config, container, mount):
    config["mounts"].insert(0, {"destination": "/v/deep/inside", "type": "tmpfs", "source": "tmpfs"})
    merged = merge_into(config, container(mount("/v/deep")))
    places = [each["destination"] for each in merged["mounts"]]
    assert places.index("/v/deep") < places.index("/v/deep/inside")


@pytest.mark.parametrize("empty", [{}, {"mounts": None, "linux": None, "process": None}])
@pytest.mark.root
def test_what_is_missing_is_made(empty, container, mount, device):
    merged = merge_into(empty, container(mount("/a"), device, groups=(5,)))
    assert merged == oci_fragment(container(mount("/a"), device, groups=(5,)))


@pytest.mark.parametrize(
    ("given", "needed", "result"),
    [("rprivate", "HostToContainer", "rslave"), ("rshared", "HostToContainer", "rshared"), ("odd", "None", "odd"),
     ("slave", "Bidirectional", "rshared"), ("odd", "Bidirectional", "rshared")],
)  # fmt: skip
def test_the_stronger_propagation_of_the_root_wins(container, mount, given, needed, result):
    item = mount(propagation=needed, host_propagation="shared")
    assert merge_into({"linux": {"rootfsPropagation": given}}, container(item))["linux"]["rootfsPropagation"] == result


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        ({"mounts": {}}, "$.mounts: expected a list of objects"),
        ({"mounts": ["/a"]}, "$.mounts: expected a list of objects"),
        ({"linux": []}, "$.linux: expected an object"),
        ({"linux": {"devices": 1}}, "$.linux.devices: expected a list of objects"),
        ({"linux": {"resources": "x"}}, "$.linux.resources: expected an object"),
        ({"linux": {"resources": {"devices": {}}}}, "$.linux.resources.devices: expected a list of objects"),
        ({"process": []}, "$.process: expected an object"),
        ({"process": {"user": 1}}, "$.process.user: expected an object"),
        ({"process": {"user": {"additionalGids": ["x"]}}}, "$.process.user.additionalGids: expected a list of numbers"),
    ],
)
@pytest.mark.root
def test_what_is_no_configuration_is_told(container, mount, device, spoilt, told):
    with pytest.raises(ManifestError) as caught:
        merge_into(spoilt, container(mount("/a"), device, groups=(5,)))
    assert caught.value.problems == (told,)
