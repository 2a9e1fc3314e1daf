"""The sdk's public names, and what importing it costs."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import volumehost.sdk as sdk


@pytest.mark.parametrize("name", sdk.__all__)
def test_every_public_name_loads(name):
    assert getattr(sdk, name) is not None


def test_the_list_of_names_is_exact():
    assert sorted(sdk.__all__) == sorted(sdk._HOME) == dir(sdk)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sdk.nonsense


def test_no_public_name_is_that_of_a_module():
    """Whoever imports the module first would give its place to the module, and all others the wrong thing."""
    modules = {module.name for module in pkgutil.iter_modules(sdk.__path__)}
    assert modules & set(sdk.__all__) == set()


def test_importing_it_loads_nothing():
    code = "import sys, volumehost.sdk; print([m for m in sys.modules if m.startswith('volumehost.')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "['volumehost.sdk']"


def test_using_all_of_it_never_loads_the_api_room():
    code = (
        "import sys, volumehost.sdk as sdk\n"
        "for name in sdk.__all__: getattr(sdk, name)\n"
        "print(sorted({'msgspec', 'yaml', 'volumehost.api'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
