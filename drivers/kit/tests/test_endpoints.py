"""Endpoints: what is one, and how long or odd its path may be (CSI-WIRE-03, CSI-WATCH-14, CSI-RGR-08)."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.endpoints import LONGEST_SOCKET_PATH, EndpointError, dial, reachable, socket_path
from volumehost_csi_kit.fake import null_driver
from volumehost_csi_kit.server import CsiServer


@pytest.mark.parametrize(
    "endpoint", ["unix:///run/a/csi.sock", "unix:/run/a/csi.sock", "/run/a/csi.sock", "UNIX:///run/a/csi.sock"]
)
def test_three_ways_to_write_it(endpoint):
    assert socket_path(endpoint) == "/run/a/csi.sock"


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("", "names no socket"),
        ("unix://", "names no socket"),
        ("unix:", "names no socket"),
        ("tcp://127.0.0.1:10000", "not on 'tcp'"),
        ("unix-abstract:csi", "not on 'unix-abstract'"),
        ("dns:///example.com", "not on 'dns'"),
        ("csi.sock", "not absolute"),
        ("unix://run/csi.sock", "not absolute"),
        ("unix:./csi.sock", "not absolute"),
        ("/run/csi/", "names a directory"),
        ("/run/\0/csi.sock", "zero byte"),
    ],
)
def test_what_is_none(endpoint, reason):
    with pytest.raises(EndpointError, match=reason) as caught:
        socket_path(endpoint)
    assert caught.value.endpoint == endpoint


@given(st.text())
def test_any_text_is_a_path_or_an_error(text):
    try:
        path = socket_path(text)
    except EndpointError:
        return
    assert path.startswith("/")
    assert "\0" not in path
    assert text.endswith(path)


def answers(channel):
    return stubs.IdentityStub(channel).GetPluginInfo(csi.GetPluginInfoRequest(), timeout=30).name


def deep(directory, length):
    """A directory whose path has this many bytes."""
    path = directory
    while len(path) < length:
        path = os.path.join(path, "d" * min(200, max(1, length - len(path) - 1)))
    os.makedirs(path)
    return path


@pytest.mark.parametrize("length", [LONGEST_SOCKET_PATH, LONGEST_SOCKET_PATH + 1, 1000])
def test_a_path_may_be_longer_than_the_kernel_takes(directory, channel, length):
    path = os.path.join(deep(directory, length - len("/csi.sock")), "csi.sock")
    assert len(path) == length
    with CsiServer(null_driver(), path, grace_seconds=0):
        assert answers(channel(f"unix://{path}")) == "null.csi.example.com"
    assert os.listdir(os.path.dirname(path)) == []


@pytest.mark.parametrize("name", ["with space.sock", "100%.sock", "%2F.sock", "a#b?c=d.sock", "ünï.sock", "a:b.sock"])
def test_odd_names(directory, channel, name):
    path = os.path.join(directory, name)
    with CsiServer(null_driver(), path, grace_seconds=0):
        assert os.listdir(directory) == [name]
        assert answers(channel(path)) == "null.csi.example.com"


def test_a_name_that_nothing_can_shorten(directory):
    with pytest.raises(EndpointError, match="last component of 120 bytes is too long"):
        dial(os.path.join(directory, "n" * 120))


def test_a_long_path_without_its_directory(directory):
    with pytest.raises(EndpointError, match="its directory cannot be opened to shorten it: No such file"):
        dial(os.path.join(directory, "d" * 120, "csi.sock"))


def descriptors():
    return set(os.listdir("/proc/self/fd"))


def test_a_channel_gives_its_directory_back(directory):
    path = os.path.join(deep(directory, 300), "csi.sock")
    gc.collect()
    before = descriptors()
    with reachable(path) as short:
        assert short.endswith("/csi.sock")
        assert len(descriptors() - before) == 1
    assert descriptors() <= before
    channel = dial(path)
    channel.close()
    del channel
    gc.collect()
    assert descriptors() <= before


def test_a_channel_finds_the_driver_again(directory, channel):
    """One channel per driver, reused over restarts."""
    opened = channel(f"{directory}/csi.sock")
    for _ in range(2):
        with CsiServer(null_driver(), f"{directory}/csi.sock", grace_seconds=0):
            stub = stubs.IdentityStub(opened)
            assert stub.Probe(csi.ProbeRequest(), timeout=30, wait_for_ready=True).ready.value


def test_the_proxy_of_the_environment_is_not_used(directory, channel, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:1")
    with CsiServer(null_driver(), f"{directory}/csi.sock", grace_seconds=0):
        assert answers(channel(f"{directory}/csi.sock")) == "null.csi.example.com"


def test_the_authority_is_localhost(directory, channel):
    import grpc

    seen = []

    class Look(grpc.ServerInterceptor):
        def intercept_service(self, continuation, details):
            handler = continuation(details)

            def served(request, context):
                seen.append(context._rpc_event.call_details.host.decode())
                return handler.unary_unary(request, context)

            return grpc.unary_unary_rpc_method_handler(
                served, handler.request_deserializer, handler.response_serializer
            )

    with CsiServer(null_driver(), f"{directory}/csi.sock", grace_seconds=0, interceptors=[Look()]):
        answers(channel(f"{directory}/csi.sock"))
    assert seen == ["localhost"]
