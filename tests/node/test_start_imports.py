"""What each process of a run imports before it starts: ``node.pyz`` holds sources, which every process compiles."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.render.node_half import pack

LATE = {
    "import gpubench.node.main": {
        "gpubench.node.supervisor",
        "gpubench.node.client",
        "gpubench.node.workloads.catalogue",
    },
    "import gpubench.node.main, gpubench.node.run": {
        "gpubench.node.client",
        "gpubench.node.follower",
        "gpubench.node.process_facts",
        "gpubench.node.workloads.catalogue",
        "gpubench.node.workloads.dask_compat",
        "gpubench.node.workloads.repetitions",
        "importlib.metadata",
        "zipfile",
    },
}


@pytest.mark.parametrize("start", LATE)
def test_a_process_that_starts_imports_nothing_that_only_others_need(tmp_path: Path, start: str) -> None:
    archive = tmp_path / "node.pyz"
    archive.write_bytes(pack(resources.node_half()))
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); {start}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "gpubench.node.main" in imported
    assert imported & LATE[start] == set()
