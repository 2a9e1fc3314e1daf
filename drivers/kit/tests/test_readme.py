"""The README is true as it stands: its driver is run and called, its examples are executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.endpoints import dial

README = Path(__file__).parent.parent / "README.md"
T = {"timeout": 30}


@pytest.fixture(scope="module")
def examples():
    """The Python blocks: the driver, the client, the fake driver."""
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.fixture
def play(directory, capsys):
    """Executes an example with its paths in the test's directory; what it printed."""

    def play(code):
        moved = code.replace("/run/acme", directory).replace("/mnt", directory)
        exec(compile(moved, str(README), "exec"), {"__name__": "example"})
        return capsys.readouterr().out

    return play


@pytest.fixture
def driver(directory, examples):
    """The page's driver as a process."""
    program = f"{directory}/acme_scratch.py"
    Path(program).write_text(examples[0])
    command = [sys.executable, program, "--endpoint", f"unix://{directory}/csi.sock"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if "serves endpoint" in line:
                    break
            yield process
        finally:
            process.kill()


@pytest.mark.root
def test_the_driver_and_the_client(driver, play, examples, directory, failure):
    shown = play(examples[1])
    assert "secrets=***stripped*** " in shown
    assert "hidden" not in shown
    assert os.path.ismount(f"{directory}/v1")
    channel = dial(f"{directory}/csi.sock")
    node = stubs.NodeStub(channel)
    stats = csi.NodeGetVolumeStatsRequest(volume_id="v1", volume_path=f"{directory}/v1")
    assert node.NodeGetVolumeStats(stats, **T).usage[0].total == 1 << 20
    reply = node.NodeGetCapabilities(csi.NodeGetCapabilitiesRequest(), **T)
    assert [each.rpc.type for each in reply.capabilities] == [csi.NodeServiceCapability.RPC.GET_VOLUME_STATS]
    unpublish = csi.NodeUnpublishVolumeRequest(volume_id="v1", target_path=f"{directory}/v1")
    for _ in range(2):
        node.NodeUnpublishVolume(unpublish, **T)
    assert not os.path.lexists(f"{directory}/v1")
    channel.close()
    driver.terminate()
    assert driver.wait(30) == 0
    assert "hidden" not in driver.stderr.read()


@pytest.mark.root
def test_the_driver_refuses_what_it_cannot(driver, directory, channel, capability, failure):
    request = csi.NodePublishVolumeRequest(
        volume_id="v",
        target_path=f"{directory}/v",
        volume_capability=capability(),
        volume_context={"size": "1m,mode=0777"},
    )
    assert failure(stubs.NodeStub(channel(f"{directory}/csi.sock")).NodePublishVolume, request) == (
        "INVALID_ARGUMENT",
        "volume_context: size must be like 16m, not '1m,mode=0777'",
    )
    assert not os.path.lexists(f"{directory}/v")


def test_the_fake_driver(play, examples):
    assert play(examples[2]) == ""


def test_there_are_no_more_examples(examples):
    assert len(examples) == 3


def test_every_name_that_the_page_mentions_is_there():
    import volumehost_csi_kit.fake
    import volumehost_csi_kit.server

    known = {*volumehost_csi_kit.fake.__all__, *volumehost_csi_kit.server.__all__}
    mentioned = set(re.findall(r"`(\w+)(?:\(request\))?`", README.read_text()))
    assert {"CsiError", "FakeDriverProcess", "chosen_size", "fingerprint", "fits"} <= mentioned & known
