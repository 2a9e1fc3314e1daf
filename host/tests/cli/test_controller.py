"""What ``volumehost controller`` refuses before it begins."""

from __future__ import annotations

import pytest

from volumehost.cli import main

USAGE = 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give --kubeconfig, --context or --in-cluster"),
        (["--kubeconfig", "x", "--controllers", "binders"], "did you mean binder?"),
        (["--kubeconfig", "x", "--controllers", "binder,-binder"], "it turns every controller off"),
        (["--kubeconfig", "x", "--controllers", "csi-attacher"], "serves the drivers of --csi-driver"),
        (["--kubeconfig", "x", "--csi-driver", "csi.example.com"], "is no NAME=ENDPOINT"),
        (["--kubeconfig", "x", "--csi-driver", "a=unix:///a", "--csi-driver", "a=unix:///b"], "a is given twice"),
        (["--kubeconfig", "x", "--http", "here"], "is no ADDRESS:PORT"),
        (["--in-cluster", "--context", "c"], "--in-cluster goes without"),
    ],
)
def test_wrong_usage(capsys, monkeypatch, arguments, told) -> None:
    monkeypatch.delenv("VOLUMEHOST_KUBECONFIG", raising=False)
    assert main(["controller", *arguments]) == USAGE
    assert told in capsys.readouterr().err


def test_a_kubeconfig_that_is_not_there(capsys, tmp_path) -> None:
    assert main(["controller", "--kubeconfig", str(tmp_path / "none"), "--root-dir", str(tmp_path)]) == 1
    assert "none" in capsys.readouterr().err
