"""A scriptable CSI driver, for authors of hosts and of drivers: in this process, or as a process of its own.

>>> with FakeDriver("unix:///run/test/csi.sock") as driver:                      # doctest: +SKIP
...     driver.script(Rule("NodeStageVolume", code="UNAVAILABLE", times=2))
...     ...  # let the host stage a volume
...     assert [call.code for call in driver.calls("NodeStageVolume")] == ["UNAVAILABLE", "UNAVAILABLE", "OK"]

It serves Identity, Controller and Node with a model in memory, records every call, and can fail, be late, hang, die, or
answer anything, before or after it did the work. :class:`FakeDriverProcess` is the same driver behind
``python -m volumehost_csi_kit.fake``, which can really be killed.
"""

from __future__ import annotations

from volumehost_csi_kit.fake.config import CONTROLLER_CAPABILITIES, NODE_CAPABILITIES, FakeConfig
from volumehost_csi_kit.fake.driver import FakeDriver
from volumehost_csi_kit.fake.null import null_driver
from volumehost_csi_kit.fake.process import FakeDriverProcess
from volumehost_csi_kit.fake.recording import Call
from volumehost_csi_kit.fake.rules import Rule

__all__ = [
    "CONTROLLER_CAPABILITIES",
    "NODE_CAPABILITIES",
    "Call",
    "FakeConfig",
    "FakeDriver",
    "FakeDriverProcess",
    "Rule",
    "null_driver",
]
