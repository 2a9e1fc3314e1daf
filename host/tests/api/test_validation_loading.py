"""The rules of a kind are loaded with the first object of that kind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from volumehost.api.kinds import KINDS
from volumehost.api.validation.registry import _RULES


def test_every_rule_is_there_and_every_kind_that_has_rules_is_a_kind() -> None:
    for rules in _RULES.values():
        assert callable(rules.find(rules.check))
        assert not rules.change or callable(rules.find(rules.change))
    assert set(_RULES) <= {kind.struct for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "unneeded"),
    [
        ("Node", {"pods", "claims", "storage", "snapshots", "csi", "config", "persistent_volumes", "sources"}),
        ("CSINode", {"pods", "claims", "storage", "snapshots", "config", "persistent_volumes", "sources"}),
        ("ConfigMap", {"pods", "claims", "storage", "snapshots", "csi", "persistent_volumes", "sources"}),
        (
            "StorageClass",
            {"pods", "claims", "claim_specs", "snapshots", "csi", "config", "persistent_volumes", "sources"},
        ),
    ],
)
def test_an_object_loads_the_rules_of_its_kind_alone(kind: str, unneeded: set[str]) -> None:
    program = f"""
import sys
from volumehost.api.kinds import kind_of
from volumehost.api.objects import {kind}, ObjectMeta
from volumehost.api.validation import validate_create
from volumehost.errors import InvalidObjectError

try:
    validate_create({kind}(metadata=ObjectMeta(name="a")), kind_of({kind}))
except InvalidObjectError:
    pass
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not {f"volumehost.api.validation.{name}" for name in unneeded} & set(done.stdout.split())
