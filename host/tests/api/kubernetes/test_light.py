"""The kubernetes distribution is loaded when there is a cluster, and nowhere else (BR-76)."""

from __future__ import annotations

import subprocess
import sys

_HEAVY = ("kubernetes", "urllib3", "pydantic", "requests")


def test_nothing_of_it_is_loaded_without_a_cluster() -> None:
    program = (
        "import sys\n"
        "import volumehost, volumehost.api.kubernetes, volumehost.node.manager\n"
        "from volumehost.cli import main\n"
        "sys.argv[1:] = ['--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"found = [name for name in {_HEAVY!r} if name in sys.modules]\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_no_model_is_loaded_with_one() -> None:
    program = (
        "import sys\n"
        "from volumehost.api.kubernetes.cluster_config import ClusterConfig\n"
        "from volumehost.api.kubernetes.transport import Request, Transport\n"
        "from volumehost.errors import ServerUnreachableError\n"
        "transport = Transport(ClusterConfig('http://127.0.0.1:1', 'a test'))\n"
        "try:\n    transport.send(Request('GET', '/'), {})\nexcept ServerUnreachableError:\n    pass\n"
        "assert 'kubernetes.client.rest' in sys.modules\n"
        "assert not [name for name in sys.modules if name.startswith('kubernetes.client.models.')]\n"
        "assert not [name for name in sys.modules if name.startswith('kubernetes.client.api.')]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_without_the_distribution_it_says_what_to_install() -> None:
    program = (
        "import sys\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'kubernetes' else find(name, package)\n"
        "from volumehost.api.kubernetes import connect\n"
        "from volumehost.errors import NotAvailableOnHostError\n"
        "try:\n    connect('/nowhere')\n"
        "except NotAvailableOnHostError as error:\n    assert 'volumehost[kubernetes]' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
