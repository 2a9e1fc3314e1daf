"""From a container's SELinux options to the label of its files (SEL-01); the machine's SELinux is a directory here."""

import pytest

from volumehost.api.objects import SELinuxOptions
from volumehost.errors import SELinuxLabelError
from volumehost.mount.hostutil import LinuxHostUtils
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.selinux import SELinux
from volumehost.testing.fake_hostutil import FakeHostUtils

OPTIONS = SELinuxOptions(user="u", role="r", type="container_t", level="s0:c1,c2")


@pytest.fixture
def machine(tmp_path):
    """SELinux of a machine whose policy, and what it says of containers, the test decides."""

    def make(*, on=True, config="SELINUXTYPE=targeted\n", policy="targeted", contexts=None):
        filesystem, configuration = tmp_path / "fs", tmp_path / "etc"
        filesystem.mkdir()
        if on:
            (filesystem / "enforce").write_text("1")
        (configuration / policy / "contexts").mkdir(parents=True)
        if config is not None:
            (configuration / "config").write_text(config)
        text = 'process = "system_u:system_r:container_t:s0"\nfile = "system_u:object_r:container_file_t:s0"\n'
        (configuration / policy / "contexts" / "lxc_contexts").write_text(text if contexts is None else contexts)
        return SELinux(str(filesystem), str(configuration))

    return make


@pytest.mark.parametrize(
    ("options", "label"),
    [
        (OPTIONS, "u:object_r:container_file_t:s0:c1,c2"),
        (SELinuxOptions(level="s0:c1,c2"), "system_u:object_r:container_file_t:s0:c1,c2"),
        (SELinuxOptions(level="s0-s0:c0.c1023"), "system_u:object_r:container_file_t:s0-s0:c0.c1023"),
        (SELinuxOptions(type="spc_t"), ""),
        (SELinuxOptions(), ""),
    ],
)
def test_sel01_user_and_level_are_the_containers_the_rest_is_the_policys(machine, options, label):
    assert machine().file_label(options) == label
    assert LinuxHostUtils(LinuxMounter(), selinux=SELinux("/nonexistent")).selinux_file_label(options) == ""


def test_sel01_where_selinux_is_off_there_is_no_label(machine):
    selinux = machine(on=False)
    assert selinux.enabled() is False
    assert selinux.file_label(OPTIONS) == ""


@pytest.mark.parametrize(
    "broken",
    [
        SELinuxOptions(user='u"', level="s0"),
        SELinuxOptions(role="r:r", level="s0"),
        SELinuxOptions(type="a b", level="s0"),
        SELinuxOptions(level="c1,c2"),
        SELinuxOptions(level='s0",exec,context="x'),
        SELinuxOptions(level="s0:c1\n"),
    ],
)
def test_sel01_what_is_no_part_of_a_label_is_refused(machine, broken):
    """Labels become mount options: none may break out of its quotes."""
    with pytest.raises(SELinuxLabelError, match="is no SELinux"):
        machine().file_label(broken)


def test_sel01_the_policy_of_the_system_decides(machine):
    selinux = machine(
        config="# which\nSELINUX=enforcing\n SELINUXTYPE = mls \n",
        policy="mls",
        contexts='file = "staff_u:object_r:svirt_sandbox_file_t:s0"\n',
    )
    assert selinux.file_label(OPTIONS) == "u:object_r:svirt_sandbox_file_t:s0:c1,c2"


def test_sel01_a_policy_that_says_nothing_of_containers_gives_no_label(machine):
    assert machine(contexts='process = "x"\n').file_label(OPTIONS) == ""


def test_sel01_a_policy_that_names_no_label_is_told(machine):
    with pytest.raises(SELinuxLabelError, match="'nonsense', which is none"):
        machine(contexts='file = "nonsense"\n').file_label(OPTIONS)


def test_the_fake_and_the_real_one_agree(machine):
    """HOSTUTIL-12."""
    real = LinuxHostUtils(LinuxMounter(), selinux=machine())
    fake = FakeHostUtils({"/": "Directory"}, selinux={"/": ""})
    for options in (OPTIONS, SELinuxOptions(level="s0:c3"), SELinuxOptions(type="spc_t")):
        assert fake.selinux_file_label(options) == real.selinux_file_label(options)
    assert fake.selinux_enabled() is real.selinux_enabled() is True
    assert (
        FakeHostUtils({}).selinux_enabled()
        is LinuxHostUtils(LinuxMounter(), selinux=SELinux("/nonexistent")).selinux_enabled()
        is False
    )
