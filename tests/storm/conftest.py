"""The short form of ``make storm``: the same storms, less of each. What they need is at the repository's top."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
