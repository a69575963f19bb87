"""What ``python -m benchmarks.gpu`` does without a GPU: it says so, and packs what a machine with one needs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as bench
from gpubench.node.workloads import nvml


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["first"], "no GPU answers to NVML here, or there is no nvidia-smi"),
        (["first", "--only", "drivre"], "first has no step drivre"),
        (["second", "--only", "driver"], "second has no step driver"),
    ],
)
def test_where_nothing_can_be_checked_one_line_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.setattr(nvml, "devices", dict)
    with pytest.raises(SystemExit) as ended:
        bench.main([words[0], str(tmp_path / "new"), *words[1:]])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {said}")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nvml, "devices", lambda: {"gpu-0": None})
    monkeypatch.setattr(bench.shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(SystemExit):
        bench.main(["first", str(tmp_path)])
    assert f"{tmp_path} exists already: name a new folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_packed_node_half_has_the_upstream_workload(tmp_path: Path) -> None:
    assert bench.main(["pack", str(tmp_path / "node.pyz")]) == 0
    with zipfile.ZipFile(tmp_path / "node.pyz") as archive:
        names = archive.namelist()
    assert "gpubench/node/main.py" in names
    assert [name for name in names if name.endswith("/upstream.py")]
