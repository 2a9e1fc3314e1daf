"""What to mount where in each container (SUBPATH-01 to -05), from real volumes."""

import os

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import FailedPreconditionError, InvalidObjectError, UnsafePathError

pytestmark = pytest.mark.root


@pytest.fixture
def mounted(manager, bind, nfs):
    """Mounts a pod with volume ``v`` and hands back its containers' mounts; ``containers`` are in wire form."""
    node = manager(bind())

    def run(*mounts, **kinds):
        def containers(prefix, lists):
            return [
                {"name": f"{prefix}{index}", "image": "i", "volumeMounts": list(found), **extra}
                for index, (found, extra) in enumerate(lists)
            ]

        spec = {
            "containers": containers("c", kinds.get("regular", [(mounts, kinds.get("extra", {}))])),
            "initContainers": containers("i", kinds.get("init", [])),
            "volumes": [nfs("v"), nfs("w")],
        }
        status = node.mount_pod({"metadata": {"name": "web", "labels": {"app": "x"}}, "spec": spec}, timeout=20)
        run.node, run.status = node, status
        run.path = {volume.volume: volume.path for volume in status.volumes}
        return node.container_mounts(status)

    return run


def test_each_container_gets_its_own_mounts(mounted):
    (init, first, second) = mounted(
        init=[([{"name": "w", "mountPath": "/setup"}], {})],
        regular=[
            ([{"name": "v", "mountPath": "/data"}, {"name": "w", "mountPath": "/w", "readOnly": True}], {}),
            ([{"name": "v", "mountPath": "/other", "mountPropagation": "HostToContainer"}], {}),
        ],
    )
    assert [(found.container, found.kind) for found in (init, first, second)] == [
        ("i0", "init"),
        ("c0", "regular"),
        ("c1", "regular"),
    ]
    data, w = first.mounts
    assert (data.volume, data.host_path, data.container_path) == ("v", mounted.path["v"], "/data")
    assert (data.read_only, data.propagation) == (False, "None")
    assert w.read_only
    assert second.mounts[0].propagation == "HostToContainer"
    assert first.to_dict()["mounts"][0]["host_path"] == mounted.path["v"]


def test_subpath_is_bound_to_a_safe_place(mounted, data, mounts):
    os.makedirs(f"{data}/a/b")
    with open(f"{data}/a/b/inside", "w") as file:
        file.write("x")
    ((mount,),) = [found.mounts for found in mounted({"name": "v", "mountPath": "/d", "subPath": "a/b"})]
    assert mount.sub_path == "a/b"
    assert mount.host_path.endswith("/volume-subpaths/v/c0/0")
    assert os.listdir(mount.host_path) == ["inside"]
    mounted.node.unmount_pod("web", timeout=20)
    assert mounts() == []
    assert os.listdir(f"{mounted.node.root_dir}/pods") == []


def test_subpath02_a_missing_one_is_made(mounted, data):
    mounted({"name": "v", "mountPath": "/d", "subPath": "new/dir"})
    assert os.path.isdir(f"{data}/new/dir")


@pytest.mark.parametrize("subpath", ["/etc", "../x"])
def test_subpath01_hostile_texts_are_refused_by_the_api(mounted, subpath):
    with pytest.raises(InvalidObjectError, match="subPath"):
        mounted({"name": "v", "mountPath": "/d", "subPath": subpath})


@pytest.mark.parametrize(("value", "text"), [("/etc", "must not be an absolute path"), ("../x", "must not contain")])
def test_subpath01_and_after_expansion_here(mounted, value, text):
    extra = {"env": [{"name": "WHERE", "value": value}]}
    with pytest.raises(UnsafePathError, match=text):
        mounted({"name": "v", "mountPath": "/d", "subPathExpr": "$(WHERE)"}, extra=extra)


def test_br71_a_link_that_leads_out_is_refused_without_details(mounted, data):
    os.symlink("/etc", f"{data}/link")
    with pytest.raises(UnsafePathError) as caught:
        mounted({"name": "v", "mountPath": "/d", "subPath": "link"})
    assert caught.value.reason == 'failed to prepare subPath for volumeMount "v" of container "c0"'
    assert "no part of a subPath may be a link that leads out of the volume" in caught.value.hint


def test_subpath05_a_pod_that_is_not_mounted(mounted):
    mounted({"name": "v", "mountPath": "/d"})
    pod = mounted.node.api.get(Pod, "web", "default")
    mounted.node.unmount_pod("web", timeout=20)
    with pytest.raises(FailedPreconditionError, match="not mounted"):
        mounted.node.container_mounts(pod)


def test_subpath_expressions(mounted, data):
    extra = {"env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
    ((mount,),) = [
        found.mounts for found in mounted({"name": "v", "mountPath": "/d", "subPathExpr": "logs/$(POD)"}, extra=extra)
    ]
    assert mount.sub_path == "logs/web"
    assert os.path.isdir(f"{data}/logs/web")
