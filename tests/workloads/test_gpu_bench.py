"""What ``python -m benchmarks.gpu`` does without a GPU: it says so, and packs what a machine with one needs."""

import zipfile
from pathlib import Path

from benchmarks.gpu import __main__ as bench


def test_the_packed_node_half_has_the_upstream_workload(tmp_path: Path) -> None:
    assert bench.main(["pack", str(tmp_path / "node.pyz")]) == 0
    with zipfile.ZipFile(tmp_path / "node.pyz") as archive:
        names = archive.namelist()
    assert "gpubench/node/main.py" in names
    assert [name for name in names if name.endswith("/upstream.py")]
