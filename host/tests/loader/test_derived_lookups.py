"""MGR-FIND-06 to -09 and MGR-NOOP: the look-ups that ask for an interface, each with its error-or-None rule."""

from __future__ import annotations

import pytest

from volumehost import hookimpl
from volumehost.errors import (
    CapabilityMissingError,
    MultiplePluginsMatchedError,
    NoPluginMatchedError,
    PluginLookupError,
    PluginNotFoundError,
    SpecError,
)
from volumehost.hookspecs import INTERFACES
from volumehost.loader.lookup import DerivedLookups

#: look-up, the interface it asks for, the word in its error or None where it returns None.
TABLE = [
    ("find_persistent_plugin_by_spec", "PersistentVolumePlugin", "persistent"),
    ("find_persistent_plugin_by_name", "PersistentVolumePlugin", "persistent"),
    ("find_recyclable_plugin_by_spec", "RecyclableVolumePlugin", "recyclable"),
    ("find_provisionable_plugin_by_name", "ProvisionableVolumePlugin", "provisionable"),
    ("find_deletable_plugin_by_spec", "DeletableVolumePlugin", "deletable"),
    ("find_deletable_plugin_by_name", "DeletableVolumePlugin", "deletable"),
    ("find_attachable_plugin_by_spec", "AttachableVolumePlugin", None),
    ("find_attachable_plugin_by_name", "AttachableVolumePlugin", None),
    ("find_device_mountable_plugin_by_spec", "DeviceMountableVolumePlugin", None),
    ("find_device_mountable_plugin_by_name", "DeviceMountableVolumePlugin", None),
    ("find_expandable_plugin_by_spec", "ExpandableVolumePlugin", None),
    ("find_expandable_plugin_by_name", "ExpandableVolumePlugin", None),
    ("find_mapper_plugin_by_spec", "BlockVolumePlugin", None),
    ("find_mapper_plugin_by_name", "BlockVolumePlugin", None),
    ("find_node_expandable_plugin_by_spec", "NodeExpandableVolumePlugin", None),
    ("find_node_expandable_plugin_by_name", "NodeExpandableVolumePlugin", None),
]
BY_SPEC = [row for row in TABLE if row[0].endswith("_by_spec")]
BY_NAME = [row for row in TABLE if row[0].endswith("_by_name")]


class Everything:
    """A mixin with every hook of every interface."""

    can = True

    @hookimpl
    def get_access_modes(self):
        return ["ReadWriteOnce"]

    @hookimpl
    def recycle(self):
        pass

    @hookimpl
    def new_deleter(self):
        return "deleter"

    @hookimpl
    def new_provisioner(self):
        return "provisioner"

    @hookimpl
    def new_device_mounter(self):
        return "device mounter"

    @hookimpl
    def new_device_unmounter(self):
        return "device unmounter"

    @hookimpl
    def get_device_mount_refs(self):
        return []

    @hookimpl
    def can_device_mount(self):
        if isinstance(self.can, Exception):
            raise self.can
        return self.can

    @hookimpl
    def new_attacher(self):
        return "attacher"

    @hookimpl
    def new_detacher(self):
        return "detacher"

    @hookimpl
    def can_attach(self):
        if isinstance(self.can, Exception):
            raise self.can
        return self.can

    @hookimpl
    def verify_exhausted_resource(self):
        return False

    @hookimpl
    def requires_fs_resize(self):
        return True

    @hookimpl
    def expand_volume_device(self, new_size):
        return new_size

    @hookimpl
    def node_expand(self):
        return True

    @hookimpl
    def resize_ephemeral_volume(self):
        pass

    @hookimpl
    def new_block_volume_mapper(self):
        return "mapper"

    @hookimpl
    def new_block_volume_unmapper(self):
        return "unmapper"

    @hookimpl
    def construct_block_volume_spec(self):
        return "spec"


@pytest.fixture
def managers(manager, base):
    """A manager with a plugin that has every interface for nfs, and one with the base alone for csi."""
    full = type("Full", (Everything, base), {})("example.com/full", "nfs")
    made = manager(full, base("example.com/bare", "csi"))
    assert made.init_errors == []
    made.full = full
    return made


def call(manager, lookup, spec_of, full):
    if lookup.endswith("_by_spec"):
        return getattr(manager, lookup)(spec_of("nfs" if full else "csi"))
    return getattr(manager, lookup)("example.com/full" if full else "example.com/bare")


def test_the_table_is_complete():
    public = {name for name in vars(DerivedLookups) if name.startswith("find_")}
    assert {row[0] for row in TABLE} == public - {"find_plugin_by_spec", "find_plugin_by_name"}


@pytest.mark.parametrize(("lookup", "interface", "word"), TABLE)
def test_mgr_find_06_found_with_the_interface(managers, spec_of, lookup, interface, word):
    assert call(managers, lookup, spec_of, full=True).name == "example.com/full"
    assert interface in {each.__name__ for each in INTERFACES}


@pytest.mark.parametrize(("lookup", "interface", "word"), TABLE)
def test_mgr_find_06_found_without_the_interface(managers, spec_of, lookup, interface, word):
    if word is None:
        assert call(managers, lookup, spec_of, full=False) is None
        return
    with pytest.raises(CapabilityMissingError) as caught:
        call(managers, lookup, spec_of, full=False)
    assert caught.value.reason == f"no {word} volume plugin matched"
    assert interface in caught.value.hint
    assert caught.value.subject == "example.com/bare"


@pytest.mark.parametrize(("lookup", "interface", "word"), BY_NAME)
def test_mgr_find_06_by_name_not_found_is_passed_on(managers, lookup, interface, word):
    with pytest.raises(PluginNotFoundError, match=r"no volume plugin matched name: example\.com/none"):
        getattr(managers, lookup)("example.com/none")


@pytest.mark.parametrize(("lookup", "interface", "word"), BY_SPEC)
def test_mgr_find_06_by_spec_not_found(managers, spec_of, lookup, interface, word):
    if lookup == "find_expandable_plugin_by_spec":
        assert managers.find_expandable_plugin_by_spec(spec_of("host_path")) is None  # MGR-FIND-07
    elif lookup == "find_persistent_plugin_by_spec":
        with pytest.raises(PluginLookupError, match="could not find volume plugin for spec: <Spec") as caught:
            managers.find_persistent_plugin_by_spec(spec_of("host_path"))
        assert isinstance(caught.value.__cause__, NoPluginMatchedError), "MGR-FIND-09: the cause is kept"
        assert not isinstance(caught.value, NoPluginMatchedError)
    else:
        with pytest.raises(NoPluginMatchedError):
            getattr(managers, lookup)(spec_of("host_path"))


@pytest.mark.parametrize(("lookup", "interface", "word"), BY_SPEC)
def test_mgr_find_07_an_absent_spec_is_always_an_error(managers, lookup, interface, word):
    with pytest.raises((SpecError, PluginLookupError)) as caught:
        getattr(managers, lookup)(None)
    cause = caught.value if isinstance(caught.value, SpecError) else caught.value.__cause__
    assert "volume spec is nil" in str(cause)


CONDITIONAL = ["find_attachable_plugin_by_spec", "find_device_mountable_plugin_by_spec"]


@pytest.mark.parametrize("lookup", CONDITIONAL)
def test_mgr_find_08_the_plugin_may_decline_the_spec(managers, spec_of, lookup):
    managers.full.can = False
    assert getattr(managers, lookup)(spec_of("nfs")) is None


@pytest.mark.parametrize("lookup", CONDITIONAL)
def test_mgr_find_08_an_error_of_the_question_is_the_callers(managers, spec_of, lookup):
    managers.full.can = OSError("cannot tell")
    with pytest.raises(OSError, match="cannot tell"):
        getattr(managers, lookup)(spec_of("nfs"))


@pytest.mark.parametrize("lookup", ["find_attachable_plugin_by_name", "find_device_mountable_plugin_by_name"])
def test_mgr_find_06_by_name_the_question_is_not_asked(managers, lookup):
    managers.full.can = OSError("cannot tell")
    assert getattr(managers, lookup)("example.com/full").name == "example.com/full"


class Flex:
    driver = "example.com/flex"


def test_mgr_noop_01_a_flex_spec_without_plugin_gets_the_plugin_that_does_nothing(managers, spec_of):
    spec = spec_of("flex_volume", "work", Flex())
    noop = managers.find_expandable_plugin_by_spec(spec)
    assert noop.expand_volume_device(spec, 20, 10) == 20
    assert noop.requires_fs_resize() is True
    with pytest.raises(NoPluginMatchedError):
        managers.find_plugin_by_spec(spec)


def test_mgr_noop_02_its_other_answers(managers, spec_of):
    spec = spec_of("flex_volume", "work", Flex())
    noop = managers.find_expandable_plugin_by_spec(spec)
    assert noop.name == noop.get_plugin_name() == "example.com/flex"
    assert noop.get_volume_name(spec) == "work"
    assert noop.can_support(spec) is True
    assert noop.requires_remount(spec) is False
    assert noop.new_mounter(spec, None) is None
    assert noop.new_unmounter("work", "uid") is None
    assert noop.construct_volume_spec("work", "/x").spec is spec
    assert noop.supports_mount_option() is True
    assert noop.supports_selinux_context_mount(spec) is False


def test_mgr_find_07_a_flex_spec_with_two_plugins_gets_the_noop_as_well(manager, base, spec_of):
    made = manager(base("example.com/a", "flex_volume"), base("example.com/b", "flex_volume"))
    assert made.find_expandable_plugin_by_spec(spec_of("flex_volume", value=Flex())).name == "example.com/flex"


def test_mgr_find_07_an_ambiguity_of_other_specs_stays_an_error(manager, base, spec_of):
    made = manager(base("example.com/a"), base("example.com/b"))
    with pytest.raises(MultiplePluginsMatchedError):
        made.find_expandable_plugin_by_spec(spec_of("nfs"))


def test_mgr_find_07_an_installed_flex_plugin_answers_itself(manager, base, spec_of):
    made = manager(base("example.com/a", "flex_volume"))
    assert made.find_expandable_plugin_by_spec(spec_of("flex_volume", value=Flex())) is None
