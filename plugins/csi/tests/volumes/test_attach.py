"""Attaching, waiting and detaching by VolumeAttachment, over a real store (CSI-ATT)."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest

from volumehost import Spec, VolumeConfig
from volumehost.api.objects import (
    VolumeAttachment,
    VolumeAttachmentStatus,
    VolumeError,
)
from volumehost.errors import (
    ConflictError,
    InvalidObjectError,
    NotAvailableOnHostError,
    OperationError,
    SpecError,
    StorageDriverUncertainError,
    StoreError,
    TransientOperationError,
    UncertainProgressError,
    is_uncertain_progress_error,
)
from volumehost_csi.names import attachment_name

NAME = "fake.csi.example.com"
NODE = "test-node"
ATTACHMENT = attachment_name("vol-1", NAME, NODE)
FINALIZER = "external-attacher/fake-csi-example-com"


def rfc3339(seconds):
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Attacher:
    """What is done elsewhere to the one VolumeAttachment, on a thread of its own."""

    def __init__(self, api):
        self.api = api
        self.threads = []
        self.problems = []

    def status(self, **status):
        found = self.api.get(VolumeAttachment, ATTACHMENT)
        found.status = VolumeAttachmentStatus(**status)
        self.api.replace_status(found)

    def when_created(self, *steps):
        def run():
            try:
                for event in self.api.watch(VolumeAttachment, timeout=30):
                    if event.type == "ADDED":
                        break
                for step in steps:
                    step()
            except Exception as error:
                self.problems.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        self.threads.append(thread)


@pytest.fixture
def elsewhere(api):
    attacher = Attacher(api)
    yield attacher
    for thread in attacher.threads:
        thread.join(30)
    assert attacher.problems == []


@pytest.fixture
def attaching(make_plugin, standalone):
    """The plugin on a host that attaches, with a short patience."""

    def make(seconds=20.0):
        standalone.get_volume_config = lambda name: VolumeConfig(other_attributes={"attach_timeout": str(seconds)})
        return make_plugin(standalone)

    return make


@pytest.fixture
def spec(api, make_pv):
    """A PersistentVolume that is in the store too."""
    spec = make_pv()
    spec.persistent_volume.spec.capacity = {"storage": "1Gi"}
    api.create(spec.persistent_volume)
    return spec


def test_csi_att_03_10_attach_creates_the_object_and_waits(attaching, api, elsewhere, spec):
    elsewhere.when_created(lambda: elsewhere.status(attached=True))
    assert attaching().new_attacher().attach(spec, NODE) == ""
    found = api.get(VolumeAttachment, ATTACHMENT)
    assert (found.spec.attacher, found.spec.node_name) == (NAME, NODE)
    assert found.spec.source.persistent_volume_name == "pv-1"
    assert found.spec.source.inline_volume_spec is None


def test_csi_att_03_a_translated_inline_volume_brings_its_whole_spec(attaching, api, elsewhere, spec):
    elsewhere.when_created(lambda: elsewhere.status(attached=True))
    inline = Spec(persistent_volume=spec.persistent_volume, inline_volume_spec_for_csi_migration=True)
    attaching().new_attacher().attach(inline, NODE)
    source = api.get(VolumeAttachment, ATTACHMENT).spec.source
    assert source.persistent_volume_name is None
    assert source.inline_volume_spec.csi.volume_handle == "vol-1"


def test_csi_att_04_07_an_attached_object_is_used_though_it_carries_an_error(attaching, elsewhere, spec):
    plugin = attaching()
    elsewhere.when_created(lambda: elsewhere.status(attached=True))
    plugin.new_attacher().attach(spec, NODE)
    elsewhere.status(attached=True, attach_error=VolumeError(message="old", time=rfc3339(time.time() + 60)))
    plugin.new_attacher().attach(spec, NODE)


def test_csi_att_06_09_an_attach_error_fails_at_once_and_is_uncertain(attaching, api, elsewhere, spec):
    error = VolumeError(message="the array is full", time=rfc3339(time.time() + 3600), error_code=8)
    elsewhere.when_created(lambda: elsewhere.status(attach_error=error))
    with pytest.raises(StorageDriverUncertainError, match="the array is full") as caught:
        attaching().new_attacher().attach(spec, NODE)
    assert (caught.value.code, caught.value.driver) == ("RESOURCE_EXHAUSTED", NAME)
    api.get(VolumeAttachment, ATTACHMENT)  # it stays, its attacher keeps trying


def test_csi_att_08_improved_an_older_error_is_not_this_attempts(attaching, elsewhere, spec):
    plugin = attaching()
    old = VolumeError(message="yesterday", time=rfc3339(time.time() - 86400))
    elsewhere.when_created(lambda: elsewhere.status(attach_error=old), lambda: elsewhere.status(attached=True))
    plugin.new_attacher().attach(spec, NODE)


def test_csi_att_09_a_timeout_names_driver_and_object_and_the_older_error(attaching, api, elsewhere, spec):
    old = VolumeError(message="yesterday", time=rfc3339(time.time() - 86400))
    elsewhere.when_created(lambda: elsewhere.status(attach_error=old))
    with pytest.raises(StorageDriverUncertainError, match=r"within 1\.5 seconds.*yesterday") as caught:
        attaching(1.5).new_attacher().attach(spec, NODE)
    assert ATTACHMENT in str(caught.value)
    assert caught.value.driver == NAME
    api.get(VolumeAttachment, ATTACHMENT)


def test_csi_att_06_an_object_that_is_being_deleted_fails_at_once(attaching, api, elsewhere, spec):
    plugin = attaching()
    elsewhere.when_created(
        lambda: api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": [FINALIZER]}}),
        lambda: api.delete(VolumeAttachment, ATTACHMENT),
    )
    with pytest.raises(StorageDriverUncertainError, match="being deleted"):
        plugin.new_attacher().attach(spec, NODE)
    with pytest.raises(StorageDriverUncertainError, match="being deleted"):  # CSI-ATT-04
        plugin.new_attacher().attach(spec, NODE)


def test_an_object_that_somebody_deletes_meanwhile_ends_the_wait(attaching, api, elsewhere, spec):
    elsewhere.when_created(lambda: api.delete(VolumeAttachment, ATTACHMENT))
    with pytest.raises(StorageDriverUncertainError, match="deleted"):
        attaching().new_attacher().attach(spec, NODE)


def test_br_49_a_csi_driver_object_that_comes_late_ends_the_wait_and_leaves_no_phantom(
    attaching, api, elsewhere, spec, csi_driver
):
    elsewhere.when_created(csi_driver)
    assert attaching().new_attacher().attach(spec, NODE) == ""
    assert api.list(VolumeAttachment).items == []


def test_br_49_nothing_is_waited_for_once_nothing_is_attached(plugin, make_pv, pod, csi_driver):
    with pytest.raises(TransientOperationError):
        plugin.new_attacher().wait_for_attach(make_pv(), "", pod, 0)
    csi_driver(attach_required=False)
    assert plugin.new_attacher().wait_for_attach(make_pv(), "", pod, 0) == ""


def test_br_49_attachability_is_asked_anew_each_time(attaching, spec, csi_driver):
    plugin = attaching()
    assert plugin.can_attach(spec) is True
    csi_driver(attach_required=False)
    assert plugin.can_attach(spec) is False


def test_an_api_that_fails_meanwhile_leaves_it_uncertain_and_one_that_refuses_does_not(
    attaching, api, spec, monkeypatch
):
    def fail(*arguments, **options):
        raise StoreError("the disk is gone")

    plugin = attaching()
    spec.persistent_volume.spec.csi.driver = "UPPER/case"
    with pytest.raises(InvalidObjectError):
        plugin.new_attacher().attach(spec, NODE)
    spec.persistent_volume.spec.csi.driver = NAME
    monkeypatch.setattr(api, "watch", fail)
    with pytest.raises(UncertainProgressError, match="the disk is gone"):
        plugin.new_attacher().attach(spec, NODE)
    assert api.get(VolumeAttachment, ATTACHMENT)


def test_csi_att_01_the_host_of_a_node_in_a_cluster_neither_attaches_nor_detaches(plugin, api, make_pv):
    with pytest.raises(NotAvailableOnHostError, match="controller"):
        plugin.new_attacher().attach(make_pv(), NODE)
    with pytest.raises(NotAvailableOnHostError):
        plugin.new_detacher().detach(f"{NAME}^vol-1", NODE)
    assert api.list(VolumeAttachment).items == []


def test_csi_edge_20_inline_volumes_are_not_attached(attaching, make_inline):
    for spec in (make_inline(), Spec()):
        with pytest.raises(SpecError):
            attaching().new_attacher().attach(spec, NODE)


# --- the node looks -------------------------------------------------------------------------------------------


@pytest.fixture
def attachment(attaching, elsewhere, spec):
    plugin = attaching()
    elsewhere.when_created(lambda: elsewhere.status(attached=True))
    plugin.new_attacher().attach(spec, NODE)
    return plugin


def test_csi_att_11_edge_21_the_node_looks_once_and_gets_the_name(plugin, attachment, elsewhere, spec, pod):
    assert plugin.new_attacher().wait_for_attach(spec, "", pod, 0) == ATTACHMENT
    elsewhere.status(attached=False)
    with pytest.raises(TransientOperationError, match="not attached yet"):
        plugin.new_attacher().wait_for_attach(spec, "", pod, 1000)
    elsewhere.status(attach_error=VolumeError(message="no path"))
    with pytest.raises(OperationError, match="no path"):
        plugin.new_attacher().wait_for_attach(spec, "", pod, 1000)


def test_csi_att_11_being_deleted_or_missing_is_not_attached(plugin, api, attachment, spec, pod):
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": [FINALIZER]}})
    api.delete(VolumeAttachment, ATTACHMENT)
    with pytest.raises(TransientOperationError, match="being deleted"):
        plugin.new_attacher().wait_for_attach(spec, "", pod, 0)
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": None}})
    with pytest.raises(TransientOperationError, match="there is no"):
        plugin.new_attacher().wait_for_attach(spec, "", pod, 0)


def test_csi_att_13_edge_22_one_answer_for_each_spec(plugin, attachment, spec, make_pv, make_inline, csi_driver):
    other, inline, skipping = (
        make_pv("pv-2", handle="vol-2"),
        make_inline(),
        make_pv("pv-3", driver="other.example.com"),
    )
    csi_driver("other.example.com", attach_required=False)
    answers = plugin.new_attacher().volumes_are_attached([spec, other, inline, skipping], NODE)
    assert [answers[each] for each in (spec, other, inline, skipping)] == [True, False, False, True]
    assert plugin.new_attacher().volumes_are_attached([spec], "another-node") == {spec: False}


def test_br47_what_is_being_detached_counts_as_not_attached(attachment, api, spec):
    """Its status is that of before until the driver is done. A node that trusted it after a restart would begin to use
    the volume, whose detach would then be held for that, for ever.
    """
    assert attachment.new_attacher().volumes_are_attached([spec], NODE) == {spec: True}
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": [FINALIZER]}})
    api.delete(VolumeAttachment, ATTACHMENT)
    assert api.get(VolumeAttachment, ATTACHMENT).status.attached
    assert attachment.new_attacher().volumes_are_attached([spec], NODE) == {spec: False}
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": None}})


# --- detaching ------------------------------------------------------------------------------------------------


def test_csi_att_14_detach_deletes_the_object(attachment, api):
    attachment.new_detacher().detach(f"{NAME}^vol-1", NODE)
    assert api.list(VolumeAttachment).items == []
    attachment.new_detacher().detach(f"{NAME}^vol-1", NODE)  # CSI-EDGE-23


def test_csi_att_15_17_detach_waits_for_the_finalizer(attachment, api, elsewhere):
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": [FINALIZER]}})

    def finish():
        for event in api.watch(VolumeAttachment, timeout=30):
            if event.object.metadata.deletion_timestamp:
                api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": None}})
                return

    elsewhere.when_created(finish)
    attachment.new_detacher().detach(f"{NAME}^vol-1", NODE)
    assert api.list(VolumeAttachment).items == []


def test_csi_att_15_16_a_detach_error_fails_at_once_and_names_the_driver(attachment, api, elsewhere):
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": [FINALIZER]}})
    elsewhere.status(attached=True, detach_error=VolumeError(message="busy", time=rfc3339(time.time() + 3600)))
    with pytest.raises(StorageDriverUncertainError, match="busy") as caught:
        attachment.new_detacher().detach(f"{NAME}^vol-1", NODE)
    assert caught.value.driver == NAME


def test_csi_att_15_a_detach_that_takes_too_long(attaching, attachment, api):
    api.patch(VolumeAttachment, ATTACHMENT, {"metadata": {"finalizers": [FINALIZER]}})
    with pytest.raises(StorageDriverUncertainError, match=r"within 0\.3 seconds"):
        attaching(0.3).new_detacher().detach(f"{NAME}^vol-1", NODE)


def test_csi_name_05_improved_a_handle_with_the_separator_is_detached(attaching, api, elsewhere, make_pv):
    spec = make_pv(handle="a^b^c")
    spec.persistent_volume.spec.capacity = {"storage": "1Gi"}
    api.create(spec.persistent_volume)
    plugin = attaching()
    name = attachment_name("a^b^c", NAME, NODE)

    def attach():
        found = api.get(VolumeAttachment, name)
        found.status = VolumeAttachmentStatus(attached=True)
        api.replace_status(found)

    elsewhere.when_created(attach)
    plugin.new_attacher().attach(spec, NODE)
    plugin.new_detacher().detach(plugin.get_volume_name(spec), NODE)
    assert api.list(VolumeAttachment).items == []


def test_br_48_what_a_cache_knows_of_a_former_object_deletes_no_later_one(attachment, api, monkeypatch):
    """Another controller has ended the former attachment and begun this one."""
    former = api.get(VolumeAttachment, ATTACHMENT)
    former.metadata.uid = "former"
    monkeypatch.setattr(api, "get", lambda *_: former)
    with pytest.raises(ConflictError):
        attachment.new_detacher().begin_detach(f"{NAME}^vol-1", NODE)
    monkeypatch.undo()
    assert api.get(VolumeAttachment, ATTACHMENT).metadata.deletion_timestamp is None


def test_csi_edge_23_a_forbidden_delete_propagates(attachment, api, monkeypatch):
    def refuse(*arguments, **options):
        raise StoreError("forbidden")

    monkeypatch.setattr(api, "delete", refuse)
    with pytest.raises(OperationError, match="forbidden"):
        attachment.new_detacher().detach(f"{NAME}^vol-1", NODE)


def test_a_watch_that_lost_its_place_goes_on_from_a_list(attaching, api, elsewhere, spec, monkeypatch):
    from volumehost.errors import GoneError

    watch, lost = api.watch, []

    def watch_once_gone(kind, *arguments, **options):
        if options.get("resource_version") and not lost:
            lost.append(True)
            raise GoneError("too old")
        return watch(kind, *arguments, **options)

    monkeypatch.setattr(api, "watch", watch_once_gone)
    elsewhere.when_created(lambda: elsewhere.status(attached=True))
    attaching().new_attacher().attach(spec, NODE)
    assert lost


# --- the node's limit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "error", "exceeded"),
    [
        (60, VolumeError(message="full", error_code=8), True),
        (60, VolumeError(message="full", error_code=9), False),
        (60, VolumeError(message="full"), False),
        (60, None, False),
        (None, VolumeError(message="full", error_code=8), False),
    ],
)
def test_csi_plug_24_edge_38_exhausted(attaching, elsewhere, spec, csi_driver, period, error, exceeded):
    plugin = attaching()
    csi_driver(attach_required=True, node_allocatable_update_period_seconds=period)
    elsewhere.when_created(lambda: elsewhere.status(attached=True))
    plugin.new_attacher().attach(spec, NODE)
    elsewhere.status(attached=False, attach_error=error)
    assert plugin.verify_exhausted_resource(spec) is exceeded
    assert plugin._services.drivers.refreshed == ([NAME] if exceeded else [])


def test_csi_plug_24_nothing_known_is_not_exhausted(plugin, make_inline, make_pv, csi_driver):
    csi_driver(node_allocatable_update_period_seconds=60)
    assert plugin.verify_exhausted_resource(make_inline()) is False
    assert plugin.verify_exhausted_resource(make_pv()) is False


def test_errors_of_attaching_count_as_uncertain_by_the_host(attaching, elsewhere, spec):
    elsewhere.when_created(lambda: elsewhere.status(attach_error=VolumeError(message="no")))
    with pytest.raises(OperationError) as caught:
        attaching().new_attacher().attach(spec, NODE)
    assert is_uncertain_progress_error(caught.value)
