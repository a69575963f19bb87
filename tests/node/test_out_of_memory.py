"""Workers with a real limit on their memory, and a workload that is too large for them."""

import sys
import zipfile
from pathlib import Path

import pytest

from gpubench.node.spec import Deadlines, WorkloadSpec
from tests.node.runners import Runner
from tests.node.specs_by_hand import node_half
from tests.workloads.running import complete

pytestmark = pytest.mark.system

LARGE = WorkloadSpec("transpose-sum", "dask", {"size": 8000, "chunk": 1000}, reps=3, warmup=0, timeout_s=300.0)
BEFORE, AFTER = (
    WorkloadSpec("tasks", "dask", complete("tasks", {"count": count}), reps=1, warmup=0, timeout_s=300.0)
    for count in (3, 4)
)


def test_a_worker_out_of_memory_fails_its_workload_at_once_and_skips_the_rest_with_the_reason(tmp_path: Path) -> None:
    deadlines = Deadlines(start_s=100.0, stop_s=10.0, silence_s=60.0)
    changes = {"workloads": [BEFORE, LARGE, AFTER], "workers_per_node": 2, "memory_limit": 300 << 20}
    runner = Runner([sys.executable, "-I"], tmp_path, node_half=node_half(), deadlines=deadlines, **changes)
    runner.start("--rank", "0").communicate(timeout=500)
    record = runner.record()
    assert [item.status for item in record.workloads] == ["ok", "failed", "skipped"], record.reason
    reason = record.workloads[1].reason
    assert reason.startswith("OutOfMemoryError: worker-0-")
    assert "ran out of memory: " in reason
    assert " of 300 MiB in use" in reason
    assert record.workloads[2].reason == "after the failure of transpose-sum"
    with zipfile.ZipFile(runner.run_dir() / "logs.zip") as logs:
        assert "rank0/worker-0-1.log" in logs.namelist()
