"""MGR-NAME-01 to -08: the rule for plugin names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.loader.names import is_reserved, plugin_name_faults

GOOD = [
    "simple/simple",
    "1.2.3.4/5678",
    "example.com/Uppercase_Is_OK_123",
    "kubernetes.io/host-path",
    "a/b",
    "x-y.z-1/n.o-p_q",
    "a" * 253 + "/" + "b" * 63,
]
BAD = [
    "",
    "nospecialchars%^=@",
    "cantendwithadash-",
    "-cantstartwithadash-",
    "only/one/slash",
    "Example.com/abc",
    "example_com/abc",
    "example.com/",
    "/simple",
    "/",
    "a" * 64,
    "x/" + "a" * 64,
    "a" * 254 + "/abc",
    "a..b/c",
    "a.-b/c",
    ".a/b",
    "a/.b",
    "a/b-",
    "ä/b",
    "a/ü",
    "a/b c",
    "a//b",
]
WITHOUT_SLASH = ["simple", "now-with-dashes", "1-starts-with-num", "1234", "Uppercase_Is_OK_123", "a" * 63]


@pytest.mark.parametrize("name", GOOD)
def test_mgr_name_05_good_names(name):
    assert plugin_name_faults(name) == []


@pytest.mark.parametrize("name", BAD)
def test_mgr_name_06_bad_names(name):
    assert plugin_name_faults(name)


@pytest.mark.parametrize("name", WITHOUT_SLASH)
def test_mgr_name_07_a_name_needs_its_slash(name):
    (fault,) = plugin_name_faults(name)
    assert "prefix" in fault


@pytest.mark.parametrize("name", ["kubernetes.io/x\n", "\nkubernetes.io/x", "kubernetes.io\n/x", "a/b\r"])
def test_mgr_name_08_a_newline_is_no_way_in(name):
    assert plugin_name_faults(name)


def test_mgr_name_04_every_fault_is_told():
    assert len(plugin_name_faults("Bad_/-also-bad-")) == 2
    assert len(plugin_name_faults("A" * 300 + "/" + "-" * 64)) == 4


def test_mgr_name_03_lengths_are_in_bytes():
    assert any("63 bytes" in fault for fault in plugin_name_faults("a/" + "é" * 32))


@given(st.text(alphabet="aB0-_./\n", max_size=12))
def test_mgr_name_the_rule_as_one_expression(name):
    label = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
    rule = rf"{label}(?:\.{label})*/[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?"
    assert (not plugin_name_faults(name)) == bool(re.fullmatch(rule, name, re.ASCII))


def test_the_reserved_namespace_is_the_whole_prefix():
    assert is_reserved("kubernetes.io/x")
    assert not is_reserved("kubernetes.io.example.com/x")
    assert not is_reserved("my-kubernetes.io/x")
    assert not is_reserved("x/kubernetes.io")
