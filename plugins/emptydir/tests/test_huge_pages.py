"""emptyDir on huge pages: EMPTYDIR-29 to -31, -36, with the kernel's own hugetlbfs."""

from __future__ import annotations

import mmap
import os

import pytest
from filelock import FileLock

from volumehost import MounterArgs
from volumehost.api.objects import Container, ResourceRequirements
from volumehost.errors import MountError, OperationNotSupportedError, SpecError, StillMountedError
from volumehost.mount.mounter import LinuxMounter
from volumehost_emptydir.size import page_size

TWO_MIB = "hugepages-2Mi"
PAGES = "/proc/sys/vm/nr_hugepages"


def container(**resources) -> Container:
    return Container(name="c", resources=ResourceRequirements(**resources))


class TestPageSize:
    """Which size a pod's requests lead to."""

    def test_the_only_size_requested(self, make_pod):
        assert page_size("HugePages", make_pod(requests={TWO_MIB: "4Mi"})) == "2Mi"

    def test_the_named_size(self, make_pod):
        pod = make_pod(requests={TWO_MIB: "4Mi", "hugepages-1Gi": "1Gi"})
        assert page_size("HugePages-1Gi", pod) == "1Gi"

    def test_the_option_is_the_canonical_text(self, make_pod):
        assert page_size("HugePages-2048Ki", make_pod(requests={TWO_MIB: "2Mi"})) == "2Mi"
        assert page_size("HugePages", make_pod(requests={"hugepages-2048Ki": "2Mi"})) == "2Mi"

    def test_several_sizes_need_a_named_medium(self, make_pod):
        pod = make_pod(requests={TWO_MIB: "4Mi", "hugepages-1Gi": "1Gi"})
        with pytest.raises(SpecError, match="can't be used if container requests multiple huge page sizes") as caught:
            page_size("HugePages", pod)
        assert "HugePages-1Gi, HugePages-2Mi" in caught.value.hint

    @pytest.mark.parametrize("medium", ["HugePages", "HugePages-2Mi"])
    def test_without_a_request_there_is_nothing(self, make_pod, medium):
        with pytest.raises(SpecError, match=f"medium {medium}: hugePages storage requested, but there is no resource"):
            page_size(medium, make_pod(requests={"hugepages-1Gi": "1Gi"} if "-" in medium else {}))

    def test_pod_init_and_regular_containers_count_ephemeral_ones_do_not(self, make_pod):
        request = {TWO_MIB: "2Mi"}
        assert (
            page_size("HugePages", make_pod(resources=ResourceRequirements(requests=request), containers=[])) == "2Mi"
        )
        assert page_size("HugePages", make_pod(init_containers=[container(requests=request)])) == "2Mi"
        with pytest.raises(SpecError):
            page_size("HugePages", make_pod(containers=[], ephemeral_containers=[container(requests=request)]))

    def test_a_limit_alone_is_a_request(self, make_pod):
        assert page_size("HugePages", make_pod(limits={TWO_MIB: "2Mi"})) == "2Mi"

    def test_a_request_of_nothing_is_none(self, make_pod):
        with pytest.raises(SpecError):
            page_size("HugePages", make_pod(requests={TWO_MIB: "0"}))

    @pytest.mark.parametrize("medium", ["HugePages-", "HugePages-big", "HugePages-2MiB"])
    def test_a_size_that_is_no_quantity(self, make_pod, medium):
        with pytest.raises(SpecError, match="huge pages"):
            page_size(medium, make_pod(requests={TWO_MIB: "2Mi"}))


@pytest.fixture
def huge_pages(tmp_path_factory):
    """Four reserved pages, given back afterwards; skipped where the machine has none to spare."""
    with FileLock(tmp_path_factory.getbasetemp().parent / "hugepages.lock", timeout=60):
        with open(PAGES) as file:
            before = int(file.read())
        with open(PAGES, "w") as file:
            file.write(str(before + 4))
        try:
            with open(PAGES) as file:
                if int(file.read()) < before + 4:
                    pytest.skip("no memory for huge pages")
            yield
        finally:
            with open(PAGES, "w") as file:
                file.write(str(before))


@pytest.mark.root
class TestMount:
    def test_it_is_a_hugetlbfs_that_gives_huge_pages(self, plugin, make_spec, make_pod, data_dir, mounts, huge_pages):
        pod = make_pod(requests={TWO_MIB: "2Mi"})
        mounter = plugin.new_mounter(make_spec("HugePages"), pod)
        mounter.set_up(MounterArgs(fs_group=5000))
        (mount,) = mounts()
        assert (mount.fs_type, mount.source) == ("hugetlbfs", "nodev")
        assert "pagesize=2M" in mount.super_options
        assert os.stat(data_dir).st_gid == 5000
        fd = os.open(f"{data_dir}/page", os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(fd, 2 << 20)
            with mmap.mmap(fd, 2 << 20) as page:
                page[:4] = b"data"
                assert page[:4] == b"data"
        finally:
            os.close(fd)
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()
        assert mounts() == []
        assert not os.path.exists(data_dir)

    @pytest.mark.parametrize("medium", ["HugePages", "HugePages-2Mi"])
    def test_set_up_again_makes_no_second_mount(self, plugin, make_spec, make_pod, mounts, medium):
        pod = make_pod(requests={TWO_MIB: "2Mi"})
        plugin.new_mounter(make_spec(medium), pod).set_up(MounterArgs())
        plugin.new_mounter(make_spec(medium), pod).set_up(MounterArgs())
        assert len(mounts()) == 1
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()

    def test_another_page_size_than_the_mounted_one_is_refused(self, plugin, make_spec, make_pod, data_dir, mounts):
        if not os.path.isdir("/sys/kernel/mm/hugepages/hugepages-1048576kB"):
            pytest.skip("this machine has no pages of 1Gi")
        pod = make_pod(requests={TWO_MIB: "2Mi"})
        os.makedirs(data_dir)
        LinuxMounter().mount("nodev", data_dir, "hugetlbfs", ["pagesize=1Gi"])
        with pytest.raises(MountError, match="pagesize '1Gi' and requested medium size '2Mi' differ"):
            plugin.new_mounter(make_spec("HugePages-2Mi"), pod).set_up(MounterArgs())
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()
        assert mounts() == []

    def test_a_tmpfs_in_its_place_is_refused(self, plugin, make_spec, make_pod, data_dir):
        pod = make_pod(requests={TWO_MIB: "2Mi"})
        os.makedirs(data_dir)
        LinuxMounter().mount("tmpfs", data_dir, "tmpfs", ["size=1M"])
        with pytest.raises(MountError, match="something else is mounted there already: tmpfs"):
            plugin.new_mounter(make_spec("HugePages"), pod).set_up(MounterArgs())
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()

    def test_a_size_that_the_machine_does_not_have_leaves_nothing(self, plugin, host, make_spec, make_pod, data_dir):
        pod = make_pod(requests={"hugepages-3Mi": "3Mi"})
        with pytest.raises(MountError):
            plugin.new_mounter(make_spec("HugePages-3Mi"), pod).set_up(MounterArgs())
        assert not os.path.exists(data_dir)

    def test_its_size_cannot_change(self, plugin, make_spec, make_pod):
        pod = make_pod(requests={TWO_MIB: "2Mi"})
        plugin.new_mounter(make_spec("HugePages"), pod).set_up(MounterArgs())
        with pytest.raises(OperationNotSupportedError, match="huge pages"):
            plugin.resize_ephemeral_volume(make_spec("HugePages"), pod, 4 << 20)
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()

    def test_a_live_mount_on_top_is_not_taken_for_the_volume(self, plugin, make_spec, make_pod, data_dir, directory):
        pod = make_pod(requests={TWO_MIB: "2Mi"})
        plugin.new_mounter(make_spec("HugePages"), pod).set_up(MounterArgs())
        os.mkdir(f"{directory}/data")
        LinuxMounter().mount(f"{directory}/data", data_dir, options=["bind"])
        with pytest.raises(StillMountedError):
            plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()
        LinuxMounter().unmount(data_dir)
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()
