"""Start-up of the package and of the command line, whole processes, against what they are built on."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.distributions import make_distributions
from bench.measuring import Figure, alternating, whole_process

EMPTY_GROUP = "import click\n@click.group()\ndef main(): pass\nmain(['--help'])\n"
ENTRY_POINTS_SCRIPT = (
    "import click, pluggy\n"
    "from importlib.metadata import entry_points\n"
    "for point in entry_points(group='volumehost.plugins'): click.echo(point.name)\n"
)


def figures() -> list[Figure]:
    """``import volumehost``, ``--help`` and ``plugins list``."""
    program = str(Path(sys.executable).with_name("volumehost"))
    bare, package, pluggy = alternating(
        [
            whole_process(["-c", "pass"]),
            whole_process(["-c", "import volumehost"]),
            whole_process(["-c", "import pluggy"]),
        ],
        rounds=15,
    )
    contract, contract_anchor = alternating(
        [
            whole_process(["-c", "from volumehost import VolumePlugin, hookimpl"]),
            whole_process(["-c", "import pluggy"]),
        ],
        rounds=15,
    )
    help_page, empty_group = alternating(
        [whole_process([program, "--help"]), whole_process(["-c", EMPTY_GROUP])], rounds=15
    )
    with tempfile.TemporaryDirectory() as directory:
        make_distributions(Path(directory), 40)
        listing, script = alternating(
            [
                whole_process([program, "plugins", "list"], PYTHONPATH=directory),
                whole_process(["-c", ENTRY_POINTS_SCRIPT], PYTHONPATH=directory),
            ],
            rounds=15,
        )
    return [
        Figure("import volumehost", package, pluggy, "import pluggy", 1.3, 1.1),
        Figure(
            "import volumehost, bare interpreter taken off", max(package - bare, 1e-6), pluggy - bare, "import pluggy"
        ),
        Figure("the contract (VolumePlugin, hookimpl)", contract, contract_anchor, "import pluggy"),
        Figure("volumehost --help", help_page, empty_group, "--help of an empty click group", 1.25, 1.1),
        Figure(
            "volumehost plugins list, 40 more distributions", listing, script, "click, pluggy, entry_points()", 0.8, 0.7
        ),
    ]
