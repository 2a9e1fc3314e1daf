"""The page on testing has every fixture and every option of the pytest plugin."""

from __future__ import annotations

import re

import pytest

from volumehost.testing import pytest_plugin

pytestmark = pytest.mark.slow


def letters(text):
    """The text without spaces, quotes and marks, which the page sets in its own way."""
    return re.sub(r"\W", "", text)


def test_every_fixture_is_on_the_page(page, pytestconfig):
    source = pytestconfig.rootpath.joinpath("host/src/volumehost/testing/pytest_plugin.py").read_text()
    fixtures = re.findall(r"^@pytest\.fixture.*\ndef (\w+)\(", source, re.MULTILINE)
    assert len(fixtures) >= 5
    text = letters(page("reference/testing").text)
    for name in fixtures:
        assert letters(name + getattr(pytest_plugin, name).__doc__) in text


def test_every_option_is_on_the_page(page, pytestconfig):
    source = pytestconfig.rootpath.joinpath("host/src/volumehost/testing/pytest_plugin.py").read_text()
    options = set(re.findall(r'"(--volume-[\w-]+)",\n', source))
    assert options
    assert set(re.findall(r"--volume-[a-z]+", page("reference/testing").text)) == options
