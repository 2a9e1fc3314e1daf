"""BR-80: the oldest and the newest grpcio and protobuf that the metadata allows, each really installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

import volumehost_csi_kit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SOURCE = Path(volumehost_csi_kit.__file__).parent.parent
PROJECT = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]
LOWEST = [requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]]

#: A whole round: a driver built by the kit and one that follows a script, asked over a channel, every module imported.
ROUND = """
import importlib, pkgutil, sys, tempfile, warnings
import google.protobuf, grpc, volumehost_csi_kit
for module in pkgutil.walk_packages(volumehost_csi_kit.__path__, "volumehost_csi_kit."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from volumehost_csi_kit import csi, registration, stubs
from volumehost_csi_kit.endpoints import dial
from volumehost_csi_kit.fake import FakeDriver, Rule
from volumehost_csi_kit.redaction import redacted, secret_values

for name in dir(csi):
    getattr(csi, name)
with tempfile.TemporaryDirectory() as directory:
    with FakeDriver(f"unix://{directory}/csi.sock", registration_dir=f"{directory}/registry") as driver:
        channel = dial(driver.endpoint)
        access = csi.VolumeCapability.AccessMode
        capability = csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume(), access_mode=access(mode=1))
        request = csi.CreateVolumeRequest(name="n", volume_capabilities=[capability], secrets={"key": "hidden"})
        controller = stubs.ControllerStub(channel)
        volume = controller.CreateVolume(request, timeout=60).volume
        assert volume.volume_id and volume.capacity_bytes == 1 << 30
        driver.script(Rule("ListVolumes", code="UNAVAILABLE", message="told to"))
        try:
            controller.ListVolumes(csi.ListVolumesRequest(), timeout=60)
        except grpc.RpcError as error:
            assert (error.code().name, error.details()) == ("UNAVAILABLE", "told to")
        else:
            raise SystemExit("no failure")
        assert controller.ListVolumes(csi.ListVolumesRequest(), timeout=60).entries[0].volume == volume
        assert stubs.IdentityStub(channel).Probe(csi.ProbeRequest(), timeout=60).ready.value
        assert [call.code for call in driver.calls("ListVolumes")] == ["UNAVAILABLE", "OK"]
        link = dial(f"{directory}/registry/fake.csi.example.com-reg.sock")
        assert stubs.RegistrationStub(link).GetInfo(registration.InfoRequest(), timeout=60).type == "CSIPlugin"
        assert "hidden" not in redacted(request) and secret_values(request) == ["hidden"]
        channel.close(), link.close()
print(grpc.__version__, google.protobuf.__version__)
"""


def installed(where, requirements):
    """The Python of a fresh environment with just these packages."""
    venv.create(where, with_pip=True, symlinks=True)
    python = where / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--only-binary", ":all:"]
    done = subprocess.run([*pip, *requirements], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return python


def play(python, **environment):
    done = subprocess.run(
        [str(python), "-c", ROUND],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(int(part) for part in version.split(".")) for version in done.stdout.split()]


def test_the_bounds_are_those_that_are_promised():
    assert sorted(PROJECT["dependencies"]) == ["grpcio>=1.62", "protobuf>=4.25"]


@pytest.fixture(scope="module")
def oldest(tmp_path_factory):
    """The Python with the lowest versions."""
    return installed(tmp_path_factory.mktemp("oldest") / "venv", LOWEST)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="old releases have wheels for the oldest Python only")
@pytest.mark.parametrize("implementation", ["upb", "python"])
def test_the_oldest(oldest, implementation):
    grpc_version, protobuf_version = play(oldest, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation)
    assert grpc_version[:2] == (1, 62)
    assert protobuf_version[:2] == (4, 25)


def test_the_newest(tmp_path):
    names = [re.match(r"\w+", requirement).group() for requirement in PROJECT["dependencies"]]
    grpc_version, protobuf_version = play(installed(tmp_path / "venv", ["--upgrade", *names]))
    assert grpc_version >= (1, 62)
    assert protobuf_version >= (4, 25)
