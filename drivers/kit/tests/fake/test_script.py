"""Faults by script: failures, delays, hanging, death, prescribed answers; before and after the work."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake import Rule
from volumehost_csi_kit.fake.rules import Script, volume_of

T = {"timeout": 30}


def probe(rpc):
    return rpc.identity.Probe(csi.ProbeRequest(), **T)


@pytest.mark.parametrize("code", ["UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED", "INTERNAL", "NOT_FOUND", "UNKNOWN"])
def test_every_code(fake, rpc, requests, failure, code):
    volume = requests()
    fake.script(Rule("NodeStageVolume", code=code, message="told to"))
    assert failure(rpc.node.NodeStageVolume, volume.stage) == (code, "told to")
    assert fake.state()["volumes"] == {}
    rpc.node.NodeStageVolume(volume.stage, **T)
    assert [call.code for call in fake.calls("NodeStageVolume")] == [code, "OK"]


def test_a_failure_after_the_work_is_a_lie(fake, rpc, requests, failure):
    volume = requests()
    fake.script(Rule("NodeStageVolume", code="INTERNAL", when="after"))
    assert failure(rpc.node.NodeStageVolume, volume.stage)[0] == "INTERNAL"
    assert fake.state()["volumes"]["v"]["staged"] == volume.staging


def test_a_prescribed_answer_replaces_the_work(fake, rpc):
    fake.script(
        Rule("CreateVolume", reply={"volume": {"volume_id": "x/../y", "capacity_bytes": 7}}),
        Rule("NodeGetInfo", reply={}),
    )
    request = csi.CreateVolumeRequest(
        name="n",
        volume_capabilities=[
            csi.VolumeCapability(
                block=csi.VolumeCapability.BlockVolume(), access_mode=csi.VolumeCapability.AccessMode(mode=1)
            )
        ],
    )
    assert rpc.controller.CreateVolume(request, **T).volume.volume_id == "x/../y"
    assert rpc.node.NodeGetInfo(csi.NodeGetInfoRequest(), **T).node_id == "", "even one that the kit would refuse"
    assert fake.state()["volumes"] == {}


def test_skip_and_times(fake, rpc, failure):
    fake.script(Rule("Probe", code="UNAVAILABLE", skip=1, times=2))
    probe(rpc)
    for _ in range(2):
        assert failure(rpc.identity.Probe, csi.ProbeRequest())[0] == "UNAVAILABLE"
    probe(rpc)


def test_only_for_one_volume_and_for_ever(fake, rpc, requests, failure):
    fake.script(Rule("*", code="UNAVAILABLE", volume_id="bad", times=None))
    rpc.node.NodeStageVolume(requests("good").stage, **T)
    for _ in range(3):
        assert failure(rpc.node.NodeStageVolume, requests("bad").stage)[0] == "UNAVAILABLE"
    fake.clear_script()
    rpc.node.NodeStageVolume(requests("bad").stage, **T)


def test_hanging_until_released(fake, rpc):
    fake.script(Rule("Probe", hang=True))
    call = rpc.identity.Probe.future(csi.ProbeRequest(), timeout=60)
    fake.wait_for("Probe")
    assert not call.done()
    fake.release()
    assert call.result().ready.value
    probe(rpc)


def test_hanging_past_the_callers_deadline(fake, rpc, failure):
    fake.script(Rule("Probe", hang=True, times=None))
    while not fake.calls("Probe"):  # on a busy machine the deadline may be over before it has arrived
        assert failure(rpc.identity.Probe, csi.ProbeRequest(), timeout=0.05)[0] == "DEADLINE_EXCEEDED"
    assert fake.calls("Probe")[0].code == ""
    fake.release()
    assert any(call.code for call in fake.wait_for("Probe", ended=True))


def test_a_delay_can_be_cut_short(fake, rpc):
    fake.script(Rule("Probe", delay=3600))
    call = rpc.identity.Probe.future(csi.ProbeRequest(), timeout=60)
    fake.wait_for("Probe")
    fake.release()
    assert call.result().ready.value


@pytest.mark.parametrize(("when", "staged"), [("before", False), ("after", True)])
def test_death_and_another_life(fake, rpc, requests, failure, when, staged):
    volume = requests()
    fake.script(Rule("NodeStageVolume", die=True, when=when))
    assert failure(rpc.node.NodeStageVolume, volume.stage)[0] == "UNAVAILABLE"
    assert fake.server is None
    assert ("v" in fake.state()["volumes"]) is staged
    fake.start()
    rpc.node.NodeStageVolume(volume.stage, wait_for_ready=True, **T)
    assert fake.state()["volumes"]["v"]["staged"] == volume.staging


def test_waiting_for_calls_that_do_not_come(fake, rpc):
    probe(rpc)
    with pytest.raises(TimeoutError, match=r"not within 0\.01 s; calls: \[\('Probe', 'OK'\)\]"):
        fake.wait_for("Probe", 2, timeout=0.01)


def test_waiting_ends_with_the_call(fake, rpc):
    found = []
    waiting = threading.Thread(target=lambda: found.extend(fake.wait_for("Probe", ended=True)))
    waiting.start()
    probe(rpc)
    waiting.join(30)
    assert [call.code for call in found] == ["OK"]


def test_requests_are_kept_as_they_came(fake, rpc):
    rpc.node.NodeUnpublishVolume(csi.NodeUnpublishVolumeRequest(volume_id="v", target_path="/nonexistent/t"), **T)
    probe(rpc)
    unpublish, probed = fake.calls()
    assert unpublish.request == csi.NodeUnpublishVolumeRequest(volume_id="v", target_path="/nonexistent/t")
    assert (unpublish.number, probed.number) == (1, 2)
    fake.clear_calls()
    assert fake.calls() == []


def test_connections_are_counted(fake, rpc, connect):
    assert fake.connections() == 0
    probe(rpc)
    probe(rpc)
    assert fake.connections() == 1
    probe(connect(fake.endpoint))
    assert [call.connections for call in fake.calls("Probe")] == [1, 1, 2]


def test_what_a_call_is_about():
    assert volume_of(csi.NodeStageVolumeRequest(volume_id="v")) == "v"
    assert volume_of(csi.CreateVolumeRequest(name="n")) == "n"
    assert volume_of(csi.CreateSnapshotRequest(source_volume_id="v", name="s")) == "v"
    assert volume_of(csi.ProbeRequest()) == ""


RULES = st.builds(
    Rule,
    call=st.sampled_from(["*", "Probe", "NodeStageVolume"]),
    times=st.none() | st.integers(0, 3),
    skip=st.integers(0, 3),
    delay=st.floats(0, 1),
    die=st.booleans(),
    code=st.sampled_from(["", "INTERNAL"]),
    reply=st.none() | st.just({"ready": True}),
)


@given(RULES)
def test_rules_survive_json(rule):
    assert Rule(**rule.to_json()) == rule


@given(st.lists(RULES, max_size=4), st.integers(0, 20))
def test_no_rule_applies_more_often_than_it_says(rules, calls):
    script = Script()
    script.add(rules)
    taken = [script.take("Probe", csi.ProbeRequest()) for _ in range(calls)]
    for rule in rules:
        same = [other for other in rules if other is rule]
        if rule.times is not None and len(same) == 1:
            assert sum(one is rule for one in taken) <= rule.times
        assert not any(one is rule for one in taken[: rule.skip]) or len(same) > 1
