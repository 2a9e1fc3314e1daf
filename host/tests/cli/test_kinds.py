from __future__ import annotations

from pathlib import Path

import pytest

from volumehost.api.kinds import KINDS, Kind
from volumehost.api.objects import KubeObject
from volumehost.cli import main

STORED = [kind for kind in KINDS if kind.stored]


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.kind)
def test_get_and_describe_know_every_kind_by_every_spelling(
    kind: Kind[KubeObject], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for spelling in (*kind.spellings, kind.kind):
        assert main(["--root-dir", str(tmp_path / "root"), "get", spelling]) == 0
        assert main(["--root-dir", str(tmp_path / "root"), "describe", spelling]) == 0
        assert main(["--root-dir", str(tmp_path / "root"), "get", spelling, "absent"]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"No {kind.plural} found" in captured.err
        assert f"there is no {kind.singular}" in captured.err
    assert not (tmp_path / "root").exists()


def test_requests_are_not_kept_and_so_not_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (request,) = [kind for kind in KINDS if not kind.stored]
    assert main(["--root-dir", str(tmp_path / "root"), "get", request.plural]) == 1
    assert request.kind in capsys.readouterr().err
